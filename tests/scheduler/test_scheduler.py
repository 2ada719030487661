"""The scheduler against a real API server: pods get nodes, and what is said about those that do not."""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.settings import ProfileSettings, SchedulerSettings, default_profile
from tests.scheduler.running import Cluster, cluster, node, pod


def attempts(world: Cluster, name: str) -> int:
    queue = world.scheduler.engine.queue
    waiting = [*queue.pods_in(Place.UNSCHEDULABLE), *queue.pods_in(Place.BACKOFF)]
    return next(each.attempts for each in waiting if each.pod.name == name)


def test_pods_are_bound_and_told_so() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b"))
            await world.add_pods(*(pod(f"p{number}") for number in range(6)))
            places = await world.places()
            assert sorted(places.values()) == ["a", "a", "a", "b", "b", "b"]
            assert await world.events("p0") == [
                ("Normal", "Scheduled", f"Successfully assigned default/p0 to {places['p0']}")
            ]
            condition = await world.condition("p0")
            assert condition is not None
            assert condition.status == "True"
            assert world.scheduler.engine.table.sizes() == {"nodes": 2, "pods": 6, "assumed_pods": 0}
            assert len(world.scheduler.engine.queue) == 0

    run_virtual(main)


def test_a_pod_that_fits_nowhere_is_told_why_in_kubernetes_words() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
            await world.add_nodes(
                *(node(f"small{number}", allocatable={"cpu": "1", "pods": "1"}) for number in range(2)),
                *(node(f"tainted{number}", taints=taints) for number in range(3)),
            )
            await world.add_pods(pod("p", "2"))
            text = (
                "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s). "
                "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling. "
                "In detail: 3 node(s) had untolerated taint {k: v}."
            )
            assert await world.events("p") == [("Warning", "FailedScheduling", text)]
            condition = await world.condition("p")
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "Unschedulable")
            assert (condition.message, condition.observed_generation) == (text, 1)

    run_virtual(main)


def test_without_nodes_that_is_said_and_the_first_node_wakes_the_pod() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_pods(pod("p"))
            assert [text for _, _, text in await world.events("p")] == ["no nodes available to schedule pods"]
            await world.pass_time(250)
            assert attempts(world, "p") == 1, "nobody tries it as long as nothing happens"
            await world.add_nodes(node("a"))
            assert await world.where("p") == "a"

    run_virtual(main)


def test_only_what_may_help_wakes_a_pod() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "10"}))
            await world.add_pods(pod("p", "2"))
            await world.pass_time(20)
            for _ in range(3):
                heartbeat = {"type": "Ready", "status": "True", "lastHeartbeatTime": world_time(clock)}
                await world.patch_node("a", {"status": {"conditions": [heartbeat]}}, status=True)
            await world.patch_node("a", {"metadata": {"labels": {"zone": "z"}}})
            assert attempts(world, "p") == 1, "heartbeats and labels do not help a pod that lacks CPU"
            await world.patch_node("a", {"status": {"allocatable": {"cpu": "4", "pods": "10"}}}, status=True)
            assert await world.where("p") == "a"

    def world_time(clock: VirtualClock) -> str:
        from nodeward.base.timestamp import rfc3339

        return rfc3339(clock.now_ns())

    run_virtual(main)


def test_a_pod_that_leaves_makes_room_for_one_that_waits() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "10"}))
            await world.add_pods(pod("first", "1"), pod("second", "1"))
            assert await world.places() == {"first": "a", "second": ""}
            await world.client.delete(Pod, "first", "default", grace_period=0)
            await world.pass_time(3)
            assert await world.places() == {"second": "a"}

    run_virtual(main)


def test_a_pod_that_ended_no_longer_takes_room() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "10"}))
            await world.add_pods(pod("first", "1"), pod("second", "1"))
            await world.client.patch(
                Pod,
                "first",
                {"status": {"phase": "Succeeded"}},
                namespace="default",
                patch_type=PatchType.MERGE,
                subresource="status",
            )
            await world.pass_time(3)
            assert await world.where("second") == "a"

    run_virtual(main)


def test_pods_of_other_schedulers_are_left_alone_and_several_profiles_share_the_nodes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:
            mine = default_profile(world.gates, "mine")
            yours = ProfileSettings("yours", mine.plugins, {"NodeResourcesFit": frozenset({"filter"})})
            world.scheduler = world.new_scheduler(SchedulerSettings((mine, yours), leader_elect=False))
            await world.scheduler.start()
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "10"}))
            await world.add_pods(
                pod("fits", "1", schedulerName="mine"),
                pod("too-much", "1", schedulerName="mine"),
                pod("unchecked", "1", schedulerName="yours"),
                pod("foreign", schedulerName="theirs"),
            )
            assert await world.places() == {"fits": "a", "too-much": "", "unchecked": "a", "foreign": ""}
            assert await world.condition("foreign") is None
            (told,) = await world.events("unchecked")
            assert told[1] == "Scheduled"

    run_virtual(main)


def test_gated_pods_wait_until_their_gates_are_gone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p", schedulingGates=[{"name": "example.com/wait"}]))
            assert world.scheduler.engine.queue.counts()["gated"] == 1
            assert await world.events("p") == []
            await world.client.patch(
                Pod,
                "p",
                {"spec": {"schedulingGates": []}},
                namespace="default",
                patch_type=PatchType.MERGE,
            )
            await world.pass_time()
            assert await world.where("p") == "a"

    run_virtual(main)


def test_a_scheduler_that_comes_later_knows_what_is_there() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "2", "pods": "10"}))
            await world.add_pods(pod("one", "1"))
            await world.scheduler.stop()
            await world.add_pods(pod("two", "1"), pod("three", "1"))
            assert await world.where("two") == ""
            world.scheduler = world.new_scheduler(seed=6)
            await world.scheduler.start()
            await world.pass_time()
            assert sorted((await world.places()).values()) == ["", "a", "a"], (
                "the first one still takes its room"
            )

    run_virtual(main)


def test_a_pod_made_again_under_its_name_is_another_pod() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "10"}))
            await world.add_pods(pod("p", "4"))
            await world.client.delete(Pod, "p", "default", grace_period=0)
            await world.client.create(pod("p", "1"))
            await world.pass_time()
            assert await world.where("p") == "a"
            assert len(world.scheduler.engine.queue) == 0

    run_virtual(main)


def test_a_deleted_pod_that_waited_is_forgotten() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_pods(pod("p"))
            assert len(world.scheduler.engine.queue) == 1
            await world.client.delete(Pod, "p", "default", grace_period=0)
            await world.pass_time()
            assert len(world.scheduler.engine.queue) == 0

    run_virtual(main)
