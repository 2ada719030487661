"""CPU topologies read from made-up trees like /sys/devices/system, and from the machine this runs on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.topology import CPUDescription, CPUInfo, CPUTopology
from nodeward.kubelet.node.machine import this_machine
from nodeward.kubelet.node.machine_cpus import SYSTEM, read_topology

ALL = CPUSet(range(1024))


def write(root: Path, files: Mapping[str, object]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def cpu(number: int, core: int, socket: int = 0, l3: tuple[int, str] | None = None) -> dict[str, object]:
    """The files of one CPU; `l3` is the id of its cache and who shares it."""
    at = f"cpu/cpu{number}"
    files: dict[str, object] = {f"{at}/topology/core_id": core, f"{at}/topology/physical_package_id": socket}
    # What every machine has beside, and nobody wants here.
    files |= {f"{at}/cache/index2/level": 2, f"{at}/cache/index2/id": 90 + core}
    files |= {f"{at}/cache/index2/shared_cpu_list": number, f"{at}/cache/uevent": ""}
    if l3 is not None:
        cache = f"{at}/cache/index3"
        files |= {f"{cache}/level": 3, f"{cache}/id": l3[0], f"{cache}/shared_cpu_list": l3[1]}
    return files


def described(root: Path, topology: CPUTopology, *, with_caches: bool) -> None:
    """Write the tree a machine of this topology shows; hardware core ids begin anew in every socket."""
    write(root, {"cpu/online": topology.all_cpus})
    for unit in topology.numa_nodes.values():
        write(root, {f"node/node{unit.id}/cpulist": CPUSet.from_bits(unit.bits)})
    for number, info in topology.details.items():
        first = min(CPUSet.from_bits(topology.sockets[info.socket].bits))
        cache = topology.uncore_caches[info.uncore_cache]
        shared = (cache.id, str(CPUSet.from_bits(cache.bits))) if with_caches else None
        write(root, cpu(number, info.core - first, info.socket, shared))


@pytest.mark.parametrize(
    "description",
    [
        CPUDescription(cores_per_numa=4),
        CPUDescription(cores_per_numa=4, threads=2),
        CPUDescription(sockets=2, cores_per_numa=3, threads=2),
        CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=4, threads=2),
        CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=8, threads=2, uncore=4),
    ],
    ids=["plain", "threads", "two-sockets", "sub-numa-clusters", "uncore-caches"],
)
def test_a_machine_is_read_as_it_is_described(tmp_path: Path, description: CPUDescription) -> None:
    wanted = description.topology()
    described(tmp_path, wanted, with_caches=True)
    found = read_topology(tmp_path, ALL)
    assert found.details == wanted.details
    assert (found.cpu_count, found.core_count, found.socket_count) == (
        wanted.cpu_count,
        wanted.core_count,
        wanted.socket_count,
    )


@settings(max_examples=20, deadline=None)
@given(
    sockets=st.integers(1, 3),
    numa=st.integers(1, 3),
    caches=st.integers(2, 3),
    uncore=st.integers(0, 2),
    threads=st.integers(1, 2),
    gone=st.frozensets(st.integers(0, 100), max_size=20),
)
def test_any_machine_is_read_as_it_is_described_without_what_is_offline(
    sockets: int, numa: int, caches: int, uncore: int, threads: int, gone: frozenset[int]
) -> None:
    # A cache that a whole NUMA node shares is none of its own: there are at least two, or no files about them.
    cores = caches * max(uncore, 1)
    topology = CPUDescription(sockets, numa, cores, threads, uncore).topology()
    left = topology.all_cpus - CPUSet(gone) or topology.all_cpus
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        described(root, topology, with_caches=uncore > 0)
        write(root, {"cpu/online": left})
        found = read_topology(root, ALL)
    assert found.all_cpus == left
    assert found.cpu_count == len(left)
    for cpu, info in found.details.items():
        wanted = topology.details[cpu]
        assert (info.socket, info.numa_node) == (wanted.socket, wanted.numa_node)
        siblings = CPUSet.from_bits(topology.cores[wanted.core].bits) & left
        assert CPUSet.from_bits(found.cores[info.core].bits) == siblings
        assert info.core == min(siblings)


def test_a_cache_of_a_whole_numa_node_is_no_uncore_cache(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-3", "node/node0/cpulist": "0-1", "node/node1/cpulist": "2-3"})
    for number in range(4):
        write(tmp_path, cpu(number, number, 0, (7 + number // 2, "0-1" if number < 2 else "2-3")))
    # Without uncore caches of their own, the cores of a socket count as sharing one.
    assert set(read_topology(tmp_path, ALL).uncore_caches) == {0}


def test_without_cache_files_a_socket_is_one_cache(tmp_path: Path) -> None:
    topology = CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=4, threads=2).topology()
    described(tmp_path, topology, with_caches=False)
    found = read_topology(tmp_path, ALL)
    assert found.details == topology.details
    assert set(found.uncore_caches) == {0, 1}


def test_cpus_that_are_offline_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-2", "node/node0/cpulist": "0-3"})
    for number in range(4):
        write(tmp_path, cpu(number, number % 2))
    found = read_topology(tmp_path, ALL)
    assert str(found.all_cpus) == "0-2"
    assert (found.cpu_count, found.core_count, found.cpus_per_core) == (3, 2, 1)
    assert found.details[2] == CPUInfo(socket=0, numa_node=0, uncore_cache=0, core=0)


def test_cpus_this_process_may_not_use_are_not_there(tmp_path: Path) -> None:
    described(tmp_path, CPUDescription(sockets=2, cores_per_numa=4).topology(), with_caches=True)
    found = read_topology(tmp_path, CPUSet.parse("1-4"))
    assert str(found.all_cpus) == "1-4"
    assert (found.cpu_count, found.socket_count) == (4, 2)
    assert [len(found.cpus_in_numa_nodes([node])) for node in (0, 1)] == [3, 1]


def test_a_numa_node_of_memory_alone_has_no_cpus(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-1", "node/node0/cpulist": "0-1", "node/node5/cpulist": ""})
    write(tmp_path, {**cpu(0, 0), **cpu(1, 1)})
    assert set(read_topology(tmp_path, ALL).numa_nodes) == {0}


def test_without_numa_nodes_every_socket_is_one(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-3"})
    for number in range(4):
        write(tmp_path, cpu(number, 0, number // 2))
    found = read_topology(tmp_path, ALL)
    assert {unit.id: str(CPUSet.from_bits(unit.bits)) for unit in found.numa_nodes.values()} == {
        0: "0-1",
        1: "2-3",
    }
    assert found.core_count == 2


def test_a_machine_that_tells_nothing_is_one_socket_of_single_cores(tmp_path: Path) -> None:
    found = read_topology(tmp_path / "nothing", CPUSet.parse("0-2"))
    assert found.details == {number: CPUInfo(0, 0, 0, number) for number in range(3)}
    assert (found.cpu_count, found.core_count, found.socket_count) == (3, 3, 1)


@pytest.mark.parametrize("garbage", ["", "x", "0-", "3-1", "99999999999999999999", "\N{SNOWMAN}"])
def test_what_cannot_be_understood_counts_as_not_reported(tmp_path: Path, garbage: str) -> None:
    write(tmp_path, {"cpu/online": garbage, "node/node0/cpulist": garbage})
    for number in range(2):
        write(tmp_path, {f"cpu/cpu{number}/topology/core_id": garbage})
        write(tmp_path, {f"cpu/cpu{number}/cache/index3/level": garbage})
    found = read_topology(tmp_path, CPUSet.parse("0-1"))
    assert found.details == {0: CPUInfo(0, 0, 0, 0), 1: CPUInfo(0, 0, 0, 1)}


def test_a_machine_without_socket_numbers_has_one_socket(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-1", **cpu(0, 0, -1), **cpu(1, 1, -1)})
    found = read_topology(tmp_path, ALL)
    assert (set(found.sockets), set(found.numa_nodes), found.socket_count) == ({0}, {0}, 1)


def test_this_machine_has_every_cpu_this_process_may_use(tmp_path: Path) -> None:
    mine = CPUSet(os.sched_getaffinity(0))
    machine = this_machine(tmp_path)
    assert machine.cpus is not None
    assert machine.cpus.details == read_topology(SYSTEM, mine).details
    assert machine.cpus.all_cpus == mine
    assert machine.capacity["cpu"].value == len(mine)


def test_distances_of_numa_nodes_are_read_by_id_and_also_past_nodes_without_cpus(tmp_path: Path) -> None:
    write(tmp_path, {"cpu/online": "0-1", **cpu(0, 0, 0), **cpu(1, 0, 1)})
    write(tmp_path, {"node/node0/cpulist": "0", "node/node0/distance": "10 17 21"})
    write(tmp_path, {"node/node2/cpulist": "", "node/node2/distance": "17 10 28"})
    write(tmp_path, {"node/node4/cpulist": "1", "node/node4/distance": "21 28 10"})
    assert read_topology(tmp_path, ALL).distances == {0: (10, 0, 17, 0, 21), 4: (21, 0, 28, 0, 10)}


@pytest.mark.parametrize("text", ["", "10", "10 far", None])
def test_distances_that_are_not_all_there_count_as_not_reported(tmp_path: Path, text: str | None) -> None:
    write(tmp_path, {"cpu/online": "0-1", **cpu(0, 0, 0), **cpu(1, 0, 1)})
    write(tmp_path, {"node/node0/cpulist": "0", "node/node0/distance": "10 20", "node/node1/cpulist": "1"})
    if text is not None:
        write(tmp_path, {"node/node1/distance": text})
    assert read_topology(tmp_path, ALL).distances is None
