"""Pods that fail right after they were made are not replaced in a hot loop (KEP-5471), and waiting has an end."""

from __future__ import annotations

from nodeward.api.apps_v1 import ReplicaSet
from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import Quantity
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.cluster.whole import whole_cluster
from tests.controllers.workloads import NAMESPACE, replica_set, template, workloads


def _failed(pod: Pod) -> bool:
    return pod.status.phase == "Failed"


def test_a_node_that_refuses_the_pods_of_a_replica_set_is_asked_less_and_less_often() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=(Pool(name="pool", nodes=1),)) as cluster:
            client = cluster.client("test")
            await clock.sleep(1)
            made = template()
            made.spec.node_name = "pool-0"
            made.spec.containers[0].resources = ResourceRequirements(requests={"cpu": Quantity.parse("99")})
            await client.create(replica_set(replicas=2, template=made))
            await clock.sleep(3600)
            pods = (await client.list(Pod, NAMESPACE)).items
            # Waits of 1, 2, 4 ... 256 s and then of 300 s: at most nine and eleven rounds of two, and the first.
            assert 2 * 15 <= len(pods) <= 2 * 21
            assert {pod.status.reason for pod in pods if _failed(pod)} == {"OutOfcpu"}

    run_virtual(main)


def test_a_pod_that_becomes_ready_ends_the_waiting_and_the_event_says_how_long_it_is() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: not _failed(pod)) as each:
            await each.create(replica_set(replicas=1), seconds=0.5)
            for seconds in (1, 2, 4):
                (pod,) = await each.pods()
                await each.kubelets.finish(pod, "Failed")
                await each.cluster.pass_time(seconds - 0.2)
                assert not await each.pods()
                await each.cluster.pass_time(0.5)
            told = [event.message.partition(", ")[2] for event in await each.events("BackOff")]
            assert "3 times in a row; the next ones are created in 4s" in told
            await each.cluster.pass_time(5)
            (pod,) = await each.pods()
            await each.kubelets.finish(pod, "Failed")
            await each.cluster.pass_time(1.5)
            assert len(await each.pods()) == 1

    run_virtual(main)


def test_a_pod_that_ran_for_a_while_is_replaced_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set(replicas=1), seconds=60)
            (pod,) = await each.pods()
            await each.kubelets.finish(pod, "Failed")
            await each.cluster.pass_time(0.5)
            assert len(await each.pods()) == 1

    run_virtual(main)


def test_a_changed_replica_set_does_not_wait_and_scaling_down_never_does() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: not _failed(pod)) as each:
            await each.create(replica_set(replicas=3), seconds=0.5)
            one, _, _ = await each.pods()
            await each.kubelets.finish(one, "Failed")
            await each.cluster.pass_time(0.3)
            assert len(await each.pods()) == 2
            await each.change(ReplicaSet, {"replicas": 1}, seconds=0.3)
            assert len(await each.pods()) == 1
            await each.change(ReplicaSet, {"replicas": 4}, seconds=0.3)
            assert len(await each.pods()) == 4

    run_virtual(main)
