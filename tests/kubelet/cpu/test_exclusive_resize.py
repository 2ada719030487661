"""Resize of exclusive CPUs in place (KEP-5554): growing, shrinking, what is refused and what is deferred."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.disk import MemoryDisk
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.cpu.static_nodes import (
    STATE_FILE,
    in_force,
    requirements,
    resized,
    resizing_node,
    started,
    static_cpus,
    static_node,
)
from tests.kubelet.hosting import Hosted, hosted

#: 16 CPUs, two threads a core: 0 and 8, 1 and 9, ...
HYPER = CPUDescription(cores_per_numa=8, threads=2)
#: 16 CPUs on two NUMA nodes
TWO_NODES = CPUDescription(sockets=2, cores_per_numa=4, threads=2)


def data(each: Hosted) -> dict[str, Any]:
    stored = each.machines.disk("n1").read(STATE_FILE)
    assert stored is not None
    found: dict[str, Any] = json.loads(json.loads(stored)["data"])
    return found


def shown(each: Hosted, pod: Pod, container: str = "c0") -> str:
    return static_cpus(each).assigned_cpuset(pod.metadata.uid, container)


def test_growing_adds_to_the_set_and_shrinking_keeps_what_the_container_started_with() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(machine=HYPER)) as each:
            pod = await started(each, "p", "2")
            uid = pod.metadata.uid
            cpus = static_cpus(each)
            seen = [CPUSet.parse(shown(each, pod))]
            assert str(seen[0]) == "1,9"
            for count in ("3", "5", "8"):
                assert cpus.resize(resized(pod, count)) is None
                seen.append(CPUSet.parse(shown(each, pod)))
                assert seen[-2] < seen[-1]
                assert len(seen[-1]) == int(count)
                assert CPUSet.parse(data(each)["entries"][uid]["c0"]) == seen[-1]
            assert not cpus.is_applied(uid), "not before the next pass"
            await clock.sleep(10)
            assert cpus.is_applied(uid)
            assert await in_force(each, "p") == str(seen[-1])
            for count in ("6", "3", "2"):
                assert cpus.resize(resized(pod, count)) is None
                smaller = CPUSet.parse(shown(each, pod))
                assert seen[0] <= smaller < seen[-1]
                assert len(smaller) == int(count)
                seen.append(smaller)
            assert data(each)["defaultCpuSet"] == "0,2-8,10-15"
            assert data(each)["baselines"] == {uid: {"c0": {"baseline": "1,9"}}}
            assert cpus.is_held(uid, "c0"), "until the set is applied"
            await clock.sleep(10)
            assert await in_force(each, "p") == "1,9"
            assert not cpus.is_held(uid, "c0")

    run_virtual(main)


def test_added_cpus_are_threads_of_the_same_core_first_then_of_the_same_numa_node() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(machine=TWO_NODES)) as each:
            pod = await started(each, "a", "1")
            assert shown(each, pod) == "8", "CPU 0 is reserved"
            await started(each, "b", "8")
            far = await started(each, "c", "1")
            assert shown(each, far) == "1", "NUMA node 1 is full"
            assert static_cpus(each).resize(resized(far, "3")) is None
            assert shown(each, far) == "1-2,9"
            assert static_cpus(each).resize(resized(pod, "3")) is None
            assert shown(each, pod) == "3,8,11", "a whole core"

    run_virtual(main)


def test_the_worked_example_of_four_to_three_keeps_the_originals() -> None:
    async def main(clock: VirtualClock) -> None:
        machine = CPUDescription(cores_per_numa=10, threads=2)
        async with hosted(clock, resizing_node(machine=machine)) as each:
            pod = await started(each, "p", "2")
            assert shown(each, pod) == "1,11"
            assert static_cpus(each).resize(resized(pod, "4")) is None
            assert shown(each, pod) == "1-2,11-12"
            assert static_cpus(each).resize(resized(pod, "3")) is None
            assert shown(each, pod) == "1-2,11"

    run_virtual(main)


@pytest.mark.parametrize(
    ("cpu", "detail", "message"),
    [
        ("1", "prohibitedCPUAllocationError", 'container "c0" started with CPUs 1-2 and asks for 1'),
        ("1500m", "inconsistentCPUAllocationError", "asks for 1500m, a part of one"),
        ("20", "resizeAllocateCPUsError", "requested=18, available=4"),
    ],
)
def test_a_resize_that_cannot_be_is_infeasible_and_changes_nothing(
    cpu: str, detail: str, message: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node()) as each:
            pod = await started(each, "p", "2", "1")
            before = data(each)
            refusal = static_cpus(each).resize(resized(pod, cpu, "2"))
            assert refusal is not None
            assert (refusal.is_infeasible, refusal.reason, refusal.detail) == (True, "Infeasible", detail)
            assert refusal.message.startswith(f"{detail}: ")
            assert message in refusal.message
            assert data(each) == before
            assert (shown(each, pod), shown(each, pod, "c1")) == ("1-2", "3")
            assert static_cpus(each).resize(resized(pod, "2", "2")) is None, "asked for again, by itself"

    run_virtual(main)


def test_a_shared_container_cannot_become_exclusive() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node()) as each:
            pod = await started(each, "p", "500m")
            refusal = static_cpus(each).resize(resized(pod, "1"))
            assert refusal is not None
            assert refusal.detail == "inconsistentCPUAllocationError"
            assert static_cpus(each).resize(resized(pod, "700m")) is None

    run_virtual(main)


def test_without_the_originals_a_resize_is_infeasible() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node()) as each:
            pod = await started(each, "p", "2")
            del static_cpus(each).cpus.state.baselines[pod.metadata.uid]
            refusal = static_cpus(each).resize(resized(pod, "3"))
            assert refusal is not None
            assert refusal.detail == "getOriginalCPUSetError"

    run_virtual(main)


def test_without_the_gate_no_cpus_are_moved() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            pod = await started(each, "p", "2")
            before = data(each)
            assert static_cpus(each).resize(resized(pod, "3")) is None
            assert data(each) == before
            assert "baselines" not in before

    run_virtual(main)


def test_full_physical_cpus_stay_whole() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
        async with hosted(clock, resizing_node(machine=HYPER, **config)) as each:
            pod = await started(each, "p", "2")
            refusal = static_cpus(each).resize(resized(pod, "3"))
            assert refusal is not None
            assert "requested 3 cpus not multiple cpus per core = 2" in refusal.message
            assert static_cpus(each).resize(resized(pod, "14")) is None, "all but the core of CPU 0"
            assert shown(each, pod) == "1-7,9-15"
            refusal = static_cpus(each).resize(resized(pod, "16"))
            assert refusal is not None
            assert "available physical CPUs = 0" in refusal.message
            assert static_cpus(each).resize(resized(pod, "4")) is None
            assert shown(each, pod) == "1-2,9-10"

    run_virtual(main)


def test_a_single_numa_node_cannot_be_left_and_a_best_effort_may() -> None:
    async def main(clock: VirtualClock) -> None:
        for policy in ("single-numa-node", "restricted", "best-effort"):
            node = resizing_node(machine=TWO_NODES, topologyManagerPolicy=policy)
            async with hosted(clock, node) as each:
                pod = await started(each, "p", "4")
                assert shown(each, pod) == "1-2,9-10"
                assert static_cpus(each).resize(resized(pod, "6")) is None
                assert CPUSet.parse(shown(each, pod)) < CPUSet.parse("0-3,8-11")
                refusal = static_cpus(each).resize(resized(pod, "9"))
                if policy == "single-numa-node":
                    assert refusal is not None
                    assert refusal.message == (
                        "resizeAllocateCPUsError: Resources cannot be allocated with Topology locality"
                    )
                else:
                    assert refusal is None, "more than one NUMA node has"
                    assert CPUSet.parse("1-3,8-11") < CPUSet.parse(shown(each, pod))
                    assert static_cpus(each).resize(resized(pod, "5")) is None
                    assert CPUSet.parse(shown(each, pod)) < CPUSet.parse("0-3,8-11"), "back on one"

    run_virtual(main)


def test_a_pod_scope_resize_stays_where_the_pod_is() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod"}
        async with hosted(clock, resizing_node(machine=TWO_NODES, **config)) as each:
            pod = await started(each, "p", "2", "2")
            assert static_cpus(each).resize(resized(pod, "4", "3")) is None
            both = CPUSet.parse(shown(each, pod)) | CPUSet.parse(shown(each, pod, "c1"))
            assert both < CPUSet.parse("0-3,8-11")
            assert len(both) == 7
            refusal = static_cpus(each).resize(resized(pod, "5", "4"))
            assert refusal is not None
            assert static_cpus(each).resize(resized(pod, "2", "3")) is None

    run_virtual(main)


def test_distributed_cpus_are_added_on_both_numa_nodes() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {"cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"}}
        async with hosted(clock, resizing_node(machine=TWO_NODES, **config)) as each:
            pod = await started(each, "p", "10")
            for count in (14, 12):
                assert static_cpus(each).resize(resized(pod, str(count))) is None
                cpus = CPUSet.parse(shown(each, pod))
                assert len(cpus & CPUSet.parse("4-7,12-15")) == count // 2

    run_virtual(main)


def test_cpus_of_init_containers_stay_with_the_pod_when_a_container_gives_them_up() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node()) as each:
            first = Container(name="i", image="image", resources=requirements("3"))
            pod = await started(each, "p", "1", init_containers=[first])
            assert shown(each, pod) == "1"
            assert static_cpus(each).resize(resized(pod, "3")) is None
            assert shown(each, pod) == "1,4-5"
            assert static_cpus(each).resize(resized(pod, "1")) is None
            assert data(each)["defaultCpuSet"] == "0,4-7"

    run_virtual(main)


def test_a_resize_whose_state_cannot_be_written_changes_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node()) as each:
            pod = await started(each, "p", "2")

            def full(self: MemoryDisk, path: str, data: bytes) -> None:
                raise OSError(28, "No space left on device")

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(MemoryDisk, "write", full)
                refusal = static_cpus(each).resize(resized(pod, "4"))
            assert refusal is not None
            assert "No space left" in refusal.message
            assert shown(each, pod) == "1-2"
            assert static_cpus(each).resize(resized(pod, "4")) is None

    run_virtual(main)


def test_a_restarted_kubelet_goes_on_with_what_was_allocated() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, resizing_node(topologyManagerPolicy="restricted")) as each:
            pod = await started(each, "p", "2")
            assert static_cpus(each).resize(resized(pod, "4")) is None
            # The pod of the API still asks for two, as if the kubelet had stopped before the allocation was recorded.
            await each.host.restart_node(resizing_node(topologyManagerPolicy="restricted"))
            await clock.sleep(12)
            assert (await each.pod("p")).status.phase == "Running"
            assert shown(each, pod) == "1-2"
            assert await in_force(each, "p") == "1-2"

    run_virtual(main)


def test_an_uncore_cache_is_filled_first_where_that_is_preferred() -> None:
    async def main(clock: VirtualClock) -> None:
        machine = CPUDescription(cores_per_numa=8, uncore=4)
        config: dict[str, Any] = {"cpuManagerPolicyOptions": {"prefer-align-cpus-by-uncorecache": "true"}}
        async with hosted(clock, resizing_node(machine=machine, **config)) as each:
            await started(each, "a", "2")
            pod = await started(each, "b", "2")
            assert shown(each, pod) == "4-5"
            assert static_cpus(each).resize(resized(pod, "4")) is None
            assert shown(each, pod) == "4-7"

    run_virtual(main)
