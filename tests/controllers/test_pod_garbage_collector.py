"""Pods that nobody else removes: too many ended ones, those of lost nodes, and those that never had one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import Node, NodeCondition, NodeSpec, NodeStatus
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import Taint
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.controller import ControllerDescriptor
from nodeward.controllers.pod_garbage_collector import PodGarbageCollector, surplus
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

HELD = "example.com/held"
ENTRY = ControllerDescriptor(
    "pod-garbage-collector", lambda context: PodGarbageCollector(context, threshold=2)
)


def run(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=(ENTRY,)) as each:
            await main(each)

    run_virtual(inner)


def pod(name: str, node: str = "", *finalizers: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", finalizers=list(finalizers)),
        spec=PodSpec(containers=[Container(name="c", image="i")], node_name=node),
    )


async def set_phase(each: Cluster, name: str, phase: str, reason: str = "") -> None:
    body = {"status": {"phase": phase, "reason": reason}}
    await each.client.patch(Pod, name, body, namespace="default", subresource="status")


async def make_node(each: Cluster, name: str, *taints: str, is_ready: bool) -> None:
    ready = NodeCondition(type="Ready", status="True" if is_ready else "Unknown")
    node = Node(
        metadata=ObjectMeta(name=name),
        spec=NodeSpec(taints=[Taint(key=key, effect="NoExecute") for key in taints]),
        status=NodeStatus(conditions=[ready]),
    )
    await each.client.create(node)


async def names(each: Cluster) -> list[str]:
    return sorted(item.metadata.name for item in (await each.client.list(Pod, "default")).items)


def test_of_the_ended_pods_above_the_threshold_evicted_ones_go_first_then_the_oldest() -> None:
    async def main(each: Cluster) -> None:
        await make_node(each, "n", is_ready=True)
        for name, phase, reason in (
            ("a-old", "Succeeded", ""),
            ("b-newer", "Failed", ""),
            ("c-newest", "Succeeded", ""),
            ("d-evicted", "Failed", "Evicted"),
            ("e-running", "Running", ""),
        ):
            await each.client.create(pod(name, "n"))
            await set_phase(each, name, phase, reason)
            await each.pass_time(2)
        await each.pass_time(21)
        assert await names(each) == ["b-newer", "c-newest", "e-running"]
        deleted = each.runner.metrics.counter("pod_gc_collector_force_delete_pods_total", "")
        assert deleted.value("default", "terminated") == 2

    run(main)


def test_a_threshold_of_nothing_keeps_all_ended_pods() -> None:
    ended = pod("p")
    ended.status.phase = "Failed"
    assert surplus([ended, ended], 0) == []
    assert len(surplus([ended, ended], 1)) == 1


def test_pods_of_a_node_that_is_gone_fail_after_the_quarantine_and_say_why() -> None:
    async def main(each: Cluster) -> None:
        await make_node(each, "there", is_ready=False)
        await each.client.create(pod("kept", "there"))
        await each.client.create(pod("lost", "gone", HELD))
        await set_phase(each, "lost", "Running")
        await each.pass_time(59)
        assert (await each.client.get(Pod, "lost", "default")).metadata.deletion_timestamp is None
        await each.pass_time(22)
        found = await each.client.get(Pod, "lost", "default")
        assert found.metadata.deletion_timestamp is not None
        assert found.status.phase == "Failed"
        assert found.status.observed_generation == 1
        (condition,) = [one for one in found.status.conditions if one.type == "DisruptionTarget"]
        assert (condition.status, condition.reason, condition.message) == (
            "True", "DeletionByPodGC", "PodGC: node no longer exists",
        )  # fmt: skip
        assert condition.last_transition_time is not None
        assert await names(each) == ["kept", "lost"]
        assert (await each.client.get(Pod, "kept", "default")).metadata.deletion_timestamp is None

    run(main)


def test_a_node_that_comes_back_within_the_quarantine_keeps_its_pods() -> None:
    async def main(each: Cluster) -> None:
        await each.client.create(pod("p", "late"))
        await each.pass_time(50)
        await make_node(each, "late", is_ready=True)
        await each.pass_time(120)
        assert await names(each) == ["p"]

    run(main)


def test_terminating_pods_go_with_a_node_that_is_out_of_service_unless_it_is_ready() -> None:
    async def main(each: Cluster) -> None:
        await make_node(each, "dead", "node.kubernetes.io/out-of-service", is_ready=False)
        await make_node(each, "alive", "node.kubernetes.io/out-of-service", is_ready=True)
        await make_node(each, "unclear", is_ready=False)
        for node in ("dead", "alive", "unclear"):
            await each.client.create(pod(f"on-{node}", node))
            await each.client.delete(Pod, f"on-{node}", "default", grace_period=600)
        await each.client.create(pod("stays-on-dead", "dead"))
        await each.pass_time(21)
        assert await names(each) == ["on-alive", "on-unclear", "stays-on-dead"]

    run(main)


def test_a_terminating_pod_that_never_had_a_node_fails_and_is_deleted() -> None:
    async def main(each: Cluster) -> None:
        await each.client.create(pod("p", "", HELD))
        await each.client.delete(Pod, "p", "default")
        await each.pass_time(21)
        found = await each.client.get(Pod, "p", "default")
        assert found.status.phase == "Failed"
        assert found.metadata.deletion_grace_period_seconds == 0

    run(main)
