"""Topology hints: sets of NUMA nodes on which a resource can be given, and whether that is preferred.

The CPU manager (`cpu.static_policy`) makes hints, `merging` joins those of all managers into one.

A set of NUMA nodes is an integer, bit n for NUMA node n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple


class TopologyHint(NamedTuple):
    """Where a resource can be given. `mask` None: anywhere."""

    mask: int | None
    is_preferred: bool


#: The hints of one resource: None without a preference, an empty list if the resource cannot be given anywhere.
Hints = Sequence[TopologyHint] | None


def mask_of(numa_nodes: Iterable[int]) -> int:
    """Return the set of these NUMA nodes."""
    mask = 0
    for node in numa_nodes:
        mask |= 1 << node
    return mask


def numa_nodes_of(mask: int) -> list[int]:
    """Return the ids of the NUMA nodes in a set, ascending."""
    return [node for node in range(mask.bit_length()) if mask >> node & 1]


def all_combinations(numa_nodes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every combination of NUMA nodes, the smallest first, in the order in which upstream tries them."""
    for size in range(1, len(numa_nodes) + 1):
        yield from combinations(numa_nodes, size)
