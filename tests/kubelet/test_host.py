"""Kubelets against a real API server: nodes register, pods run and go, and what was cut off catches up."""

from __future__ import annotations

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import hosted, specification


def test_a_node_registers_is_ready_and_keeps_its_lease() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            node = await each.client.get(Node, "n1")
            ready = {condition.type: condition.status for condition in node.status.conditions}
            assert ready["Ready"] == "True"
            first = await each.client.get(Lease, "n1", "kube-node-lease")
            assert first.metadata.owner_references[0].uid == node.metadata.uid
            await clock.sleep(60)
            later = await each.client.get(Lease, "n1", "kube-node-lease")
            renewals = int(later.metadata.resource_version) - int(first.metadata.resource_version)
            assert later.spec.renew_time != first.spec.renew_time
            assert 6 <= renewals <= 9  # six renewals, and what the node itself had to say

    run_virtual(main)


def test_a_bound_pod_runs_and_is_deleted_when_asked_to_go() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await each.run_pod("p", "n1")
            await clock.sleep(1)
            pod = await each.pod("p")
            assert pod.status.phase == "Running"
            assert pod.status.container_statuses[0].ready
            await each.client.delete(Pod, "p", "default")
            await clock.sleep(31)
            assert not (await each.client.list(Pod)).items
            assert len(each.runtime) == 0
            assert len(each.host.pods) == 0

    run_virtual(main)


def test_a_container_that_crashes_is_started_again_after_a_while() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await each.run_pod("crashes", "n1", c="crashes=2,crash-after=1s")
            await clock.sleep(8)
            status = (await each.pod("crashes")).status.container_statuses[0]
            waiting = status.state.waiting
            assert waiting is not None
            assert waiting.reason == "CrashLoopBackOff"
            await clock.sleep(60)
            status = (await each.pod("crashes")).status.container_statuses[0]
            assert status.restart_count == 2
            assert status.state.running is not None

    run_virtual(main)


def test_a_kubelet_that_is_restarted_finds_its_pods_running() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await each.run_pod("p", "n1")
            await clock.sleep(5)
            before = (await each.pod("p")).status.container_statuses[0]
            await each.host.restart_node(specification("n1"))
            await clock.sleep(30)
            after = (await each.pod("p")).status.container_statuses[0]
            assert after.container_id == before.container_id
            assert after.restart_count == 0
            assert after.ready

    run_virtual(main)


def test_a_node_that_is_cut_off_tells_nothing_and_catches_up_later() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await each.run_pod("ends", "n1", c="run-time=20s")
            await each.run_pod("deleted", "n1")
            await clock.sleep(5)
            lease = await each.client.get(Lease, "n1", "kube-node-lease")
            each.host.cut_off("n1")
            await each.client.delete(Pod, "deleted", "default")
            await clock.sleep(120)
            assert (await each.pod("ends")).status.phase == "Running"
            assert (await each.pod("deleted")).metadata.deletion_timestamp
            silent = await each.client.get(Lease, "n1", "kube-node-lease")
            assert silent.spec.renew_time == lease.spec.renew_time
            each.host.reconnect("n1")
            await clock.sleep(60)
            ended = (await each.pod("ends")).status.container_statuses[0]
            assert ended.restart_count >= 1
            names = [pod.metadata.name for pod in (await each.client.list(Pod)).items]
            assert names == ["ends"]

    run_virtual(main)
