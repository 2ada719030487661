"""Which CPUs a request gets: known answers, and promises that hold on any machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.assignment import AssignmentError, take_distributed, take_packed
from nodeward.kubelet.cpu.topology import CPUDescription, CPUTopology, MachineCore, discover

ONE_SOCKET = CPUDescription(cores_per_numa=4, threads=2).topology()
FOUR_NODES = CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=10, threads=2).topology()
TWO_CACHES = CPUDescription(cores_per_numa=8, threads=2, uncore=4).topology()
#: Sockets take turns: even CPUs are in socket 0, odd ones in socket 1.
ALTERNATING = discover(
    {node: [MachineCore(node, (cpu, cpu + 6)) for cpu in range(node, 6, 2)] for node in (0, 1)},
    cpu_count=12,
    socket_count=2,
)
#: Two cores with two threads, two with one.
HYBRID = discover(
    {0: [MachineCore(0, each) for each in ((0, 1), (2, 3), (4,), (5,))]}, cpu_count=6, socket_count=1
)


@pytest.mark.parametrize(
    ("topology", "free", "wanted", "taken"),
    [
        (ONE_SOCKET, "0-7", 2, "0,4"),
        (ONE_SOCKET, "0-3,6", 2, "2,6"),
        (ONE_SOCKET, "0-7", 0, ""),
        (ALTERNATING, "0-11", 6, "0,2,4,6,8,10"),
        (ALTERNATING, "1-5,7-11", 1, "2"),
        (ALTERNATING, "0-11", 8, "0-2,4,6-8,10"),
        (FOUR_NODES, "1-39,41-79", 60, "10-39,50-79"),
        (FOUR_NODES, "0-79", 64, "0-31,40-71"),
    ],
)
def test_packed_requests_fill_the_fewest_units(
    topology: CPUTopology, free: str, wanted: int, taken: str
) -> None:
    assert str(take_packed(topology, CPUSet.parse(free), wanted)) == taken


@pytest.mark.parametrize(
    ("free", "wanted", "taken"),
    [("2-7,10-15", 6, "4-6,12-14"), ("1-7,9-15", 10, "1,4-7,9,12-15"), ("0-15", 3, "0-1,8")],
)
def test_requests_aligned_by_uncore_cache_stay_in_one_cache(free: str, wanted: int, taken: str) -> None:
    assert str(take_packed(TWO_CACHES, CPUSet.parse(free), wanted, align_by_uncore=True)) == taken


def test_spread_requests_take_single_threads_before_siblings() -> None:
    assert str(take_packed(ALTERNATING, ALTERNATING.all_cpus, 8, spread=True)) == "0-4,6,8,10"


@pytest.mark.parametrize(
    ("topology", "free", "wanted", "group", "taken"),
    [
        (ALTERNATING, "0-11", 8, 1, "0-3,6-9"),
        (ALTERNATING, "1-5,7-11", 1, 1, "1"),
        (ALTERNATING, "1-5,7-11", 1, 2, "2"),
        (FOUR_NODES, "0-79", 26, 1, "0-6,10-16,40-45,50-55"),
        (FOUR_NODES, "0-79", 26, 2, "0-6,10-15,40-46,50-55"),
        (FOUR_NODES, "2-29,31-39,42-69,71-79", 48, 1, "10-17,20-27,31-38,50-57,60-67,71-78"),
        (FOUR_NODES, "0-79", 62, 2, "0-7,10-17,20-27,30-36,40-47,50-57,60-67,70-76"),
    ],
)
def test_distributed_requests_take_equal_parts_of_numa_nodes(
    topology: CPUTopology, free: str, wanted: int, group: int, taken: str
) -> None:
    assert str(take_distributed(topology, CPUSet.parse(free), wanted, group=group)) == taken


def test_alignment_by_socket_beats_a_better_balance() -> None:
    free = FOUR_NODES.all_cpus - CPUSet.parse("0-1,40-41,20-21,60-61")
    balanced = take_distributed(FOUR_NODES, free, 24)
    aligned = take_distributed(FOUR_NODES, free, 24, align_by_socket=True)
    assert {FOUR_NODES.details[cpu].socket for cpu in balanced} == {0, 1}
    assert {FOUR_NODES.details[cpu].socket for cpu in aligned} == {0}


def test_a_half_used_core_is_never_taken_whole_on_a_machine_with_two_kinds_of_cores() -> None:
    free = CPUSet.parse("1-4")
    assert str(take_packed(HYBRID, free, 2)) == "1,4"
    assert take_packed(HYBRID, free, 4) == free


def test_a_remainder_that_fits_no_group_is_answered_from_elsewhere() -> None:
    free = CPUSet.parse("0-2,10-12,20-22")
    taken = take_distributed(FOUR_NODES, free, 8, group=2, align_by_socket=True)
    assert len(taken) == 8
    assert taken <= free


def test_a_machine_with_many_numa_nodes_is_answered_with_bounded_work() -> None:
    many = CPUDescription(sockets=2, numa_per_socket=16, cores_per_numa=5).topology()
    free = CPUSet(cpu for cpu in many.all_cpus if cpu % 5 < cpu // 5 % 5 + 1)
    taken = take_distributed(many, free, 47, align_by_socket=True)
    assert (len(taken), taken <= free) == (47, True)


def test_too_large_a_request_says_what_there_is() -> None:
    text = "^not enough cpus available to satisfy request: requested=9, available=8$"
    for take in (take_packed, take_distributed):
        with pytest.raises(AssignmentError, match=text):
            take(ONE_SOCKET, ONE_SOCKET.all_cpus, 9)


def test_cpus_the_machine_lacks_are_never_taken() -> None:
    assert str(take_packed(ONE_SOCKET, CPUSet.parse("7-9"), 1)) == "7"
    with pytest.raises(AssignmentError, match=r"requested=2, available=1$"):
        take_packed(ONE_SOCKET, CPUSet.parse("7-9"), 2)


@st.composite
def machines(draw: st.DrawFn) -> CPUTopology:
    """Machines of any shape: cores of one to three threads, in up to five NUMA nodes of up to three sockets."""
    cpus = draw(st.permutations(range(draw(st.integers(1, 40)))))
    nodes: dict[int, list[MachineCore]] = {}
    while cpus:
        threads = draw(st.integers(1, 3))
        core = MachineCore(
            draw(st.integers(0, 2)), cpus[:threads], draw(st.lists(st.integers(0, 3), max_size=1))
        )
        nodes.setdefault(draw(st.integers(0, 4)), []).append(core)
        cpus = cpus[threads:]
    sockets = {core.socket for cores in nodes.values() for core in cores}
    count = sum(len(core.threads) for cores in nodes.values() for core in cores)
    return discover(nodes, cpu_count=count, socket_count=len(sockets))


@given(data=st.data(), topology=machines())
def test_requests_get_exactly_what_they_ask_for_and_only_free_cpus(
    data: st.DataObject, topology: CPUTopology
) -> None:
    free, given_away = topology.all_cpus, CPUSet.EMPTY
    for _ in range(data.draw(st.integers(1, 4))):
        wanted = data.draw(st.integers(0, len(topology.all_cpus)))
        spread, option = data.draw(st.booleans()), data.draw(st.booleans())
        try:
            if group := data.draw(st.integers(0, 3)):
                taken = take_distributed(
                    topology, free, wanted, group=group, spread=spread, align_by_socket=option
                )
            else:
                taken = take_packed(topology, free, wanted, spread=spread, align_by_uncore=option)
        except AssignmentError:
            assert wanted > len(free)
            continue
        assert len(taken) == wanted
        assert taken <= free
        assert taken.isdisjoint(given_away)
        free, given_away = free - taken, given_away | taken
