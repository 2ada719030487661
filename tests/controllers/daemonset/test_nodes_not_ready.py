"""A daemon set on nodes that are not ready: by their own word, or because their readiness gates are not open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nodeward.api.apps_v1 import DaemonSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Toleration
from nodeward.cluster.identities import controller_client
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.pods.state import is_active, is_ready
from nodeward.controllers.runner import Runner
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.daemonset.daemons import daemon_set
from tests.controllers.kubelets import FakeKubelets
from tests.controllers.workloads import NAMESPACE, template
from tests.keps.ledger import statement
from tests.scheduler.running import Cluster, cluster, node, pod

GATE = "network.example.com/Ready"
CHOSEN = ("daemon-set-controller", "node-lifecycle-controller")


@asynccontextmanager
async def whole(clock: VirtualClock, **kubelets: Any) -> AsyncIterator[tuple[Cluster, FakeKubelets]]:
    """The scheduler, the daemon set controller, the one that taints nodes, and kubelets that start what is placed."""
    async with cluster(clock) as each:
        runner = Runner(
            lambda name: controller_client(each.server, name),
            clock,
            SeededChance(3),
            gates=each.gates,
            controllers=[entry for entry in CONTROLLERS if entry.name in CHOSEN],
        )
        await runner.start()
        try:
            async with FakeKubelets(each.client, places=False, **kubelets) as nodes:
                yield each, nodes
        finally:
            await runner.stop()


async def say(each: Cluster, name: str, **conditions: str) -> None:
    """What a node says of itself; `gate` is the readiness gate."""
    told = [
        {"type": GATE if kind == "gate" else kind, "status": status} for kind, status in conditions.items()
    ]
    await each.patch_node(name, {"status": {"conditions": told}}, status=True)


async def daemon_places(each: Cluster) -> list[str]:
    listed = await each.client.list(Pod, NAMESPACE)
    return sorted(one.spec.node_name for one in listed.items if one.metadata.generate_name and is_active(one))


def gated(name: str) -> Any:
    taint = {"key": "network.example.com/failed", "effect": "NoSchedule"}
    return node(
        name, readinessGates=[{"conditionType": GATE, "timeoutSeconds": 600, "readinessTaint": taint}]
    )


@statement("5233-R12", part="scheduler")
def test_daemon_pods_come_to_nodes_whose_gates_are_shut_and_others_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as (each, _):
            await each.add_nodes(gated("n1"), gated("n2"))
            await each.client.create(daemon_set())
            await each.add_pods(pod("general"))
            await each.pass_time(10)
            assert await daemon_places(each) == ["n1", "n2"]
            assert await each.where("general") == ""
            found = await each.client.get(DaemonSet, "web", NAMESPACE)
            assert (found.status.desired_number_scheduled, found.status.number_ready) == (2, 2)
            await say(each, "n2", Ready="True", gate="True")
            await each.pass_time(10)
            assert await each.where("general") == "n2"

    run_virtual(main)


@statement("5233-R37", part="scheduler")
@statement("5233-R37", part="controllers")
def test_while_the_reporter_is_rolled_out_only_new_pods_wait_and_a_failed_rollout_keeps_the_node_shut() -> (
    None
):
    async def main(clock: VirtualClock) -> None:
        async with whole(clock, is_healthy=lambda one: one.spec.containers[0].image != "web:bad") as (
            each,
            kubelets,
        ):

            async def report() -> None:
                """The daemon says its node is ready as long as it is so itself."""
                ready = [one for one in kubelets.pods.list(NAMESPACE) if is_active(one) and is_ready(one)]
                serves = any(one.metadata.generate_name == "web-" for one in ready)
                await say(each, "n1", Ready="True", gate="True" if serves else "False")
                await each.pass_time(3)

            async def roll_out(image: str) -> None:
                body = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}
                await each.client.patch(DaemonSet, "web", body, namespace=NAMESPACE)
                await each.pass_time(0.1)

            await each.add_nodes(gated("n1"))
            await each.client.create(daemon_set())
            await each.pass_time(5)
            await report()
            await each.add_pods(pod("early"))
            assert await each.where("early") == "n1"

            await roll_out("web:2")
            await report()
            await each.add_pods(pod("late"))
            assert await each.where("early") == "n1"
            await each.pass_time(10)
            assert await each.where("late") == ""
            await report()
            assert await each.where("late") == "n1"

            await roll_out("web:bad")
            await report()
            await each.add_pods(pod("latest"))
            await each.pass_time(20)
            await report()
            places = await each.places()
            assert (places["early"], places["late"], places["latest"]) == ("n1", "n1", "")
            assert await daemon_places(each) == ["n1"]

    run_virtual(main)


def test_a_node_that_is_not_ready_keeps_its_daemon_pod_and_gets_one_when_it_is_ready() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as (each, _):
            await each.add_nodes(node("n1"), node("n2", status={"conditions": []}))
            await say(each, "n2", Ready="False")
            await each.client.create(daemon_set())
            await each.pass_time(10)
            assert await daemon_places(each) == ["n1"]
            await say(each, "n1", Ready="False")
            await each.pass_time(20)
            assert await daemon_places(each) == ["n1"]
            found = await each.client.get(DaemonSet, "web", NAMESPACE)
            assert (found.status.desired_number_scheduled, found.status.number_misscheduled) == (0, 1)
            await say(each, "n2", Ready="True")
            await say(each, "n1", Ready="True")
            await each.pass_time(10)
            assert await daemon_places(each) == ["n1", "n2"]

    run_virtual(main)


def test_a_daemon_that_tolerates_it_comes_to_a_node_that_is_not_ready_yet() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole(clock) as (each, _):
            await each.add_nodes(node("n1"))
            await say(each, "n1", Ready="False")
            network = template()
            network.spec.tolerations = [Toleration(operator="Exists")]
            await each.client.create(daemon_set(template=network))
            await each.pass_time(10)
            assert await daemon_places(each) == ["n1"]

    run_virtual(main)
