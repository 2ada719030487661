"""Choose CPUs for a container: packed on few units of the machine, or distributed evenly across NUMA nodes.

The static policy calls `take_packed` or `take_distributed` with the CPUs that are free and the number it needs; both
are pure. `numa_balance` decides which NUMA nodes a distributed request uses.

What must stay true: the same input gives the same CPUs as Kubernetes 1.37, because a node's checkpoint and its users
rely on them; the answer has exactly as many CPUs as asked for, all of them free; nothing is taken when a request
fails.

Differences from upstream, each where upstream's answer is a mistake:

* On a machine whose cores or sockets differ in size, upstream takes a unit for free when as many CPUs as an average
  unit has are free, and then takes all of it, with CPUs that others hold. Here such a unit is not free.
* In the distributing algorithm, upstream's best combination of four or more NUMA nodes can be overwritten by one tried
  later (a slice with shared storage), and upstream never answers when the remainder cannot be handed out in groups.
  Here the best combination stays, and one that cannot hand out the remainder is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import NodewardError
from nodeward.kubelet.cpu.numa_balance import choose_numa_nodes, in_groups
from nodeward.kubelet.cpu.topology import CPUTopology, Unit


class AssignmentError(NodewardError):
    """The CPUs asked for cannot be given; the text is upstream's."""


def take_packed(
    topology: CPUTopology, free: CPUSet, wanted: int, *, spread: bool = False, align_by_uncore: bool = False
) -> CPUSet:
    """Take `wanted` CPUs from as few sockets, NUMA nodes and cores as possible.

    spread: take single CPUs in ascending order instead of whole cores (distribute-cpus-across-cores).
    align_by_uncore: prefer CPUs that share an uncore cache (prefer-align-cpus-by-uncorecache).
    """
    picker = _Picker(topology, free, wanted)
    if picker.wanted <= 0:
        return CPUSet.EMPTY
    picker.check_enough()
    for level in (
        picker.take_whole_first_level,
        picker.take_whole_second_level,
        *((picker.take_uncore_caches,) if align_by_uncore else ()),
        *(() if spread else (picker.take_whole_cores,)),
        picker.take_spread_cpus if spread else picker.take_packed_cpus,
    ):
        level()
        if picker.wanted == 0:
            return CPUSet.from_bits(picker.taken)
    raise AssignmentError("failed to allocate cpus")


def take_distributed(
    topology: CPUTopology,
    free: CPUSet,
    wanted: int,
    *,
    group: int = 1,
    spread: bool = False,
    align_by_socket: bool = False,
) -> CPUSet:
    """Take `wanted` CPUs in equal parts from as few NUMA nodes as can give equal parts (distribute-cpus-across-numa).

    group: CPUs that are handed out together (the threads of a core with full-pcpus-only).
    align_by_socket: prefer NUMA nodes of one socket to a better balance.
    Fall back to `take_packed` where no NUMA nodes can share the request.
    """
    if wanted % group:
        return take_packed(topology, free, wanted, spread=spread)
    picker = _Picker(topology, free, wanted)
    if picker.wanted <= 0:
        return CPUSet.EMPTY
    picker.check_enough()
    nodes = picker.numa_nodes()
    choice = choose_numa_nodes(
        topology,
        {node.id: (node.bits & picker.free).bit_count() for node in nodes},
        wanted,
        group=group,
        align_by_socket=align_by_socket,
    )
    if choice is None:
        return take_packed(topology, free, wanted, spread=spread)

    def take(numa_node: int, amount: int) -> None:
        inside = CPUSet.from_bits(picker.free & topology.numa_nodes[numa_node].bits)
        picker.take(take_packed(topology, inside, amount, spread=spread).bits)

    for numa_node in choice.combination:
        take(numa_node, choice.share)
    left = {each: (picker.free & topology.numa_nodes[each].bits).bit_count() for each in choice.remainder}
    # In as many steps as upstream: which core a group comes from depends on what was taken before it.
    for numa_node in in_groups(left, choice.remainder, picker.wanted, group):
        take(numa_node, group)
    return CPUSet.from_bits(picker.taken)


