"""The static CPU manager policy in a kubelet: admission, containers on their CPUs, reconcile, restart, bad states."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.state_file import StateFileError, encode
from nodeward.kubelet.cpu.static_policy import InvalidState
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.disk import MemoryDisk
from nodeward.kubelet.runtime.interface import ResourcesApplied, ResourcesRefused
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.cpu.static_nodes import (
    STATE_FILE,
    agent_of,
    guaranteed,
    in_force,
    requirements,
    static_cpus,
    static_node,
)
from tests.kubelet.hosting import Hosted, hosted, specification


def _written(each: Hosted) -> dict[str, object]:
    stored = each.machines.disk("n1").read(STATE_FILE)
    assert stored is not None
    found: dict[str, object] = json.loads(json.loads(stored)["data"])
    return found


def test_containers_start_on_their_own_cpus_and_others_share_the_rest() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            assert _written(each) == {"policyName": "static", "defaultCpuSet": "0-7"}
            await each.client.create(guaranteed("own", "2", "1"))
            await clock.sleep(1)
            await each.run_pod("shared", "n1")
            await clock.sleep(1)
            assert await in_force(each, "own") == "1-2"
            assert await in_force(each, "own", "c1") == "3"
            assert await in_force(each, "shared", "c") == "0,4-7"
            uid = (await each.pod("own")).metadata.uid
            assert _written(each) == {
                "policyName": "static",
                "defaultCpuSet": "0,4-7",
                "entries": {uid: {"c0": "1-2", "c1": "3"}},
            }
            cpus = static_cpus(each)
            assert cpus.assigned_cpuset(uid, "c0") == "1-2"
            assert cpus.assigned_cpuset(uid, "none") == ""
            assert cpus.is_applied(uid)
            assert cpus.is_applied("nobody")

    run_virtual(main)


def test_containers_with_their_own_cpus_have_no_quota_and_their_status_shows_their_limit() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            await each.client.create(guaranteed("own", "2", "500m"))
            await clock.sleep(1)
            (found,) = await each.runtime.recover()
            own, fraction = (container.resources for container in found.containers)
            assert own == ContainerResources(2048, None, 64 << 20, "1-2")
            assert fraction == ContainerResources(512, 50_000, 64 << 20, "0,3-7")
            shown = (await each.pod("own")).status.container_statuses[0].resources
            assert shown == requirements("2")

    run_virtual(main)


def test_a_pass_moves_shared_containers_away_from_cpus_that_became_exclusive_and_back() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            await each.run_pod("shared", "n1")
            await clock.sleep(1)
            await each.client.create(guaranteed("own", "2"))
            await clock.sleep(1)
            assert await in_force(each, "shared", "c") == "0-7", "not before the next pass"
            await clock.sleep(10)
            assert await in_force(each, "shared", "c") == "0,3-7"
            await each.client.delete(Pod, "own", "default", grace_period=0)
            await clock.sleep(11)
            assert await in_force(each, "shared", "c") == "0-7"
            assert "entries" not in _written(each)

    run_virtual(main)


def test_what_the_runtime_refuses_is_tried_again_in_the_next_pass() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            await each.run_pod("shared", "n1")
            await each.client.create(guaranteed("own", "2"))
            await clock.sleep(1)
            asked: list[tuple[int, str | None]] = []
            real = each.runtime.update_resources

            def refuse(uid: str, container: str, resources: ContainerResources) -> None:
                asked.append((round(clock.monotonic_ns() / SECOND_NS), resources.cpuset))
                each.host.pods.on_runtime_event(ResourcesRefused(uid, container, "no such CPU"))

            each.runtime.update_resources = refuse  # type: ignore[method-assign]
            await clock.sleep(20)
            assert [cpus for _, cpus in asked] == ["0,3-7", "0,3-7"]
            assert asked[1][0] - asked[0][0] == 10
            assert await in_force(each, "shared", "c") == "0-7"
            each.runtime.update_resources = real  # type: ignore[method-assign]
            await clock.sleep(10)
            assert await in_force(each, "shared", "c") == "0,3-7"

    run_virtual(main)


def test_a_restarted_kubelet_finds_the_cpus_of_its_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            for name in ("a", "b", "c"):
                await each.client.create(guaranteed(name, "2"))
                await clock.sleep(1)
            await each.client.delete(Pod, "a", "default", grace_period=0)
            await clock.sleep(1)
            before = _written(each)
            old = static_cpus(each)
            told: list[str | None] = []
            real = each.runtime.update_resources

            def update(uid: str, container: str, resources: ContainerResources) -> None:
                told.append(resources.cpuset)
                real(uid, container, resources)

            each.runtime.update_resources = update  # type: ignore[method-assign]
            await each.host.restart_node(static_node())
            await clock.sleep(12)
            assert told == [], "they are where they should be"
            assert static_cpus(each) is not old
            assert _written(each) == before
            assert [await in_force(each, name) for name in "bc"] == ["3-4", "5-6"]
            assert (await each.pod("b")).status.phase == "Running"
            await each.client.create(guaranteed("d", "2"))
            await clock.sleep(1)
            assert await in_force(each, "d") == "1-2"

    run_virtual(main)


def test_cpus_of_pods_that_went_while_the_kubelet_was_away_are_free() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            await each.client.create(guaranteed("a", "6"))
            await clock.sleep(1)
            each.host.stop_node("n1")
            await each.client.delete(Pod, "a", "default", grace_period=0)
            await clock.sleep(1)
            await each.host.restart_node(static_node())
            await clock.sleep(1)
            assert _written(each)["defaultCpuSet"] == "0-7"

    run_virtual(main)


def test_cpus_stay_with_a_pod_that_ends_until_nothing_of_it_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            pod = guaranteed("a", "6")
            pod.metadata.annotations["simulation.nodeward.dev/c0"] = "stop-delay=20s"
            await each.client.create(pod)
            await clock.sleep(1)
            await each.client.delete(Pod, "a", "default")
            await clock.sleep(1)
            await each.host.restart_node(static_node())
            await clock.sleep(11)
            assert _written(each)["defaultCpuSet"] == "0,7"
            await clock.sleep(10)
            assert _written(each)["defaultCpuSet"] == "0-7"

    run_virtual(main)


@pytest.mark.parametrize(
    ("config", "cpus", "reason", "message"),
    [
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
            "3",
            "SMTAlignmentError",
            "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
        ),
        (
            {"topologyManagerPolicy": "single-numa-node"},
            "6",
            "TopologyAffinityError",
            "Resources cannot be allocated with Topology locality",
        ),
        (
            {},
            "8",
            "UnexpectedAdmissionError",
            "Allocate failed due to not enough cpus available to satisfy request: requested=8, available=7,"
            " which is unexpected",
        ),
    ],
)
def test_a_pod_that_cannot_get_its_cpus_fails_and_holds_none(
    config: dict[str, Any], cpus: str, reason: str, message: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        machine = CPUDescription(sockets=2, cores_per_numa=2, threads=2)
        async with hosted(clock, static_node(machine=machine, **config)) as each:
            await each.client.create(
                guaranteed("p", "1" if reason == "UnexpectedAdmissionError" else "2", cpus)
            )
            await clock.sleep(1)
            status = (await each.pod("p")).status
            if reason == "UnexpectedAdmissionError":
                assert "requested=8, available=6" in status.message
            else:
                assert status.message == f"Pod was rejected: {message}"
            assert (status.phase, status.reason) == ("Failed", reason)
            assert _written(each) == {"policyName": "static", "defaultCpuSet": "0-7"}
            events = (await each.client.list(Event, namespace="default")).items
            assert reason in {event.reason for event in events}

    run_virtual(main)


def test_a_pod_that_is_refused_for_another_reason_holds_no_cpus() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            refused = guaranteed("p", "2", node_selector={"disk": "ssd"})
            await each.client.create(refused)
            await clock.sleep(1)
            assert (await each.pod("p")).status.reason == "NodeAffinity"
            assert _written(each)["defaultCpuSet"] == "0-7"

    run_virtual(main)


def test_a_state_file_that_cannot_be_written_refuses_the_pod_and_nothing_is_allocated() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            disk = each.machines.disk("n1")
            real = MemoryDisk.write

            def full(self: MemoryDisk, path: str, data: bytes) -> None:
                if path == STATE_FILE:
                    raise OSError(28, "No space left on device")
                real(self, path, data)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(MemoryDisk, "write", full)
                await each.client.create(guaranteed("p", "2"))
                await clock.sleep(1)
            status = (await each.pod("p")).status
            assert status.reason == "UnexpectedAdmissionError"
            assert "No space left on device" in status.message
            await each.client.create(guaranteed("q", "7"))
            await clock.sleep(1)
            assert await in_force(each, "q") == "1-7"
            assert disk.read(STATE_FILE) is not None

    run_virtual(main)


def _state(default: str, **entries: str) -> bytes:
    state = CPUState(
        CPUSet.parse(default), {uid: {"c0": CPUSet.parse(text)} for uid, text in entries.items()}
    )
    return encode(state, "static").encode()


@pytest.mark.parametrize(
    ("stored", "error", "text"),
    [
        (b'{"policyName":"none","defaultCpuSet":"","checksum":0}', StateFileError, "configured policy"),
        (_state("0-7").replace(b"0-7", b"0-6"), StateFileError, "checkpoint is corrupted"),
        (b"\xff\xfe", StateFileError, "not UTF-8"),
        (_state("0-3"), InvalidState, "doesn't match with CPUs in state"),
        (_state("1-7", a="0"), InvalidState, "not all reserved cpus"),
    ],
)
def test_a_kubelet_does_not_start_with_a_bad_state_file_and_leaves_it_where_it_is(
    stored: bytes, error: type[Exception], text: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            disk = each.machines.disk("n1")
            disk.write(STATE_FILE, stored)
            for _ in range(2):
                with pytest.raises(error, match=text) as told:
                    each.host.add_node(static_node())
                assert STATE_FILE in str(told.value)
                assert "drain" in str(told.value)
            assert disk.read(STATE_FILE) == stored
            assert each.host.agent("n1") is None
            disk.remove(STATE_FILE)
            each.host.add_node(static_node())

    run_virtual(main)


def test_a_node_that_had_the_static_policy_does_not_start_without_it_before_the_file_is_gone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            text = 'configured policy "none" differs from state checkpoint policy "static"'
            with pytest.raises(StateFileError, match=text):
                await each.host.restart_node(specification("n1"))
            each.machines.disk("n1").remove(STATE_FILE)
            await each.host.restart_node(specification("n1"))

    run_virtual(main)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"reservedSystemCPUs": ""}, "unable to determine reserved CPU resources for static policy"),
        ({"reservedSystemCPUs": "9"}, "unknown CPU ID: 9"),
        (
            {"reservedSystemCPUs": "", "systemReserved": {"cpu": "0"}},
            "requires systemreserved.cpu . kubereserved.cpu to be greater than zero",
        ),
    ],
)
def test_a_kubelet_does_not_start_with_a_bad_reservation(config: dict[str, Any], text: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            with pytest.raises(ConfigError, match=text):
                each.host.add_node(static_node(**config))

    run_virtual(main)


def test_a_machine_without_a_description_is_one_socket_of_single_threaded_cores() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {"reservedSystemCPUs": "", "kubeReserved": {"cpu": "1500m"}}
        async with hosted(clock, static_node(machine=None, **config)) as each:
            await each.client.create(guaranteed("p", "1"))
            await clock.sleep(1)
            assert await in_force(each, "p") == "2"
            assert str(static_cpus(each).cpus.policy.reserved) == "0-1"

    run_virtual(main)


def test_an_idle_node_without_the_static_policy_has_no_disk() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            assert not each.machines.has_disk("n1")
            assert not agent_of(each).services.has_disk

    run_virtual(main)


def test_init_containers_leave_their_cpus_to_the_others() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            first = Container(name="i", image="image", resources=requirements("4"))
            await each.client.create(guaranteed("p", "2", init_containers=[first]))
            await clock.sleep(1)
            assert await in_force(each, "p") == "1-2"
            assert _written(each)["defaultCpuSet"] == "0,5-7"

    run_virtual(main)


def test_metrics_tell_requests_errors_and_where_exclusive_cpus_are() -> None:
    async def main(clock: VirtualClock) -> None:
        machine = CPUDescription(sockets=2, cores_per_numa=2, threads=2)
        config = {"topologyManagerPolicy": "single-numa-node"}
        async with hosted(clock, static_node(machine=machine, **config)) as each:
            await each.client.create(guaranteed("a", "2"))
            await each.client.create(guaranteed("b", "4"))
            await each.client.create(guaranteed("c", "6"))
            await clock.sleep(1)
            text = each.host.metrics.all.text().decode()
            for line in (
                "kubelet_cpu_manager_pinning_requests_total 2.0",
                "kubelet_cpu_manager_pinning_errors_total 0.0",
                "kubelet_cpu_manager_shared_pool_size_millicores 1000.0",
                "kubelet_cpu_manager_exclusive_cpu_allocation_count 6.0",
                'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 2.0',
                'kubelet_cpu_manager_allocation_per_numa{numa_node="1"} 4.0',
                'kubelet_container_aligned_compute_resources_count{boundary="numa_node",scope="container"} 2.0',
                'kubelet_container_aligned_compute_resources_failure_count{boundary="numa_node",scope="container"} 1.0',
                "kubelet_topology_manager_admission_requests_total 3.0",
                "kubelet_topology_manager_admission_errors_total 1.0",
            ):
                assert f"\n{line}\n" in text, line
            each.host.stop_node("n1")
            text = each.host.metrics.all.text().decode()
            assert "\nkubelet_cpu_manager_exclusive_cpu_allocation_count 0.0\n" in text

    run_virtual(main)


def test_metrics_of_whole_pods_are_there_with_their_gate() -> None:
    async def main(clock: VirtualClock) -> None:
        config: dict[str, Any] = {
            "featureGates": {"PodLevelResourceManagers": True},
            "topologyManagerPolicy": "best-effort",
            "topologyManagerScope": "pod",
        }
        async with hosted(clock, static_node(**config), gates="PodLevelResourceManagers=true") as each:
            assert "kubelet_resource_manager" not in each.host.metrics.all.text().decode()
            await each.client.create(guaranteed("own", "2"))
            whole = guaranteed("whole", "1", "500m", resources=requirements("3", "256Mi"))
            await each.client.create(whole)
            await clock.sleep(1)
            assert (await each.pod("whole")).status.phase == "Running"
            await each.client.create(guaranteed("most", "4", resources=requirements("4", "256Mi")))
            await clock.sleep(1)
            text = each.host.metrics.all.text().decode()
            for line in (
                'allocations_total{resource_name="cpu",source="node"} 1.0',
                'allocations_total{resource_name="cpu",source="pod"} 1.0',
                'allocation_errors_total{resource_name="cpu",source="pod"} 1.0',
                'container_assignments_total{assignment_type="node_exclusive",resource_name="cpu"} 1.0',
                'container_assignments_total{assignment_type="pod_exclusive",resource_name="cpu"} 1.0',
                'container_assignments_total{assignment_type="pod_shared",resource_name="cpu"} 1.0',
            ):
                assert f"\nkubelet_resource_manager_{line}\n" in text, line

    run_virtual(main)


def test_an_answer_to_another_change_does_not_end_a_move() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, static_node()) as each:
            await each.run_pod("shared", "n1")
            await each.client.create(guaranteed("own", "2"))
            await clock.sleep(1)
            asked: list[str | None] = []
            real = each.runtime.update_resources

            def late(uid: str, container: str, resources: ContainerResources) -> None:
                asked.append(resources.cpuset)

            each.runtime.update_resources = late  # type: ignore[method-assign]
            await clock.sleep(10)
            assert asked == ["0,3-7"]
            uid = (await each.pod("shared")).metadata.uid
            other = ResourcesApplied(uid, "c", "id", ContainerResources(cpu_shares=2, cpuset="0-7"))
            each.host.pods.on_runtime_event(other)
            await clock.sleep(10)
            assert asked == ["0,3-7"], "still under way"
            await clock.sleep(10)
            assert asked == ["0,3-7"] * 2, "no answer for a whole period"
            each.runtime.update_resources = real  # type: ignore[method-assign]
            await clock.sleep(20)
            assert await in_force(each, "shared", "c") == "0,3-7"

    run_virtual(main)
