"""Exclusive CPUs of containers: who gets them, who may use them again, when they return."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.cpu.assignment import AssignmentError
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.static_policy import InvalidState, StaticPolicy
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.topology_manager.hint_provider import ResourceRefused
from tests.kubelet.cpu.recorded_cases import recorded_pod, shown_state

FOUR_CORES = CPUDescription(cores_per_numa=4, threads=2).topology()
TWO_SOCKETS = CPUDescription(sockets=2, cores_per_numa=4, threads=2).topology()


def _pod(uid: str, *containers: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    return {"uid": uid, "c": [{"n": name, "k": kind, "cpu": cpu} for name, kind, cpu in containers], **more}


def _started(policy: StaticPolicy, *, keeps_baselines: bool = False) -> CPUState:
    state = CPUState(keeps_baselines=keeps_baselines)
    policy.start(state)
    return state


def _allocate(
    policy: StaticPolicy, state: CPUState, described: dict[str, Any], mask: int | None = None
) -> None:
    pod = recorded_pod(described)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        policy.allocate(state, pod, container, mask)


def test_whole_cpus_of_a_guaranteed_pod_leave_the_shared_set() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, _pod("a", ("whole", "app", "2"), ("part", "app", "1500m")))
    assert shown_state(state) == {"default": "0,2-4,6-7", "entries": {"a": {"whole": "1,5"}}}
    assert str(policy.available(state)) == "2-4,6-7"


def test_a_burstable_pod_stays_on_the_shared_set() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, {"uid": "a", "c": [{"n": "c", "k": "app", "cpu": "2", "lim": "3"}]})
    assert shown_state(state) == {"default": "0-7"}


def test_app_containers_use_the_cpus_of_ended_init_containers_but_not_of_sidecars() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, _pod("a", ("init", "init", "2"), ("app", "app", "2")))
    _allocate(policy, state, _pod("b", ("init", "init", "2"), ("side", "sidecar", "2"), ("app", "app", "2")))
    assert shown_state(state)["entries"] == {
        "a": {"init": "1,5", "app": "1,5"},
        "b": {"init": "2,6", "side": "2,6", "app": "3,7"},
    }


def test_removed_containers_return_only_what_their_pod_no_longer_holds() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, _pod("a", ("init", "init", "4"), ("app", "app", "2")))
    before = state.entries["a"]
    policy.remove(state, "a", "init")
    assert state.default == FOUR_CORES.all_cpus - before["app"]
    policy.remove(state, "a", "app")
    policy.remove(state, "a", "app")
    assert shown_state(state) == {"default": "0-7"}


def test_a_second_allocation_keeps_the_first() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, _pod("a", ("c", "app", "2")))
    before = shown_state(state)
    _allocate(policy, state, _pod("a", ("c", "app", "2")), mask=1)
    assert shown_state(state) == before


def test_cpus_near_the_affinity_come_first_and_the_rest_from_elsewhere() -> None:
    policy = StaticPolicy(TWO_SOCKETS, CpuManagerOptions(), reserved_count=1)
    state = _started(policy)
    _allocate(policy, state, _pod("a", ("c", "app", "10")), mask=0b10)
    assert TWO_SOCKETS.cpus_in_numa_nodes([1]) <= state.entries["a"]["c"]
    assert len(state.entries["a"]["c"]) == 10


def test_baselines_keep_what_was_given_first() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1)
    state = _started(policy, keeps_baselines=True)
    _allocate(policy, state, _pod("a", ("c", "app", "2")))
    state.assign("a", "c", CPUSet.of(1, 2, 5, 6))
    assert state.baselines == {"a": {"c": CPUSet.of(1, 5)}}
    policy.remove(state, "a", "c")
    assert state.baselines == {}


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ("3", "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"),
        (
            "8",
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6,"
            " requested CPUs = 8, CPUs per core = 2",
        ),
    ],
)
def test_full_cores_only_refuses_what_would_share_a_core(cpus: str, text: str) -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(full_pcpus_only=True), reserved_count=1)
    state = _started(policy)
    with pytest.raises(ResourceRefused) as refused:
        _allocate(policy, state, _pod("a", ("c", "app", cpus)))
    assert (refused.value.reason, str(refused.value)) == ("SMTAlignmentError", text)
    assert shown_state(state) == {"default": "0-7"}


def test_a_pod_with_its_own_resources_divides_one_set() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1, with_pod_level=True)
    state = _started(policy)
    pod = recorded_pod(_pod("a", ("c", "app", "2"), ("rest", "app", "500m"), podCpu="4"))
    policy.allocate_pod(state, pod, None)
    assert shown_state(state)["podEntries"] == {"a": "1-2,5-6"}
    assert shown_state(state)["entries"] == {"a": {"c": "1,5", "rest": "2,6"}}
    policy.remove(state, "a", "c")
    assert str(state.default) == "0,3-4,7"
    policy.remove(state, "a", "rest")
    assert shown_state(state) == {"default": "0-7"}


def test_a_pod_whose_own_resources_leave_nothing_to_share_is_refused() -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1, with_pod_level=True)
    state = _started(policy)
    pod = recorded_pod(_pod("a", ("c", "app", "4"), ("rest", "app", "500m"), podCpu="4"))
    with pytest.raises(ResourceRefused, match="leaving no cpus for shared containers") as refused:
        policy.allocate_pod(state, pod, None)
    assert refused.value.reason == "EmptyPodSharedPoolError"
    assert policy.pod_hints(state, pod) == []


def test_hints_prefer_the_fewest_numa_nodes() -> None:
    policy = StaticPolicy(TWO_SOCKETS, CpuManagerOptions(), reserved_count=2)
    state = _started(policy)
    pod = recorded_pod(_pod("a", ("c", "app", "7")))
    assert policy.hints(state, pod, pod.spec.containers[0]) == [(0b10, True), (0b11, False)]
    assert policy.hints(state, pod, recorded_pod(_pod("a", ("c", "app", "100m"))).spec.containers[0]) is None


@pytest.mark.parametrize(
    ("default", "entries", "strict", "text"),
    [
        ("", {"a": "1"}, False, "default cpuset cannot be empty"),
        ("1-7", {}, False, 'not all reserved cpus: "0" are present in defaultCpuSet: "1-7"'),
        ("0-7", {}, True, 'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-7"'),
        ("0-7", {"a": "1"}, False, 'pod: a, container: c cpuset: "1" overlaps with default cpuset "0-7"'),
        (
            "0-5",
            {"a": "7"},
            False,
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-5,7"',
        ),
    ],
)
def test_a_state_that_does_not_fit_the_machine_stops_the_start(
    default: str, entries: dict[str, str], strict: bool, text: str
) -> None:
    policy = StaticPolicy(FOUR_CORES, CpuManagerOptions(strict_reservation=strict), reserved_count=1)
    state = CPUState(CPUSet.parse(default), {uid: {"c": CPUSet.parse(cpus)} for uid, cpus in entries.items()})
    with pytest.raises(InvalidState) as refused:
        policy.start(state)
    assert str(refused.value) == text


def test_options_and_reservations_that_do_not_fit_the_machine_are_refused() -> None:
    by_socket = CpuManagerOptions(align_by_socket=True)
    with pytest.raises(ConfigError, match=r"^Topolgy manager single-numa-node policy is incompatible"):
        StaticPolicy(FOUR_CORES, by_socket, reserved_count=1, topology_policy="single-numa-node")
    with pytest.raises(ConfigError, match=r"size of 0-1 did not equal 1\)$"):
        StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1, reserved=CPUSet.of(0, 1))
    with pytest.raises(ConfigError, match=r"unknown CPU ID: 9$"):
        StaticPolicy(FOUR_CORES, CpuManagerOptions(), reserved_count=1, reserved=CPUSet.of(9))


@given(
    options=st.builds(
        CpuManagerOptions,
        full_pcpus_only=st.booleans(),
        distribute_across_numa=st.booleans(),
        align_by_socket=st.booleans(),
        strict_reservation=st.booleans(),
    ),
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(("init", "sidecar", "app")), st.integers(0, 6)),
        max_size=20,
    ),
)
def test_every_cpu_has_one_owner_whatever_pods_come_and_go(
    options: CpuManagerOptions, steps: list[tuple[int, str, int]]
) -> None:
    policy = StaticPolicy(TWO_SOCKETS, options, reserved_count=2)
    state = _started(policy)
    usable = state.default
    for pod, kind, cpus in steps:
        uid = f"pod-{pod}"
        if uid in state.entries:
            for container in list(state.entries[uid]):
                policy.remove(state, uid, container)
        elif cpus:
            with suppress(ResourceRefused, AssignmentError):
                _allocate(policy, state, _pod(uid, ("first", kind, str(cpus)), ("second", "app", "2")))
        pods = [state.assigned_in_pod(each) for each in state.entries]
        assert sum(map(len, pods)) == len(state.all_assigned())
        assert state.all_assigned().isdisjoint(policy.reserved | state.default)
        assert state.all_assigned() | state.default == usable
        if kind != "init" and uid in state.entries:
            assert sum(map(len, state.entries[uid].values())) == len(state.assigned_in_pod(uid))
