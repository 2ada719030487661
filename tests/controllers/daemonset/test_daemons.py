"""A daemon set has a pod on every node it is for: the behaviours the Kubernetes documentation promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.apps_v1 import DaemonSet, DaemonSetStatus
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.controller_revisions import HASH_LABEL
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import cluster
from tests.controllers.daemonset.daemons import (
    ONLY_DAEMONS,
    add_nodes,
    daemon_set,
    daemons,
    found,
    patch_node,
    places,
    revisions,
)
from tests.controllers.kubelets import FakeKubelets
from tests.controllers.workloads import LABELS, NAMESPACE, Workloads, template
from tests.scheduler.running import node

HOUR = 3600.0


def counts(status: DaemonSetStatus) -> tuple[int, int, int, int, int]:
    """desired, current, ready, available, misscheduled"""
    return (
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.number_available,
        status.number_misscheduled,
    )


def test_every_node_gets_one_pod_that_names_the_set_and_its_revision() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            owner = await each.create(daemon_set())
            pods = await each.pods()
            assert sorted(pod.spec.node_name for pod in pods) == ["n0", "n1", "n2"]
            (revision,) = await revisions(each)
            for pod in pods:
                reference = controller_of(pod)
                assert reference is not None
                assert (reference.kind, reference.uid) == ("DaemonSet", owner.metadata.uid)
                assert pod.metadata.labels[HASH_LABEL] == revision.metadata.labels[HASH_LABEL]
            assert revision.revision == 1
            status = (await found(each)).status
            assert counts(status) == (3, 3, 3, 3, 0)
            assert (status.updated_number_scheduled, status.number_unavailable) == (3, 0)
            assert status.observed_generation == 1

    run_virtual(main)


def test_nodes_that_come_and_go_get_and_lose_their_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=1) as each:
            await each.create(daemon_set())
            await add_nodes(each, node("late"))
            await each.cluster.pass_time(5)
            assert await places(each) == {"late": "web:1", "n0": "web:1"}
            await each.cluster.client.delete(Node, "late")
            await each.cluster.pass_time(5)
            assert (await found(each)).status.desired_number_scheduled == 1

    run_virtual(main)


def test_a_pod_that_waits_for_a_node_that_is_gone_is_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY_DAEMONS) as bare:
            # Nobody places pods here.
            each = Workloads(bare, FakeKubelets(bare.client))
            await add_nodes(each, node("n0"), node("n1"))
            await each.create(daemon_set())
            assert list(await places(each)) == ["n0", "n1"]
            await each.cluster.client.delete(Node, "n1")
            await each.cluster.pass_time(5)
            assert list(await places(each)) == ["n0"]

    run_virtual(main)


def test_labels_decide_and_may_change() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            chosen = template()
            chosen.spec.node_selector = {"disk": "ssd"}
            await each.create(daemon_set(template=chosen))
            assert await places(each) == {}
            await patch_node(each, "n1", {"metadata": {"labels": {"disk": "ssd"}}})
            await each.cluster.pass_time(5)
            assert await places(each) == {"n1": "web:1"}
            await patch_node(each, "n1", {"metadata": {"labels": {"disk": "hdd"}}})
            await each.cluster.pass_time(5)
            assert await places(each) == {}
            assert counts((await found(each)).status) == (0, 0, 0, 0, 0)

    run_virtual(main)


@pytest.mark.parametrize(("effect", "stays", "misplaced"), [("NoSchedule", True, 1), ("NoExecute", False, 0)])
def test_a_new_taint_spares_running_pods_unless_it_evicts(effect: str, stays: bool, misplaced: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set())
            await patch_node(each, "n1", {"spec": {"taints": [{"key": "dedicated", "effect": effect}]}})
            await each.cluster.pass_time(10)
            assert ("n1" in await places(each)) == stays
            assert counts((await found(each)).status) == (2, 2, 2, 2, misplaced)
            await patch_node(each, "n1", {"spec": {"taints": None}})
            await each.cluster.pass_time(10)
            assert counts((await found(each)).status) == (3, 3, 3, 3, 0)

    run_virtual(main)


def test_an_orphan_on_a_node_is_adopted_and_a_relabelled_pod_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=1) as each:
            orphan = Pod(
                metadata=ObjectMeta(name="orphan", namespace=NAMESPACE, labels=LABELS), spec=template().spec
            )
            orphan.spec.node_name = "n0"
            await each.create(orphan)
            owner = await each.create(daemon_set(strategy="OnDelete"))
            (pod,) = await each.pods()
            reference = controller_of(pod)
            assert reference is not None
            assert (pod.metadata.name, reference.uid) == ("orphan", owner.metadata.uid)
            body = {"metadata": {"labels": {"app": "other"}}}
            await each.cluster.client.patch(Pod, "orphan", body, namespace=NAMESPACE)
            await each.cluster.pass_time(5)
            owners = sorted(controller_of(pod) is None for pod in await each.pods())
            assert owners == [False, True]

    run_virtual(main)


def test_of_two_pods_on_a_node_the_older_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=1) as each:
            await each.create(daemon_set())
            second = Pod(
                metadata=ObjectMeta(name="aa", namespace=NAMESPACE, labels=LABELS), spec=template().spec
            )
            second.spec.node_name = "n0"
            await each.create(second)
            assert [pod.metadata.name == "aa" for pod in await each.pods()] == [False]

    run_virtual(main)


def test_failed_pods_are_replaced_but_less_and_less_often() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=1, start_seconds=SECOND_NS) as each:
            made: list[str] = []
            each.kubelets.pods.add_handler(lambda pod: made.append(pod.metadata.name))
            await each.create(daemon_set(), seconds=1)
            for _ in range(200):
                for pod in await each.pods():
                    await each.kubelets.finish(pod, "Failed")
                await each.cluster.pass_time(5)
            # 1, 2, 4, ... 512 seconds apart in a thousand seconds.
            assert 8 <= len(made) <= 12
            (event,) = (await each.events("FailedDaemonPod"))[:1]
            assert event.message.startswith(f"Found failed daemon pod {NAMESPACE}/web-")
            assert event.message.endswith("on node n0, will try to kill it")

    run_virtual(main)


def test_a_pod_that_succeeded_is_replaced_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=1) as each:
            await each.create(daemon_set())
            (before,) = await each.pods()
            await each.kubelets.finish(before, "Succeeded")
            await each.cluster.pass_time(5)
            (after,) = await each.pods()
            assert after.metadata.uid != before.metadata.uid
            assert await each.events("SucceededDaemonPod")

    run_virtual(main)


def test_availability_waits_for_min_ready_seconds() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set(min_ready_seconds=30), seconds=10)
            assert counts((await found(each)).status)[2:4] == (3, 0)
            await each.cluster.pass_time(30)
            assert counts((await found(each)).status)[2:4] == (3, 3)

    run_virtual(main)


async def _requests(each: Workloads, seconds: float, act: Callable[[], Awaitable[None]]) -> list[str]:
    """What the controller asks of the server while `act` happens and afterwards."""
    asked: list[str] = []

    async def listen(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        if "/events" not in request.path:
            asked.append(f"{request.method} {request.path}")
        return await send(request)

    each.cluster.transports["daemon-set-controller"].alter = listen
    await act()
    await each.cluster.pass_time(seconds)
    each.cluster.transports["daemon-set-controller"].alter = None
    return asked


def test_heartbeats_of_nodes_wake_nobody() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=20) as each:
            await each.create(daemon_set())
            (crew,) = each.cluster.runner._crews["daemon-set-controller"]
            before = crew.work.queue.stats()

            async def beat() -> None:
                for number in range(20):
                    for status in ("True", "False", "True"):
                        conditions = [{"type": "Ready", "status": status, "reason": f"beat{number}"}]
                        await patch_node(
                            each, f"n{number}", {"status": {"conditions": conditions}}, status=True
                        )

            assert await _requests(each, 30, beat) == []
            after = crew.work.queue.stats()
            assert (after.adds, after.retries) == (before.adds, before.retries)

    run_virtual(main)


def test_a_refused_template_is_tried_less_and_less_with_one_event_and_one_condition() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            refused = template()
            refused.spec.priority_class_name = "nobody-made-this"
            asked = await _requests(each, HOUR, lambda: _create(each, daemon_set(template=refused)))
            tries = [one for one in asked if one.startswith("POST") and one.endswith("/pods")]
            assert 15 <= len(tries) <= 25
            (event,) = await each.events("FailedCreate")
            assert "nobody-made-this" in event.message
            assert event.count > 1 or len(tries) == 1
            (condition,) = (await found(each)).status.conditions
            assert (condition.type, condition.status, condition.reason) == (
                "ReplicaFailure",
                "True",
                "FailedCreate",
            )
            assert (await found(each)).status.desired_number_scheduled == 3
            await each.change(DaemonSet, {"template": {"spec": {"priorityClassName": None}}}, 10)
            assert (await found(each)).status.conditions == []
            assert len(await each.pods()) == 3

    run_virtual(main)


async def _create(each: Workloads, owner: DaemonSet) -> None:
    await each.cluster.client.create(owner)
