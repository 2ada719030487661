"""The CPU topology of this machine, as Linux shows it below /sys/devices/system.

`machine.this_machine` calls `read_topology` once, when a kubelet starts. Sockets, cores and threads come from
`cpu/cpu*/topology`, NUMA nodes from `node/node*/cpulist` and `distance`, uncore caches from `cpu/cpu*/cache/index*`.

What must stay true: ids and counters are those of upstream's kubelet on the same machine; only CPUs that are online and
that this process may use are counted; what cannot be read counts as not reported, and a machine that reports nothing is
one socket of single cores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.kubelet.cpu.topology import CPUTopology, MachineCore, NUMADistances, discover

SYSTEM: Final = Path("/sys/devices/system")

#: Caches of level 1 and 2 belong to a core.
_CORE_CACHE_LEVEL: Final = 2
_NODE: Final = re.compile(r"node(\d{1,5})")
_CACHE: Final = re.compile(r"index(\d{1,2})")


def read_topology(system: Path, usable: CPUSet) -> CPUTopology:
    """Return the topology of the machine that `system` (/sys/devices/system) shows. usable: those of this process."""
    online = _cpus(system / "cpu" / "online")
    cpus = usable & online if online else usable
    machine = {
        node: _cores(system, members, cpus) for node, members in _numa_nodes(system, cpus).items() if members
    }
    if not any(machine.values()):
        machine = {0: [MachineCore(0, (cpu,)) for cpu in cpus]}
    sockets = {core.socket for cores in machine.values() for core in cores}
    return discover(
        machine, cpu_count=len(cpus), socket_count=len(sockets), distances=_distances(system, machine)
    )


def _distances(system: Path, nodes: Iterable[int]) -> NUMADistances | None:
    """The distances between NUMA nodes; None unless all of them report theirs."""
    # A file lists the distances to all nodes that are online, also to those without CPUs, in the order of their ids.
    listed = _numbers(system / "node", _NODE)
    found: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        try:
            row = [int(each) for each in (system / "node" / f"node{node}" / "distance").read_text().split()]
        except (OSError, ValueError):
            return None
        if len(row) != len(listed):
            return None
        by_id = dict(zip(listed, row, strict=True))
        found[node] = tuple(by_id.get(each, 0) for each in range(listed[-1] + 1))
    return found


def _numa_nodes(system: Path, cpus: CPUSet) -> dict[int, CPUSet]:
    """CPUs by NUMA node. Of a machine without NUMA nodes each socket is one."""
    found = {
        number: _cpus(system / "node" / f"node{number}" / "cpulist") & cpus
        for number in _numbers(system / "node", _NODE)
    }
    if any(found.values()):
        return found
    sockets: dict[int, list[int]] = {}
    for cpu in cpus:
        if (socket := _socket(system, cpu)) is not None:
            sockets.setdefault(socket, []).append(cpu)
    return {socket: CPUSet(members) for socket, members in sorted(sockets.items())}


def _cores(system: Path, members: CPUSet, cpus: CPUSet) -> list[MachineCore]:
    """The cores of one NUMA node; a CPU that does not say where it is belongs to none."""
    threads: dict[tuple[int, int], list[int]] = {}
    for cpu in members:
        socket, core = _socket(system, cpu), _number(_topology(system, cpu, "core_id"))
        if socket is not None and core is not None:
            threads.setdefault((socket, core), []).append(cpu)
    return [
        MachineCore(socket, tuple(each), tuple(_uncore_caches(system, each, len(threads), cpus)))
        for (socket, _), each in threads.items()
    ]


def _uncore_caches(system: Path, threads: list[int], cores_in_node: int, cpus: CPUSet) -> Iterable[int]:
    """The ids of caches that a core shares with others, but not with its whole NUMA node."""
    caches = system / "cpu" / f"cpu{threads[0]}" / "cache"
    for index in _numbers(caches, _CACHE):
        cache = caches / f"index{index}"
        level, number = _number(cache / "level"), _number(cache / "id")
        if level is None or level <= _CORE_CACHE_LEVEL or number is None:
            continue
        sharing = _cpus(cache / "shared_cpu_list") & cpus
        if sharing and len(sharing) != cores_in_node * len(threads):
            yield number


def _socket(system: Path, cpu: int) -> int | None:
    number = _number(_topology(system, cpu, "physical_package_id"))
    # Machines without sockets (some virtual ones) say -1.
    return None if number is None else max(number, 0)


def _topology(system: Path, cpu: int, name: str) -> Path:
    return system / "cpu" / f"cpu{cpu}" / "topology" / name


def _numbers(directory: Path, pattern: re.Pattern[str]) -> list[int]:
    """The numbers in the names of a directory's entries that look so, in order."""
    try:
        names = [each.name for each in directory.iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in map(pattern.fullmatch, names) if match is not None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _cpus(path: Path) -> CPUSet:
    try:
        return CPUSet.parse(path.read_text().strip())
    except (OSError, CPUSetError, ValueError):
        return CPUSet.EMPTY
