"""NodeResourcesBalancedAllocation: a pod is good for a node whose resources it makes more evenly used.

The score compares how evenly they are used with the pod and without it. Both forms do the same arithmetic in the same
order, so that they agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.amounts import AMOUNT_FIELDS
from nodeward.scheduler.cache.lines import gather
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.plugin import MAX_SCORE, CycleState, PreScorePlugin, RowScorePlugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status
from nodeward.scheduler.plugins.allocation import Weighed, resources_of, weighed

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocation(PreScorePlugin, RowScorePlugin):
    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    default_weight: ClassVar[int] = 1
    pod_fields = AMOUNT_FIELDS

    def __init__(self, context: PluginContext) -> None:
        self._resources = resources_of(context.arguments.get("resources") or ())

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        counted = weighed(self._resources, pod.requests, table)
        cycle.data[self.name] = counted
        return SUCCESS if any(counted.adds) else SKIP

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        counted: Weighed = cycle.data[self.name]
        there = counted.there(table, rows)
        used = gather(table.requested, counted.lines, rows)
        if len(there) == 2 and np.count_nonzero(there) == there.size:
            # The same as below in fewer steps: both at once, without the pod and with it.
            both = np.minimum((used[:, None] + counted.before_and_after) / there[:, None], 1.0)
            even = ((1 - np.abs(both[0] - both[1]) / 2) * MAX_SCORE).astype(np.int64)
            scores: Ints = (even[1] - even[0] + 3 * MAX_SCORE // 2) // 2
            return scores
        has = there != 0
        there = np.maximum(there, 1)
        before = _evenness_column(np.minimum(used / there, 1.0), has)
        after = _evenness_column(np.minimum((used + counted.add_column) / there, 1.0), has)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        counted: Weighed = cycle.data[self.name]
        return _score(counted.cells(node.allocatable, node.requested))

    def row_key(self, cycle: CycleState) -> Hashable:
        counted: Weighed = cycle.data[self.name]
        return counted.key

    def score_row(self, cycle: CycleState, table: NodeTable, row: int) -> int:
        counted: Weighed = cycle.data[self.name]
        return _score(counted.cells_of(table.allocatable, table.requested, row))


def _score(cells: Sequence[tuple[int, int, int, int]]) -> int:
    if len(cells) == 2:
        # The same as below in fewer steps.
        (_, used, adds, there), (_, other_used, other_adds, other_there) = cells
        gap = abs((min(used / there, 1.0) - min(other_used / other_there, 1.0)) / 2)
        used, other_used = used + adds, other_used + other_adds
        other_gap = abs((min(used / there, 1.0) - min(other_used / other_there, 1.0)) / 2)
        return (3 * MAX_SCORE // 2 + int((1 - other_gap) * MAX_SCORE) - int((1 - gap) * MAX_SCORE)) // 2
    before = _evenness([min(used / there, 1.0) for _, used, _, there in cells])
    after = _evenness([min((used + adds) / there, 1.0) for _, used, adds, there in cells])
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2


def _evenness(shares: Sequence[float]) -> int:
    """100 if all resources are used alike, less the further they are apart."""
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * MAX_SCORE)


def _evenness_column(shares: Floats, has: NDArray[np.bool_]) -> Ints:
    """The same for a line per resource, where `has` says which of them a node has."""
    deviation: Floats
    if len(shares) == 2:
        deviation = np.where(has[0] & has[1], np.abs((shares[0] - shares[1]) / 2), 0.0)
    else:
        deviation = _deviation(shares, has)
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def _deviation(shares: Floats, has: NDArray[np.bool_]) -> Floats:
    count = has.sum(axis=0)
    # Line after line, as a loop over one node's resources would add them up.
    total = np.zeros(shares.shape[1])
    for share, is_there in zip(shares, has, strict=True):
        total += np.where(is_there, share, 0.0)
    mean = total / np.maximum(count, 1)
    squares = np.zeros_like(total)
    for share, is_there in zip(shares, has, strict=True):
        squares += np.where(is_there, (share - mean) * (share - mean), 0.0)
    many = np.sqrt(squares / np.maximum(count, 1))
    nodes = np.arange(shares.shape[1])
    first, last = has.argmax(axis=0), len(has) - 1 - has[::-1].argmax(axis=0)
    two = np.abs((shares[first, nodes] - shares[last, nodes]) / 2)
    return np.where(count > 2, many, np.where(count == 2, two, 0.0))
