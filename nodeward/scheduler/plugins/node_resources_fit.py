"""NodeResourcesFit: what the pods of a node were promised never exceeds what the node has; and how full is best.

The score is that of a strategy: emptiest first (LeastAllocated, if nothing else is said), fullest first
(MostAllocated), or along a curve (RequestedToCapacityRatio). Scores count a little CPU and memory for containers that
ask for none; the filter does not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.rules.pod_resources import pod_requests
from nodeward.scheduler.cache.amounts import (
    AMOUNT_FIELDS,
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    MOST,
    PODS,
    scored_requests,
    whole,
)
from nodeward.scheduler.cache.lines import Lines, gather, lines
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    CycleState,
    EnqueueExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    RejectedRows,
    RowFilterPlugin,
    RowScorePlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Code, Status
from nodeward.scheduler.plugins.allocation import Weighed, resources_of, weighed
from nodeward.scheduler.plugins.strategies import LEAST, strategy

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

    Ints = NDArray[np.int64]


_SCORES: Final = "NodeResourcesFit/score"


@dataclass(frozen=True, slots=True)
class Need:
    """What the pod asks for, in the order of the reasons; one of `pods` comes first."""

    amounts: Mapping[str, int]
    lines: Lines
    column: Ints
    #: (line, amount) of each
    cells: tuple[tuple[int, int], ...]

    def at(self, array: Ints, row: int) -> dict[str, int]:
        """What an array of the table has of these in a row."""
        return {name: array.item(line, row) for name, (line, _) in zip(self.amounts, self.cells, strict=True)}


class NodeResourcesFit(PreFilterPlugin, RowFilterPlugin, PreScorePlugin, RowScorePlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeResourcesFit"
    default_weight: ClassVar[int] = 1
    pod_fields = AMOUNT_FIELDS

    def __init__(self, context: PluginContext) -> None:
        scoring: Mapping[str, Any] = context.arguments.get("scoringStrategy") or {}
        shape = (scoring.get("requestedToCapacityRatio") or {}).get("shape") or ()
        self._strategy = strategy(scoring.get("type") or LEAST, shape)
        self._resources = resources_of(scoring.get("resources") or ())
        self._ignored = frozenset(context.arguments.get("ignoredResources") or ())
        self._ignored_groups = frozenset(context.arguments.get("ignoredResourceGroups") or ())

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        gone = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        shrunk = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
        asks_less = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_SCALE_DOWN)
        return (
            ClusterEventWithHint(gone, _after_pod_is_gone),
            ClusterEventWithHint(node, self._after_node),
            ClusterEventWithHint(shrunk, _after_pod_shrank),
            ClusterEventWithHint(asks_less, _after_asking_less),
        )

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        amounts = self._needs(pod)
        column = np.array([*amounts.values()], np.int64)[:, None]
        cells = tuple((table.line_of(name), amount) for name, amount in amounts.items())
        cycle.data[self.name] = Need(amounts, lines([line for line, _ in cells]), column, cells)
        return SUCCESS

    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        need: Need = cycle.data[self.name]
        there = gather(table.allocatable, need.lines, rows)
        is_short = there - gather(table.requested, need.lines, rows) < need.column
        if not np.count_nonzero(is_short):
            return None
        is_out = is_short.any(axis=0)
        is_short = is_short[:, is_out]
        # A node that would be too small were it empty is not helped by preemption; pods can always be moved.
        is_hopeless = (is_short & (there[:, is_out] < need.column))[1:].any(axis=0)
        kinds, kind_of = np.unique(np.vstack((is_short, is_hopeless)), axis=1, return_inverse=True)
        which = np.full(len(rows), -1, np.int64)
        which[is_out] = kind_of.reshape(-1)
        names = tuple(need.amounts)
        reasons = [
            lacking([name for name, short in zip(names, kind, strict=False) if short], is_hopeless=kind[-1])
            for kind in kinds.T.tolist()
        ]
        return RejectedRows(which, reasons)

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return _lack(self._needs(pod), node.allocatable, node.requested)

    def _needs(self, pod: PodView) -> dict[str, int]:
        asked = pod.requests
        found = {PODS: 1}
        first = (CPU, MEMORY, EPHEMERAL_STORAGE)
        for name in (*first, *sorted(name for name in asked if name not in first)):
            if asked.get(name, 0) > 0 and not self._is_ignored(name):
                # One more than a node can have, if it is more than can be counted.
                found[name] = min(asked[name], MOST + 1)
        return found

    def _is_ignored(self, name: str) -> bool:
        group, slash, _ = name.partition("/")
        return bool(slash) and (name in self._ignored or group in self._ignored_groups)

    # -- score

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        counted = weighed(self._resources, scored_requests(pod.pod), table)
        cycle.data[_SCORES] = counted
        return SUCCESS

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        counted: Weighed = cycle.data[_SCORES]
        there = counted.there(table, rows)
        used = gather(table.scored, counted.lines, rows) + counted.add_column
        weights = counted.weight_column
        if np.count_nonzero(there) == there.size and not self._strategy.is_ratio:
            # The same as below, in fewer steps.
            total: Ints = weights[:, 0].dot(self._strategy.column(used, there))
            return total // counted.weight
        scores = self._strategy.column(used, np.maximum(there, 1))
        return self._strategy.mean_columns(scores, np.where(there != 0, weights, 0))

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        counted: Weighed = cycle.data[_SCORES]
        return self._mean(counted.cells(node.allocatable, node.scored))

    def _mean(self, cells: Sequence[tuple[int, int, int, int]]) -> int:
        each = self._strategy.each
        return self._strategy.mean(
            [(each(used + adds, there), weight) for weight, used, adds, there in cells]
        )

    # -- one row

    def row_key(self, cycle: CycleState) -> Hashable:
        need, counted = need_of(cycle), cycle.data.get(_SCORES)
        return need and need.cells, counted and counted.key

    def fits_row(self, cycle: CycleState, table: NodeTable, row: int) -> bool:
        need: Need = cycle.data[self.name]
        there, used = table.allocatable.item, table.requested.item
        for line, amount in need.cells:  # noqa: SIM110 - three times as fast as all()
            if there(line, row) - used(line, row) < amount:
                return False
        return True

    def score_row(self, cycle: CycleState, table: NodeTable, row: int) -> int:
        counted: Weighed = cycle.data[_SCORES]
        strategy = self._strategy
        if strategy.is_ratio:
            return self._mean(counted.cells_of(table.allocatable, table.scored, row))
        there, used, each = table.allocatable.item, table.scored.item, strategy.each
        total = weights = 0
        for line, weight, adds in counted.key:
            amount = there(line, row)
            if amount:
                total += weight * each(used(line, row) + adds, amount)
                weights += weight
        return total // weights if weights else 0

    # -- hints

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        needs, there = self._needs(pod), whole(new.status.allocatable)
        if not _lack(needs, there, {}).is_success:
            return QueueingHint.SKIP
        before = whole(old.status.allocatable) if old is not None else None
        has_grown = before is None or any(there.get(name, 0) > before.get(name, 0) for name in needs)
        return QueueingHint.QUEUE if has_grown else QueueingHint.SKIP


def need_of(cycle: CycleState) -> Need | None:
    """What the plugin keeps of the cycle's pod; None if it takes no part."""
    found = cycle.data.get(NodeResourcesFit.name)
    return found if isinstance(found, Need) else None


