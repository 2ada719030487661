"""The CPU topology of a machine: which thread belongs to which core, uncore cache, NUMA node and socket.

A topology is made once at the kubelet's start, from what the machine reports (`discover`) or from a description in
the Fleet file (`CPUDescription`), and never changes. `assignment` reads it to choose CPUs; hints and metrics too.

What must stay true: the same machine gives the same ids and counters as upstream's kubelet. A core's id is its lowest
CPU, so it is unique on the machine; the number of CPUs and sockets is what the machine reports, not what is counted.

Every unit (core, cache, NUMA node, socket) is kept as an integer with a bit for each of its CPUs, as in `CPUSet`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple, TypeAlias

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.errors import ConfigError, WorldError

#: A described machine has at most this many CPUs and NUMA nodes: more than any machine that is sold today.
MOST_DESCRIBED_CPUS: Final = 1024
MOST_DESCRIBED_NUMA_NODES: Final = 64


class TopologyError(WorldError):
    """What the machine reports is not a topology."""


class CPUInfo(NamedTuple):
    """Where one CPU is."""

    socket: int
    numa_node: int
    uncore_cache: int
    core: int


class MachineCore(NamedTuple):
    """One physical core as a machine reports it. Without uncore caches the core shares its socket's."""

    socket: int
    threads: Sequence[int]
    uncore_caches: Sequence[int] = ()


class Unit(NamedTuple):
    """One core, cache, NUMA node or socket: its id and a bit for each of its CPUs."""

    id: int
    bits: int


#: By NUMA node, its distance to each NUMA node by id.
NUMADistances: TypeAlias = Mapping[int, tuple[int, ...]]
#: Distances as Linux gives them where the firmware says nothing: to itself, and to any other.
_NEAR: Final = 10
_FAR: Final = 20


class CPUTopology:
    """Where every CPU of one machine is. `cpu_count`, `core_count` and `socket_count` are what the machine reports."""

    __slots__ = (
        "all_cpus",
        "core_count",
        "cores",
        "cores_in_numa_node",
        "cores_in_socket",
        "cores_in_uncore_cache",
        "cpu_count",
        "details",
        "distances",
        "numa_nodes",
        "numa_nodes_in_socket",
        "socket_count",
        "sockets",
        "sockets_in_numa_node",
        "uncore_caches",
        "uncore_caches_in_numa_node",
    )

    def __init__(
        self,
        details: Mapping[int, CPUInfo],
        *,
        cpu_count: int,
        core_count: int,
        socket_count: int,
        distances: NUMADistances | None = None,
    ) -> None:
        #: None if the machine does not report them.
        self.distances: Final = distances
        self.details: Final = dict(sorted(details.items()))
        self.all_cpus: Final = CPUSet(self.details)
        self.cpu_count: Final = cpu_count
        self.core_count: Final = core_count
        self.socket_count: Final = socket_count
        self.sockets: Final = _units((cpu, info.socket) for cpu, info in self.details.items())
        self.numa_nodes: Final = _units((cpu, info.numa_node) for cpu, info in self.details.items())
        self.uncore_caches: Final = _units((cpu, info.uncore_cache) for cpu, info in self.details.items())
        self.cores: Final = _units((cpu, info.core) for cpu, info in self.details.items())
        self.numa_nodes_in_socket: Final = _inside(self.sockets, self.numa_nodes)
        self.sockets_in_numa_node: Final = _inside(self.numa_nodes, self.sockets)
        self.cores_in_socket: Final = _inside(self.sockets, self.cores)
        self.cores_in_numa_node: Final = _inside(self.numa_nodes, self.cores)
        self.cores_in_uncore_cache: Final = _inside(self.uncore_caches, self.cores)
        self.uncore_caches_in_numa_node: Final = _inside(self.numa_nodes, self.uncore_caches)

    # These three are whole numbers as upstream computes them: on a machine with an offline thread or with two kinds
    # of cores they are less than what the largest unit has.

    @property
    def cpus_per_core(self) -> int:
        return self.cpu_count // self.core_count if self.core_count else 0

    @property
    def cpus_per_socket(self) -> int:
        return self.cpu_count // self.socket_count if self.socket_count else 0

    @property
    def cpus_per_uncore_cache(self) -> int:
        return self.cpu_count // len(self.uncore_caches) if self.uncore_caches else 0

    def cpus_in_numa_nodes(self, ids: Iterable[int]) -> CPUSet:
        """Return all CPUs of the NUMA nodes with these ids; an unknown id adds none."""
        return _joined(self.numa_nodes, ids)

    def cpus_in_sockets(self, ids: Iterable[int]) -> CPUSet:
        """Return all CPUs of the sockets with these ids; an unknown id adds none."""
        return _joined(self.sockets, ids)

    def whole_cores(self, cpus: CPUSet) -> CPUSet:
        """Return `cpus` together with the other threads of their cores."""
        return _joined(self.cores, {self.details[cpu].core for cpu in cpus if cpu in self.details})

    def whole_uncore_caches(self, cpus: CPUSet) -> CPUSet:
        """Return `cpus` together with all CPUs that share an uncore cache with one of them."""
        found = {self.details[cpu].uncore_cache for cpu in cpus if cpu in self.details}
        return _joined(self.uncore_caches, found)

    def shares_uncore_cache(self, cpus: CPUSet) -> bool:
        """Whether all of some CPUs share one uncore cache."""
        return any(not cpus.bits & ~unit.bits for unit in self.uncore_caches.values())

    def sockets_of_numa_nodes(self, ids: Iterable[int]) -> frozenset[int]:
        """Return the ids of the sockets that have a CPU in one of these NUMA nodes."""
        return frozenset(unit.id for each in ids for unit in self.sockets_in_numa_node.get(each, ()))


def discover(
    numa_nodes: Mapping[int, Sequence[MachineCore]],
    *,
    cpu_count: int,
    socket_count: int,
    distances: NUMADistances | None = None,
) -> CPUTopology:
    """Return the topology of a machine that reports these cores by NUMA node. Raises `TopologyError`."""
    if cpu_count == 0:
        raise TopologyError("could not detect number of cpus")
    details: dict[int, CPUInfo] = {}
    core_count = 0
    for numa_node, cores in numa_nodes.items():
        core_count += len(cores)
        for core in cores:
            if not core.threads:
                raise TopologyError("no cpus provided")
            if len(set(core.threads)) != len(core.threads):
                raise TopologyError("cpus provided are not unique")
            cache = core.uncore_caches[0] if core.uncore_caches else core.socket
            info = CPUInfo(core.socket, numa_node, cache, min(core.threads))
            # A CPU that two cores report belongs to the later one, as upstream.
            details.update(dict.fromkeys(core.threads, info))
    return CPUTopology(
        details,
        cpu_count=cpu_count,
        core_count=core_count,
        socket_count=socket_count,
        distances=distances,
    )


@dataclass(frozen=True, slots=True)
class CPUDescription:
    """The CPUs of a simulated node, as the Fleet file describes them.

    `uncore` is the number of cores that share an uncore cache (0: the machine reports none, and all cores of a
    socket count as sharing one). `reserved` are the CPUs that are never exclusive. Numbers run as Linux counts on
    x86: first one thread of every core, socket by socket, then the second threads in the same order.
    """

    sockets: int = 1
    numa_per_socket: int = 1
    cores_per_numa: int = 1
    threads: int = 1
    uncore: int = 0
    reserved: CPUSet = CPUSet.EMPTY

    def __post_init__(self) -> None:
        for key, name in COUNTS.items():
            if getattr(self, name) < 1:
                raise ConfigError(f"cpu.{key}: {getattr(self, name)} is not a number of 1 or more")
        if self.cpus > MOST_DESCRIBED_CPUS:
            raise ConfigError(
                f"cpu: {self.cpus} CPUs are described; at most {MOST_DESCRIBED_CPUS} are possible"
            )
        if (numa := self.sockets * self.numa_per_socket) > MOST_DESCRIBED_NUMA_NODES:
            raise ConfigError(
                f"cpu: {numa} NUMA nodes are described; at most {MOST_DESCRIBED_NUMA_NODES} are possible"
            )
        if self.uncore < 0 or (self.uncore and self.cores_per_numa % self.uncore):
            raise ConfigError(
                f"cpu.uncore: {self.uncore} is not a number of cores that divides"
                f" coresPerNuma ({self.cores_per_numa}) evenly"
            )
        missing = CPUSet.from_bits(self.reserved.bits >> self.cpus << self.cpus)
        if missing:
            raise ConfigError(f"cpu.reserved: the machine has CPUs 0-{self.cpus - 1}, not {missing}")

    @staticmethod
    def read(described: Mapping[str, object]) -> CPUDescription:
        """Return the description that the mapping `cpu` of a Fleet file gives. Raises `ConfigError`."""
        counts: dict[str, int] = {}
        reserved = CPUSet.EMPTY
        for key, value in described.items():
            if key == "reserved":
                if not isinstance(value, str):
                    raise ConfigError(f'cpu.reserved: {value!r} is not a list of CPUs such as "0,64"')
                try:
                    reserved = CPUSet.parse(value)
                except CPUSetError as error:
                    raise ConfigError(f"cpu.reserved: {error}") from None
                continue
            name = "uncore" if key == "uncore" else COUNTS.get(key)
            if name is None:
                known = ", ".join((*COUNTS, "uncore", "reserved"))
                raise ConfigError(f"cpu.{key}: unknown; known are {known}")
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"cpu.{key}: {value!r} is not a whole number")
            counts[name] = value
        return CPUDescription(**counts, reserved=reserved)

    @property
    def cpus(self) -> int:
        return self.sockets * self.numa_per_socket * self.cores_per_numa * self.threads

    def topology(self) -> CPUTopology:
        """Return the topology of the described machine."""
        all_cores = self.cpus // self.threads
        numbers = count()
        machine: dict[int, list[MachineCore]] = {}
        for socket in range(self.sockets):
            for numa in range(self.numa_per_socket):
                cores = machine[socket * self.numa_per_socket + numa] = []
                for core in (next(numbers) for _ in range(self.cores_per_numa)):
                    threads = tuple(range(core, self.cpus, all_cores))
                    cores.append(MachineCore(socket, threads, (core // self.uncore,) if self.uncore else ()))
        distances = {
            node: tuple(_NEAR if other == node else _FAR for other in range(len(machine))) for node in machine
        }
        return discover(machine, cpu_count=self.cpus, socket_count=self.sockets, distances=distances)


#: Keys of the Fleet file and the fields they set.
COUNTS: Final = {
    "sockets": "sockets",
    "numaPerSocket": "numa_per_socket",
    "coresPerNuma": "cores_per_numa",
    "threads": "threads",
}


def _units(members: Iterable[tuple[int, int]]) -> dict[int, Unit]:
    """Group CPUs by unit, with the units in the order of their ids."""
    bits: dict[int, int] = {}
    for cpu, unit in members:
        bits[unit] = bits.get(unit, 0) | 1 << cpu
    return {unit: Unit(unit, bits[unit]) for unit in sorted(bits)}


def _inside(outer: Mapping[int, Unit], inner: Mapping[int, Unit]) -> dict[int, tuple[Unit, ...]]:
    """For each outer unit, list the inner units that have a CPU in it, by id."""
    return {
        around.id: tuple(unit for unit in inner.values() if unit.bits & around.bits)
        for around in outer.values()
    }


def _joined(units: Mapping[int, Unit], ids: Iterable[int]) -> CPUSet:
    bits = 0
    for each in ids:
        if (unit := units.get(each)) is not None:
            bits |= unit.bits
    return CPUSet.from_bits(bits)
