"""Machines as they are reported and as a Fleet file describes them."""

from __future__ import annotations

import pytest

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.kubelet.cpu.topology import CPUDescription, CPUInfo, MachineCore, TopologyError, discover


def test_a_described_machine_is_numbered_as_linux_numbers_it() -> None:
    described = CPUDescription.read(
        {
            "sockets": 2,
            "numaPerSocket": 4,
            "coresPerNuma": 16,
            "threads": 2,
            "uncore": 8,
            "reserved": "0,64",
        }
    )
    topology = described.topology()
    assert topology.cpu_count == 256
    assert (len(topology.sockets), len(topology.numa_nodes), len(topology.uncore_caches)) == (2, 8, 16)
    assert (topology.core_count, topology.cpus_per_core, topology.cpus_per_uncore_cache) == (128, 2, 16)
    assert topology.details[64] == CPUInfo(socket=1, numa_node=4, uncore_cache=8, core=64)
    assert topology.details[192] == topology.details[64]
    assert str(topology.cpus_in_numa_nodes([0, 7])) == "0-15,112-143,240-255"
    assert str(topology.whole_cores(described.reserved)) == "0,64,128,192"
    assert topology.sockets_of_numa_nodes([3, 4]) == {0, 1}


def test_without_uncore_caches_the_cores_of_a_socket_share_one() -> None:
    topology = CPUDescription(sockets=2, numa_per_socket=2, cores_per_numa=2).topology()
    assert [str(CPUSet.from_bits(unit.bits)) for unit in topology.uncore_caches.values()] == ["0-3", "4-7"]


def test_an_offline_thread_makes_the_average_core_smaller() -> None:
    topology = discover({0: [MachineCore(0, (0, 2)), MachineCore(0, (1,))]}, cpu_count=3, socket_count=1)
    assert (topology.core_count, topology.cpus_per_core) == (2, 1)


@pytest.mark.parametrize(
    ("cores", "cpus", "text"),
    [
        ([], 0, "could not detect number of cpus"),
        ([MachineCore(0, ())], 1, "no cpus provided"),
        ([MachineCore(0, (1, 1))], 2, "cpus provided are not unique"),
    ],
)
def test_a_machine_without_a_topology_is_refused(cores: list[MachineCore], cpus: int, text: str) -> None:
    with pytest.raises(TopologyError, match=f"^{text}$"):
        discover({0: cores}, cpu_count=cpus, socket_count=1)


@pytest.mark.parametrize(
    ("described", "text"),
    [
        (
            {"socket": 2},
            "cpu.socket: unknown; known are sockets, numaPerSocket, coresPerNuma, threads, uncore, reserved",
        ),
        ({"sockets": 0}, "cpu.sockets: 0 is not a number of 1 or more"),
        ({"threads": True}, "cpu.threads: True is not a whole number"),
        (
            {"coresPerNuma": 6, "uncore": 4},
            "cpu.uncore: 4 is not a number of cores that divides coresPerNuma (6) evenly",
        ),
        ({"coresPerNuma": 1025}, "cpu: 1025 CPUs are described; at most 1024 are possible"),
        (
            {"sockets": 5, "numaPerSocket": 13},
            "cpu: 65 NUMA nodes are described; at most 64 are possible",
        ),
        ({"coresPerNuma": 4, "reserved": "3-5"}, "cpu.reserved: the machine has CPUs 0-3, not 4-5"),
        ({"reserved": "b"}, 'cpu.reserved: strconv.Atoi: parsing "b": invalid syntax'),
        ({"reserved": 0}, 'cpu.reserved: 0 is not a list of CPUs such as "0,64"'),
    ],
)
def test_a_wrong_description_is_refused_with_the_field_and_what_is_right(
    described: dict[str, object], text: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        CPUDescription.read(described)
    assert str(refused.value) == text