def _lack(needs: Mapping[str, int], there: Mapping[str, int], used: Mapping[str, int]) -> Status:
    short = [name for name, n in needs.items() if n > there.get(name, 0) - used.get(name, 0)]
    return lacking(short, is_hopeless=any(needs[name] > there.get(name, 0) for name in short if name != PODS))


def lacking(short: Sequence[str], *, is_hopeless: bool) -> Status:
    """The rejection of a node that has too little of these."""
    if not short:
        return SUCCESS
    reasons = tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in short)
    return Status(Code.UNRESOLVABLE if is_hopeless else Code.UNSCHEDULABLE, reasons)


def _after_pod_is_gone(pod: PodView, old: Pod, new: Pod | None) -> QueueingHint:
    return QueueingHint.QUEUE if old.spec.node_name or old.status.nominated_node_name else QueueingHint.SKIP


def _after_pod_shrank(pod: PodView, old: Pod, new: Pod) -> QueueingHint:
    if not new.spec.node_name:
        return QueueingHint.SKIP
    before, after = (whole(pod_requests(each, with_status=True, with_pod_status=True)) for each in (old, new))
    has_shrunk = any(before.get(name, 0) > after.get(name, 0) for name in pod.requests)
    return QueueingHint.QUEUE if has_shrunk else QueueingHint.SKIP


def _after_asking_less(pod: PodView, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE
