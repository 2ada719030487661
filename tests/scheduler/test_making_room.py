"""Preemption and volumes, with the scheduler at work on an API server and the rights it has in production."""

from __future__ import annotations

from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.scheduler.plugins.storage import ZONE, claim, only_in, storage_class, volume
from tests.scheduler.running import Cluster, cluster, node, pod

HOLD = {"finalizers": ["example.com/hold"]}


async def ready(world: Cluster) -> None:
    """A node of 4 CPUs, and priorities."""
    for name, value in (("low", 1), ("high", 100)):
        tree = {"metadata": {"name": name}, "value": value}
        await world.client.create(from_tree(tree, PriorityClass))
    await world.add_nodes(node("a"))


def low(name: str, **more: Any) -> Pod:
    return pod(name, "2", priorityClassName="low", terminationGracePeriodSeconds=0, **more)


def high(name: str = "high", cpu: str = "4", **more: Any) -> Pod:
    return pod(name, cpu, priorityClassName="high", **more)


def test_a_pod_of_high_priority_gets_the_place_of_lesser_ones() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await ready(world)
            await world.add_pods(low("x"), low("y"))
            await world.add_pods(high())
            await world.pass_time(10)
            assert await world.places() == {"high": "a"}
            uid = (await world.client.get(Pod, "high", "default")).metadata.uid
            assert (await world.events("x"))[-1] == (
                "Normal",
                "Preempted",
                f"Preempted by pod {uid} on node a",
            )

    run_virtual(main)


def test_a_pod_waits_for_its_victims_and_preempts_nobody_else_meanwhile() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await ready(world)
            await world.add_pods(low("x", metadata=HOLD), low("y", metadata=HOLD))
            await world.add_pods(high(cpu="2"))
            await world.pass_time(600)
            waiting = await world.client.get(Pod, "high", "default")
            assert (waiting.spec.node_name, waiting.status.nominated_node_name) == ("", "a")
            listed = (await world.client.list(Pod, "default")).items
            (victim,) = [each for each in listed if each.metadata.deletion_timestamp is not None]
            name = victim.metadata.name
            await world.client.patch(Pod, name, {"metadata": {"finalizers": None}}, namespace="default")
            await world.pass_time(20)
            stays = "y" if name == "x" else "x"
            assert await world.places() == {"high": "a", stays: "a"}

    run_virtual(main)


def test_a_pod_is_bound_once_its_volume_is() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(
                *(node(name, labels={ZONE: zone}) for name, zone in (("a0", "a"), ("b0", "b")))
            )
            for obj in (
                storage_class(),
                volume("v", hostPath={"path": "/v"}, **only_in("b")),
                claim("c"),
            ):
                obj.metadata.uid = obj.metadata.resource_version = ""
                await world.client.create(obj)
            await world.client.patch(
                PersistentVolume, "v", {"status": {"phase": "Available"}}, subresource="status"
            )
            uses = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
            await world.add_pods(pod("p", volumes=uses))
            await world.pass_time(5)
            assert await world.where("p") == ""
            reserved = await world.client.get(PersistentVolume, "v")
            assert reserved.spec.claim_ref is not None
            assert reserved.spec.claim_ref.name == "c"
            body = {
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": "v"},
            }
            await world.client.patch(PersistentVolumeClaim, "c", body, namespace="default")
            await world.pass_time(5)
            assert await world.where("p") == "b0"

    run_virtual(main)


def test_a_claim_that_comes_later_wakes_its_pod() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"))
            uses = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
            await world.add_pods(pod("p", volumes=uses))
            text = (
                '0/1 nodes are available: persistentvolumeclaim "c" not found. preemption: 0/1 nodes are '
                "available: 1 Preemption is not helpful for scheduling."
            )
            assert await world.events("p") == [("Warning", "FailedScheduling", text)]
            for obj in (volume("v", hostPath={"path": "/v"}), claim("c", bound="v")):
                obj.metadata.uid = obj.metadata.resource_version = ""
                await world.client.create(obj)
            await world.pass_time(15)
            assert await world.where("p") == "a"

    run_virtual(main)
