"""Choose the NUMA nodes that share a request for CPUs evenly, so that what stays free is balanced.

`assignment` calls `choose_numa_nodes` for distribute-cpus-across-numa and then takes the CPUs itself.

What must stay true: the fewest NUMA nodes that can share the request win; among equally many, those that leave the
most even numbers of free CPUs on all NUMA nodes; among equally even ones, the first in the given order. The measure is
the standard deviation, with the mean and the result rounded to thousandths as upstream does, but computed in whole
numbers. The work is bounded: on machines with more than ten NUMA nodes the search may end before the best choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isqrt
from typing import Final, NamedTuple

from nodeward.kubelet.cpu.topology import CPUTopology

#: Combinations and remainders tried for one request; ten NUMA nodes never have more. Unlike upstream, which tries all.
MOST_TRIES: Final = 3**10


class NUMAChoice(NamedTuple):
    """`share` CPUs from every node of `combination`; what is then missing, in groups, from `remainder`."""

    combination: tuple[int, ...]
    share: int
    remainder: tuple[int, ...]


class _Scored(NamedTuple):
    #: A combination in one socket comes before all others if CPUs are aligned by socket.
    crosses_sockets: bool
    imbalance: int
    choice: NUMAChoice


def choose_numa_nodes(
    topology: CPUTopology, free: Mapping[int, int], wanted: int, *, group: int, align_by_socket: bool
) -> NUMAChoice | None:
    """Return the NUMA nodes that share `wanted` CPUs, or None where no nodes can.

    free: the number of free CPUs per NUMA node, in the order in which nodes are preferred.
    """
    all_groups = -(-len(topology.all_cpus) // group)
    groups_per_node = -(-all_groups // len(topology.numa_nodes))
    groups = -(-wanted // group)
    tries = iter(range(MOST_TRIES))
    for size in range(-(-groups // groups_per_node), min(groups, len(free)) + 1):
        best: _Scored | None = None
        for combination in combinations(free, size):
            if best is not None and best.imbalance == 0 and not best.crosses_sockets:
                break
            if next(tries, None) is None:
                break
            scored = _score(topology, free, wanted, combination, group, align_by_socket, tries)
            if scored is not None and (best is None or scored[:2] < best[:2]):
                best = scored
        if best is not None:
            return best.choice
    return None


def in_groups(free: Mapping[int, int], nodes: Sequence[int], wanted: int, group: int) -> Iterator[int]:
    """Yield the node that gives the next group, in rounds, until `wanted` CPUs or all whole groups are given."""
    left = {node: free[node] // group for node in nodes}
    while wanted > 0 and any(left.values()):
        for node in nodes:
            if wanted > 0 and left[node]:
                left[node] -= 1
                wanted -= group
                yield node


def _score(
    topology: CPUTopology,
    free: Mapping[int, int],
    wanted: int,
    combination: tuple[int, ...],
    group: int,
    align_by_socket: bool,
    tries: Iterator[int],
) -> _Scored | None:
    """Return how even a combination leaves the machine, or None if it cannot share the request."""
    usable = [free[node] // group * group for node in combination]
    if sum(usable) < wanted:
        return None
    share = wanted // len(combination) // group * group
    if share > min(usable):
        if not align_by_socket:
            return None
        share = min(usable)
    after = dict(free)
    for node in combination:
        after[node] -= share
    crosses = align_by_socket and len(topology.sockets_of_numa_nodes(combination)) > 1
    missing = wanted - share * len(combination)
    if missing == 0:
        return _Scored(crosses, _imbalance(after), NUMAChoice(combination, share, ()))
    candidates = [node for node in combination if after[node] >= group]
    best = _best_remainder(after, candidates, missing, group, tries)
    if best is None:
        return None
    imbalance, remainder = best
    return _Scored(crosses, imbalance, NUMAChoice(combination, share, remainder))


def _best_remainder(
    after: Mapping[int, int], candidates: Sequence[int], missing: int, group: int, tries: Iterator[int]
) -> tuple[int, tuple[int, ...]] | None:
    """Return the nodes that give the missing CPUs so that the machine is left most even, and how even that is."""
    best: tuple[int, tuple[int, ...]] | None = None
    for size in range(len(candidates), 0, -1):
        for subset in combinations(candidates, size):
            if next(tries, None) is None:
                return best
            # Unlike upstream: only whole groups count, so that handing them out always comes to an end.
            if sum(after[node] // group for node in subset) * group < missing:
                continue
            left = dict(after)
            for node in in_groups(after, subset, missing, group):
                left[node] -= group
            imbalance = _imbalance(left)
            if best is None or imbalance < best[0]:
                best = (imbalance, subset)
    return best


def _imbalance(free: Mapping[int, int]) -> int:
    """Return the standard deviation in thousandths, from a mean rounded to thousandths; halves are rounded up."""
    count = len(free)
    mean = (2000 * sum(free.values()) + count) // (2 * count)
    squares = sum((1000 * each - mean) ** 2 for each in free.values())
    return (isqrt(4 * squares // count) + 1) // 2