class _Picker:
    """The free and the taken CPUs of one request. Units are ordered by how few free CPUs they have, then by id."""

    __slots__ = ("_numa_first", "_topology", "free", "taken", "wanted")

    def __init__(self, topology: CPUTopology, free: CPUSet, wanted: int) -> None:
        self._topology: Final = topology
        # CPUs that the machine does not have are never taken.
        self.free = free.bits & topology.all_cpus.bits
        self.taken = 0
        self.wanted = wanted
        self._numa_first: Final = topology.socket_count >= len(topology.numa_nodes)

    def check_enough(self) -> None:
        available = self.free.bit_count()
        if self.wanted > available:
            raise AssignmentError(
                "not enough cpus available to satisfy request:"
                f" requested={self.wanted}, available={available}"
            )

    def take(self, bits: int) -> None:
        self.taken |= bits
        self.free &= ~bits
        self.wanted -= bits.bit_count()

    def numa_nodes(self) -> list[Unit]:
        units = self._topology
        if self._numa_first:
            return self._ranked(units.numa_nodes.values(), self.free)
        return self._ranked_inside(self.sockets(), units.numa_nodes_in_socket)

    def sockets(self) -> list[Unit]:
        units = self._topology
        if self._numa_first:
            return self._ranked_inside(self.numa_nodes(), units.sockets_in_numa_node)
        return self._ranked(units.sockets.values(), self.free)

    def cores(self) -> list[Unit]:
        units = self._topology
        if self._numa_first:
            return self._ranked_inside(self.sockets(), units.cores_in_socket)
        return self._ranked_inside(self.numa_nodes(), units.cores_in_numa_node)

    def uncore_caches(self) -> list[Unit]:
        return self._ranked_inside(self.numa_nodes(), self._topology.uncore_caches_in_numa_node)

    def take_whole_first_level(self) -> None:
        (self._take_whole_numa_nodes if self._numa_first else self._take_whole_sockets)()

    def take_whole_second_level(self) -> None:
        (self._take_whole_sockets if self._numa_first else self._take_whole_numa_nodes)()

    def take_whole_cores(self) -> None:
        self._take_whole(self.cores(), self._topology.cpus_per_core)

    def take_uncore_caches(self) -> None:
        for cache in self.uncore_caches():
            if self.wanted >= self._topology.cpus_per_uncore_cache:
                self._take_whole(self.uncore_caches())
            if self.wanted > 0:
                self._take_part_of_uncore_cache(cache)
            if self.wanted == 0:
                return

    def take_packed_cpus(self) -> None:
        self._take_lowest(unit.bits for unit in self.cores())

    def take_spread_cpus(self) -> None:
        self._take_lowest(unit.bits for unit in self.sockets())

    def _take_whole_numa_nodes(self) -> None:
        self._take_whole(self.numa_nodes())

    def _take_whole_sockets(self) -> None:
        self._take_whole(self.sockets(), self._topology.cpus_per_socket)

    def _take_whole(self, units: list[Unit], size: int | None = None) -> None:
        """Take units that are free as a whole, passing over those that have more CPUs than are wanted.

        size: a unit with another number of CPUs than this never counts as whole.
        """
        for unit in units:
            cpus = unit.bits.bit_count()
            # Unlike upstream: all CPUs of the unit must be free, not only as many as an average unit has.
            is_free = not unit.bits & ~self.free and size in (None, cpus)
            if is_free and cpus <= self.wanted:
                self.take(unit.bits)
                if self.wanted == 0:
                    return

    def _take_part_of_uncore_cache(self, cache: Unit) -> None:
        """Take all that is wanted from the lowest cores of one cache, or nothing."""
        per_core = self._topology.cpus_per_core
        wanted_cores = -(-self.wanted // per_core)
        bits = 0
        for core in self._topology.cores_in_uncore_cache[cache.id]:
            if wanted_cores == 0:
                break
            if core.bits & cache.bits & self.free:
                bits |= core.bits & self.free
                wanted_cores -= 1
        if self.wanted % 2 and per_core > 1 and bits.bit_count() > self.wanted:
            bits ^= 1 << (bits.bit_length() - 1)
        if bits.bit_count() == self.wanted:
            self.take(bits)

    def _take_lowest(self, units: Iterable[int]) -> None:
        """Take single CPUs, unit by unit, the lowest first."""
        for unit in units:
            inside = unit & self.free
            while inside and self.wanted:
                lowest = inside & -inside
                self.take(lowest)
                inside ^= lowest
            if self.wanted == 0:
                return

    def _ranked(self, units: Iterable[Unit], inside: int) -> list[Unit]:
        """Return the units that have a free CPU in `inside`, those with the fewest free CPUs first."""
        free = self.free
        ranked = [((unit.bits & free).bit_count(), unit.id, unit) for unit in units if unit.bits & inside]
        ranked.sort()
        return [unit for _, _, unit in ranked]

    def _ranked_inside(self, outer: list[Unit], inner: Mapping[int, tuple[Unit, ...]]) -> list[Unit]:
        return [unit for each in outer for unit in self._ranked(inner[each.id], each.bits & self.free)]
