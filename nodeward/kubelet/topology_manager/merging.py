"""Join the hints of all resources into the one set of NUMA nodes on which a container or pod is placed.

The scopes of the topology manager call `merge` with the hints of every provider; the answer says where resources are
allocated and whether the policy admits the pod.

What must stay true: a preferred combination wins over any other; among equals the narrowest wins (or the closest, with
option prefer-closest-numa-nodes), then the one with lower NUMA nodes, as upstream. With many resources the number of
combinations is bounded, because equal merged sets are tried once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nodeward.kubelet.topology_manager.hints import Hints, TopologyHint, mask_of, numa_nodes_of

NONE: Final = "none"
BEST_EFFORT: Final = "best-effort"
RESTRICTED: Final = "restricted"
SINGLE_NUMA_NODE: Final = "single-numa-node"

_ANYWHERE: Final = TopologyHint(None, True)
_NOWHERE: Final = TopologyHint(None, False)


class MergedHint(NamedTuple):
    """Where resources are allocated, and whether the policy admits that."""

    hint: TopologyHint
    is_admitted: bool


class _Permutation(NamedTuple):
    """One hint of each resource so far: what they have in common, and the first mask among them."""

    mask: int
    first: int | None
    is_preferred: bool


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """A policy of the topology manager on one machine.

    distances: by NUMA node, its distance to each NUMA node by id. prefers_closest: option
    prefer-closest-numa-nodes.
    """

    name: str
    numa_nodes: tuple[int, ...]
    distances: Mapping[int, Sequence[int]]
    prefers_closest: bool = False

    def merge(self, providers: Iterable[Mapping[str, Hints]]) -> MergedHint:
        """Return the best hint that all resources agree on. Each provider gives hints by resource name."""
        if self.name == NONE:
            return MergedHint(TopologyHint(None, False), True)
        resources = [list(hints) for hints in _resources(providers)]
        everywhere = mask_of(self.numa_nodes)
        if self.name == SINGLE_NUMA_NODE:
            resources = [
                [hint for hint in hints if hint.is_preferred and _is_one_node(hint.mask)]
                for hints in resources
            ]
        best = self._best(resources, everywhere)
        if self.name == SINGLE_NUMA_NODE and best.mask == everywhere:
            best = TopologyHint(None, best.is_preferred)
        return MergedHint(best, self.name == BEST_EFFORT or best.is_preferred)

    def _best(self, resources: list[list[TopologyHint]], everywhere: int) -> TopologyHint:
        goal = max((_narrowest_size(hints) for hints in resources), default=0)
        candidates = (hint for hint in _merged(resources, everywhere) if hint.mask)
        worst = TopologyHint(everywhere, False)
        return min(candidates, key=lambda hint: self._rank(hint, goal), default=worst)

    def _rank(self, hint: TopologyHint, goal: int) -> tuple[int, int, int, int]:
        """Return a key that is lowest for the best hint.

        goal: the size that a hint which is not preferred should have. Those of that size come first, then the
        smaller ones from the largest down, then the larger ones from the smallest up.
        """
        mask = hint.mask or 0
        size = mask.bit_count()
        is_by_distance = self.prefers_closest and self.name != SINGLE_NUMA_NODE
        distance = self._distance(mask) if is_by_distance else 0
        if hint.is_preferred:
            return 0, size, distance, mask
        if size <= goal:
            return 1, -size, distance, mask
        return 2, size, distance, mask

    def _distance(self, mask: int) -> int:
        """Return the sum of all distances inside a set; sets of equal size compare by it as by the average."""
        nodes = numa_nodes_of(mask)
        return sum(self.distances[one][other] for one in nodes for other in nodes)


def _resources(providers: Iterable[Mapping[str, Hints]]) -> Iterable[Sequence[TopologyHint]]:
    for provider in providers:
        if not provider:
            yield [_ANYWHERE]
        for hints in provider.values():
            yield [_ANYWHERE] if hints is None else hints or [_NOWHERE]


def _merged(resources: Sequence[Sequence[TopologyHint]], everywhere: int) -> Iterable[TopologyHint]:
    """Return what one hint of every resource has in common, for every choice of hints, each result once."""
    found = {_Permutation(everywhere, None, True): None}
    for hints in resources:
        found = {_joined(each, hint): None for each in found for hint in hints}
    return dict.fromkeys(TopologyHint(each.mask, each.is_preferred) for each in found)


def _joined(before: _Permutation, hint: TopologyHint) -> _Permutation:
    if hint.mask is None:
        return before._replace(is_preferred=before.is_preferred and hint.is_preferred)
    first = hint.mask if before.first is None else before.first
    agrees = before.is_preferred and hint.is_preferred and hint.mask == first
    return _Permutation(before.mask & hint.mask, first, agrees)


def _is_one_node(mask: int | None) -> bool:
    return mask is None or mask.bit_count() == 1


def _narrowest_size(hints: Iterable[TopologyHint]) -> int:
    return min((hint.mask.bit_count() for hint in hints if hint.mask is not None), default=0)
