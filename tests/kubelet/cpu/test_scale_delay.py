"""The scale-down delay (KEP-6122) in a kubelet: what waits, for how long, and what ends the waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.cpu.scale_delay import ScaleDelays
from nodeward.kubelet.pod_manager import PodManager
from nodeward.kubelet.runtime.interface import ResourcesRefused
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.cpu.static_nodes import (
    in_force,
    resized,
    resizing_node,
    started,
    static_cpus,
)
from tests.kubelet.cpu.test_exclusive_resize import data, shown
from tests.kubelet.hosting import Hosted, hosted


async def to_pass(each: Hosted) -> None:
    """Wait until just after the next reconcile pass."""
    seconds = each.clock.monotonic_ns() / SECOND_NS
    await each.clock.sleep(10.05 - seconds % 10)


async def grown(each: Hosted, name: str = "p", to: str = "4") -> Pod:
    """A pod that started with two CPUs and has more, just after a pass."""
    pod = await started(each, name, "2")
    assert static_cpus(each).resize(resized(pod, to)) is None
    await to_pass(each)
    return pod


def seconds(clock: VirtualClock) -> float:
    return round(clock.monotonic_ns() / SECOND_NS, 1)


class Moves:
    """The CPUs the runtime was told to move containers to, and when."""

    def __init__(self, each: Hosted) -> None:
        self.told: list[tuple[float, str | None]] = []
        real = each.runtime.update_resources

        def update(uid: str, container: str, resources: ContainerResources) -> None:
            self.told.append((seconds(each.clock), resources.cpuset))
            real(uid, container, resources)

        each.runtime.update_resources = update  # type: ignore[method-assign]


def test_a_scale_down_waits_in_memory_and_is_applied_by_the_pass_after_its_delay() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="5s")) as each:
            pod = await grown(each)
            uid, cpus, before = pod.metadata.uid, static_cpus(each), data(each)
            moves = Moves(each)
            await clock.sleep(8)  # case B: the delay is running at the next pass
            assert cpus.resize(resized(pod, "3")) is None
            assert (shown(each, pod), await in_force(each, "p")) == ("1-3", "1-4")
            assert data(each) == before
            assert not cpus.is_applied(uid)
            assert cpus.is_held(uid, "c0")
            held = cpus.cpu_map(clock.monotonic_ns()).containers[0]
            assert (str(held.assigned), str(held.held)) == ("1-4", "4")
            await to_pass(each)
            assert moves.told == []
            await to_pass(each)
            assert [cpuset for _, cpuset in moves.told] == ["1-3"]
            assert data(each)["entries"][uid]["c0"] == "1-3"
            assert data(each)["defaultCpuSet"] == "0,4-7"
            assert cpus.is_applied(uid)
            assert not cpus.is_held(uid, "c0")
            await clock.sleep(30)
            assert len(moves.told) == 1

    run_virtual(main)


def test_a_delay_that_ends_between_two_passes_is_not_noticed() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="5s")) as each:
            pod = await grown(each)
            moves = Moves(each)
            await clock.sleep(2)
            assert static_cpus(each).resize(resized(pod, "3")) is None
            await to_pass(each)
            assert [cpuset for _, cpuset in moves.told] == ["1-3"]

    run_virtual(main)


def test_a_second_scale_down_replaces_the_first_and_starts_the_delay_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each, to="6")
            cpus = static_cpus(each)
            moves = Moves(each)
            await clock.sleep(1)
            assert cpus.resize(resized(pod, "4")) is None
            await clock.sleep(8)
            assert cpus.resize(resized(pod, "3")) is None
            assert shown(each, pod) == "1-3"
            await to_pass(each)
            await clock.sleep(8)
            assert moves.told == [], "the first delay is over by now, the second is not"
            await to_pass(each)
            assert [cpuset for _, cpuset in moves.told] == ["1-3"]

    run_virtual(main)


def test_a_scale_up_ends_the_waiting_or_waits_itself() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="5s")) as each:
            pod = await grown(each, to="5")
            uid, cpus = pod.metadata.uid, static_cpus(each)
            moves = Moves(each)
            await clock.sleep(6)
            assert cpus.resize(resized(pod, "2")) is None
            await clock.sleep(2)
            assert cpus.resize(resized(pod, "3")) is None
            assert shown(each, pod) == "1-3", "still less than it has"
            pending = cpus.cpu_map(clock.monotonic_ns()).containers[0].pending
            assert pending is not None
            assert pending.left_ns == 5 * SECOND_NS
            assert cpus.resize(resized(pod, "5")) is None, "as many as it has"
            assert shown(each, pod) == "1-5"
            assert cpus.is_applied(uid)
            assert cpus.resize(resized(pod, "4")) is None
            assert cpus.resize(resized(pod, "6")) is None
            assert data(each)["entries"][uid]["c0"] == "1-6", "at once"
            await clock.sleep(30)
            assert [cpuset for _, cpuset in moves.told] == ["1-6"]

    run_virtual(main)


def test_a_change_of_something_else_does_not_start_the_delay_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each)
            cpus = static_cpus(each)
            assert cpus.resize(resized(pod, "3")) is None
            await clock.sleep(6)
            same = resized(pod, "3")
            same.spec.containers[0].resources.limits["memory"] *= 2
            assert cpus.resize(same) is None
            pending = cpus.cpu_map(clock.monotonic_ns()).containers[0].pending
            assert pending is not None
            assert pending.left_ns == 4 * SECOND_NS

    run_virtual(main)


def test_held_cpus_make_others_wait_and_not_give_up() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each)
            other = await started(each, "other", "2")
            cpus = static_cpus(each)
            assert cpus.resize(resized(pod, "2")) is None
            refusal = cpus.resize(resized(other, "5"))
            assert refusal is not None
            assert (refusal.is_infeasible, refusal.reason) == (False, "OutOfcpu")
            assert "requested=3, available=1" in refusal.message
            refusal = cpus.resize(resized(other, "6"))
            assert refusal is not None
            assert refusal.is_infeasible, "more than will ever come free"
            assert shown(each, pod) == "1-2", "trying has changed nothing"
            pending = cpus.cpu_map(clock.monotonic_ns()).containers
            assert [each.pending is not None for each in pending].count(True) == 1
            await to_pass(each)
            await to_pass(each)
            assert cpus.resize(resized(other, "5")) is None
            assert shown(each, other) == "3-7"

    run_virtual(main)


def test_a_restart_inside_the_delay_starts_a_whole_new_one() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {"delay": "10s", "topologyManagerPolicy": "restricted"}
        async with hosted(clock, resizing_node(**config)) as each:
            pod = await grown(each)
            assert static_cpus(each).resize(resized(pod, "2")) is None
            await clock.sleep(9)
            moves = Moves(each)
            await each.host.restart_node(resizing_node(**config))
            restarted = seconds(clock)
            await clock.sleep(1)
            # The API's pod asks for two, which is less than the four in the state file.
            assert (shown(each, pod), data(each)["entries"][pod.metadata.uid]["c0"]) == ("1-2", "1-4")
            await clock.sleep(30)
            assert await in_force(each, "p") == "1-2"
            (at,) = [at for at, cpuset in moves.told if cpuset == "1-2"]
            assert at - restarted >= 10

    run_virtual(main)


def test_a_kubelet_without_the_option_applies_what_another_left() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each)
            assert static_cpus(each).resize(resized(pod, "2")) is None
            await each.host.restart_node(resizing_node())
            await clock.sleep(1)
            assert data(each)["entries"][pod.metadata.uid]["c0"] == "1-2"
            await clock.sleep(10)
            assert await in_force(each, "p") == "1-2"

    run_virtual(main)


def test_a_pod_that_ends_inside_the_delay_gives_up_everything() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each)
            assert static_cpus(each).resize(resized(pod, "3")) is None
            await each.client.delete(Pod, "p", "default", grace_period=0)
            await clock.sleep(1)
            assert data(each) == {"policyName": "static", "defaultCpuSet": "0-7"}
            assert shown(each, pod) == ""
            await clock.sleep(30)
            assert data(each)["defaultCpuSet"] == "0-7"

    run_virtual(main)


def test_a_container_that_restarts_inside_the_delay_keeps_its_cpus_until_its_end() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            pod = await grown(each)
            assert static_cpus(each).resize(resized(pod, "3")) is None
            each.runtime.stop_container(pod.metadata.uid, "c0", 0)
            await clock.sleep(2)
            assert (await each.pod("p")).status.container_statuses[0].restart_count == 1
            assert await in_force(each, "p") == "1-4"
            await clock.sleep(20)
            assert await in_force(each, "p") == "1-3"

    run_virtual(main)


def test_a_container_that_does_not_run_gives_up_its_cpus_too() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="5s")) as each:
            pod = await started(each, "p", "2", "1", restart_policy="Never")
            cpus = static_cpus(each)
            assert cpus.resize(resized(pod, "4", "1")) is None
            assert cpus.resize(resized(pod, "2", "1")) is None
            each.runtime.stop_container(pod.metadata.uid, "c0", 0)
            await clock.sleep(20)
            assert data(each)["entries"][pod.metadata.uid] == {"c0": "1-2", "c1": "3"}
            assert cpus.is_applied(pod.metadata.uid)

    run_virtual(main)


def test_a_set_that_the_runtime_refuses_is_tried_again_and_the_pod_is_not_done() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="1s")) as each:
            pod = await grown(each)
            cpus, uid = static_cpus(each), pod.metadata.uid
            real = each.runtime.update_resources

            def refuse(uid: str, container: str, resources: ContainerResources) -> None:
                each.host.pods.on_runtime_event(ResourcesRefused(uid, container, "busy"))

            each.runtime.update_resources = refuse  # type: ignore[method-assign]
            assert cpus.resize(resized(pod, "3")) is None
            await to_pass(each)
            assert await in_force(each, "p") == "1-4"
            assert not cpus.is_applied(uid)
            assert cpus.is_held(uid, "c0")
            each.runtime.update_resources = real  # type: ignore[method-assign]
            await to_pass(each)
            assert await in_force(each, "p") == "1-3"
            assert cpus.is_applied(uid)

    run_virtual(main)


class Files:
    """Refuses to write the files of pods as long as it is told to."""

    def __init__(self, pods: PodManager) -> None:
        self.trouble = ""
        self.asked = 0
        self.late: list[Callable[[], None]] | None = None
        real = pods.refresh_own_fields

        def refresh(uid: str, written: Callable[[str], None]) -> None:
            self.asked += 1
            if self.trouble:
                written(self.trouble)
            elif self.late is not None:
                self.late.append(lambda: real(uid, written))
            else:
                real(uid, written)

        pods.refresh_own_fields = refresh  # type: ignore[method-assign]


@pytest.mark.parametrize("delay", ["2s", ""])
def test_no_cpu_is_taken_before_its_file_is_written_and_the_whole_delay_follows(delay: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay=delay)) as each:
            files = Files(each.host.pods)
            pod = await grown(each)
            cpus = static_cpus(each)
            files.trouble = "No space left on device"
            assert cpus.resize(resized(pod, "3")) is None
            await clock.sleep(25)
            assert await in_force(each, "p") == "1-4"
            assert files.asked > 3, "tried again"
            events = [
                event
                for event in (await each.client.list(Event, namespace="default")).items
                if event.reason == "FailedCPUSetNotice"
            ]
            assert {event.type for event in events} == {"Warning"}
            assert "No space left on device" in events[0].message
            files.trouble = ""
            await to_pass(each)
            await to_pass(each)
            assert await in_force(each, "p") == "1-3"
            asked = files.asked
            await clock.sleep(60)
            assert files.asked == asked

    run_virtual(main)


def test_the_delay_begins_when_the_file_is_written() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="10s")) as each:
            files = Files(each.host.pods)
            pod = await grown(each)
            moves = Moves(each)
            files.late = []
            assert static_cpus(each).resize(resized(pod, "3")) is None
            await clock.sleep(7)
            written = seconds(clock)
            for write in files.late:
                write()
            await clock.sleep(40)
            assert [at - written >= 10 for at, _ in moves.told] == [True]

    run_virtual(main)


def test_an_older_write_does_not_let_a_newer_set_through() -> None:
    delays = ScaleDelays()
    first = delays.announce("u", "c")
    delays.start("u", "c", CPUSet.of(1, 2), 0, 0)
    second = delays.announce("u", "c")
    delays.start("u", "c", CPUSet.of(1), 0, 0)
    assert delays.on_written("u", first, 1) == []
    assert delays.due(5) == []
    assert delays.on_written("u", second, 3) == ["c"]
    assert delays.due(5) == [("u", "c", CPUSet.of(1))]


def test_pods_can_opt_out_of_the_delay_where_the_gate_allows_it() -> None:
    async def main(clock: VirtualClock) -> None:
        for is_on in (False, True):
            gates = {"CPUManagerScaleDelayOptOut": is_on}
            async with hosted(clock, resizing_node(delay="10s", gates=gates)) as each:
                pod = await grown(each)
                pod.metadata.annotations["cpu-manager.kubernetes.io/skip-scale-delay"] = "true"
                assert static_cpus(each).resize(resized(pod, "3")) is None
                is_at_once = data(each)["entries"][pod.metadata.uid]["c0"] == "1-3"
                assert is_at_once is is_on

    run_virtual(main)


def test_events_and_a_histogram_tell_when_the_delay_began_and_when_the_set_was_applied() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(delay="5s")) as each:
            pod = await grown(each)
            await clock.sleep(8)
            assert static_cpus(each).resize(resized(pod, "3")) is None
            await to_pass(each)
            await to_pass(each)
            told = {
                (event.reason, event.message): event
                for event in (await each.client.list(Event, namespace="default")).items
            }
            started_event = told[
                "ScaleDownDelayStarted", "Container c0 keeps CPUs 1-4 for at least 5s, then it has 1-3"
            ]
            assert started_event.type == "Normal"
            assert started_event.involved_object.field_path == "spec.containers{c0}"
            assert ("CPUSetApplied", "Container c0 runs on CPUs 1-3") in told
            text = each.host.metrics.all.text().decode()
            assert "kubelet_cpu_manager_scale_down_delay_seconds_count 1.0" in text
            assert 'kubelet_cpu_manager_scale_down_delay_seconds_bucket{le="10.0"} 0.0' in text
            assert 'kubelet_cpu_manager_scale_down_delay_seconds_bucket{le="12.5"} 1.0' in text

    run_virtual(main)
