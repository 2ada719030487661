"""PodTopologySpread: pods of a kind evenly over zones, hosts or any other label of nodes.

A constraint that must hold keeps a pod off a domain that would have too many more of its kind than the emptiest one;
the others rank nodes, the fewer such pods in their domains the better. Which nodes count is the constraint's choice:
by default those the pod's node affinity allows, whatever their taints; they must have the labels of all constraints.

The table counts pods per node; here they are added up per value of a topology key, and nodes look their value up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.rules.affinity import fits_node
from nodeward.rules.selectors import SelectorError
from nodeward.rules.taints import blocking_taint
from nodeward.scheduler.cache.labels import LabelColumns
from nodeward.scheduler.cache.pod_groups import POD_GROUPS
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import ClusterEventWithHint
from nodeward.scheduler.framework.plugin import (
    MAX_SCORE,
    ColumnFilterPlugin,
    ColumnScorePlugin,
    CycleState,
    EnqueueExtensions,
    PreFilterExtensions,
    PreScorePlugin,
    RejectedRows,
    ScoreExtensions,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, failed, unresolvable, unschedulable
from nodeward.scheduler.plugins.pod_topology_spread_hints import PodTopologySpreadHints
from nodeward.scheduler.plugins.spread_constraints import (
    HOSTNAME,
    KINDS,
    Constraint,
    Constraints,
    SpreadConstraints,
)
from nodeward.scheduler.plugins.spread_fields import Field, SpreadPlan, Sums

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

Ints: TypeAlias = NDArray[np.int64]
_EMPTY: Final[Sums] = np.zeros(0, np.float64)

UNEVEN: Final = unschedulable("node(s) didn't match pod topology spread constraints")
UNLABELLED: Final = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)
#: The raw score of a node that lacks a label, and so is not ranked.
UNRANKED: Final = -1

_SCORES: Final = "PodTopologySpread/scores"


@dataclass(slots=True)
class SpreadFilterState:
    """What a filter needs: per hard constraint the pods of its kind in each domain."""

    fields: tuple[Field, ...]
    labels: LabelColumns
    #: never changed, but replaced
    counts: list[Sums]

    def copy(self) -> SpreadFilterState:
        return SpreadFilterState(self.fields, self.labels, list(self.counts))

    def most(self, index: int) -> float:
        """How many a domain may have and still take the pod."""
        field = self.fields[index]
        return field.constraint.max_skew + field.least(self.counts[index]) - field.constraint.own


@dataclass(slots=True)
class SpreadScoreState:
    """What a score needs: per soft constraint the pods in each domain, and what one of them weighs."""

    plan: SpreadPlan
    table: NodeTable
    counts: list[Sums]
    weights: list[float]


class PodTopologySpread(
    PodTopologySpreadHints,
    PreFilterExtensions,
    ColumnFilterPlugin,
    PreScorePlugin,
    ColumnScorePlugin,
    ScoreExtensions,
    StatefulPlugin,
    EnqueueExtensions,
):
    name: ClassVar[str] = "PodTopologySpread"
    default_weight: ClassVar[int] = 2
    objects = KINDS
    pod_fields = (
        "metadata.namespace",
        "metadata.labels",
        "metadata.owner_references",
        "spec.topology_spread_constraints",
        "spec.node_selector",
        "spec.affinity",
        "spec.tolerations",
    )

    def __init__(self, context: PluginContext) -> None:
        merges_keys = context.gates.enabled("MatchLabelKeysInPodTopologySpread")
        super().__init__(SpreadConstraints(context.arguments, context.listers, merges_keys=merges_keys))
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        """Whether it has constraints, be it of its own or by default."""
        if pod.pod.spec.topology_spread_constraints:
            return True
        return bool(self.constraints.of(pod))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self.hints()

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        cycle.data.pop(self.name, None)
        try:
            constraints = self.constraints.of(pod)
        except SelectorError as error:
            return failed(f"get constraints from pod: {error}")
        if not constraints.hard:
            return SKIP
        fields = self._plan(pod, constraints, table).hard
        cycle.data[self.name] = SpreadFilterState(
            fields, table.labels, [field.sums(table) for field in fields]
        )
        return SUCCESS

    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        found: SpreadFilterState = cycle.data[self.name]
        which: Ints | None = None
        # From the last to the first: the first constraint that fails explains.
        for index in reversed(range(len(found.fields))):
            field = found.fields[index]
            is_uneven = found.counts[index] > found.most(index)
            is_uneven[-1] = False
            has_uneven = bool(is_uneven.any())
            if not has_uneven and not field.has_unlabelled:
                continue
            if which is None:
                which = np.full(len(rows), -1, np.int64)
            here = field.slots.take(rows)
            if has_uneven:
                which[is_uneven.take(here)] = 0
            if field.has_unlabelled:
                which[here == field.size - 1] = 1
        if which is None or which.max(initial=-1) < 0:
            return None
        return RejectedRows(which, (UNEVEN, UNLABELLED))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        found: SpreadFilterState | None = cycle.data.get(self.name)
        if found is None:
            return SUCCESS
        labels = node.node.metadata.labels
        for index, field in enumerate(found.fields):
            value = labels.get(field.constraint.topology_key)
            if value is None:
                return UNLABELLED
            number = found.labels.number(field.constraint.topology_key, value)
            here = float(found.counts[index][number]) if number is not None else 0.0
            if here > found.most(index):
                return UNEVEN
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodView, added: PodView, node: Node) -> Status:
        return self._suppose(cycle, pod, added, node, 1)

    def remove_pod(self, cycle: CycleState, pod: PodView, removed: PodView, node: Node) -> Status:
        return self._suppose(cycle, pod, removed, node, -1)

    def _suppose(self, cycle: CycleState, pod: PodView, other: PodView, node: Node, amount: int) -> Status:
        found: SpreadFilterState | None = cycle.data.get(self.name)
        labels = node.metadata.labels
        if found is None or any(field.constraint.topology_key not in labels for field in found.fields):
            return SUCCESS
        for index, field in enumerate(found.fields):
            constraint = field.constraint
            # Unlike upstream: a pod that is being deleted was not counted, and so is not taken off.
            if not constraint.group.holds_pod(other) or not self._counts(constraint, pod, node):
                continue
            number = found.labels.number(constraint.topology_key, labels[constraint.topology_key])
            if number is not None:
                counts = found.counts[index].copy()
                counts[number] += amount
                found.counts[index] = counts
        return SUCCESS

    # -- score

    def pre_score(
        self, cycle: CycleState, pod: PodView, table: NodeTable, rows: Ints | None = None
    ) -> Status:
        """`rows` are the feasible ones; if not given, `score_rows` takes those it is asked about, `score` all nodes."""
        cycle.data.pop(_SCORES, None)
        constraints = self.constraints.of(pod)
        if not constraints.soft or not table.count:
            return SKIP
        plan = self._plan(pod, constraints, table)
        counts = [_EMPTY if _is_host(field) else field.sums(table) for field in plan.soft]
        ranking = cycle.data[_SCORES] = SpreadScoreState(plan, table, counts, [])
        if rows is not None:
            ranking.weights = _weights(plan, table, rows)
        return SUCCESS

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        ranking: SpreadScoreState = cycle.data[_SCORES]
        plan = ranking.plan
        weights = ranking.weights or _weights(plan, table, rows)
        total: Sums | None = None
        for field, counts, weight in zip(plan.soft, ranking.counts, weights, strict=True):
            more = field.constraint.max_skew - 1
            if _is_host(field):
                # What is on the node itself counts, whatever the policies say of it.
                column = table.pod_index(POD_GROUPS).tally(field.constraint.group).column
                scores: Sums = column.take(rows) * np.float64(weight) + more
                if field.has_unlabelled:
                    scores[field.slots.take(rows) == field.size - 1] = 0
            else:
                by_slot = counts * weight + more
                by_slot[-1] = 0
                scores = by_slot.take(field.slots.take(rows))
            total = scores if total is None else total + scores
        if total is None:
            return np.zeros(len(rows), np.int64)
        # Rounded half up: there is nothing below zero.
        total += 0.5
        found = total.astype(np.int64)
        if plan.unranked is not None:
            found[plan.unranked.take(rows)] = UNRANKED
        return found

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        ranking: SpreadScoreState = cycle.data[_SCORES]
        labels = node.node.metadata.labels
        total = 0.0
        if not ranking.weights:
            ranking.weights = _weights(ranking.plan, ranking.table, ranking.table.rows())
        for field, counts, weight in zip(ranking.plan.soft, ranking.counts, ranking.weights, strict=True):
            constraint = field.constraint
            value = labels.get(constraint.topology_key)
            if value is None:
                if ranking.plan.constraints.needs_all_keys:
                    return UNRANKED
                continue
            if _is_host(field):
                here = float(sum(constraint.group.holds_pod(each) for each in node.pods))
            else:
                number = ranking.table.labels.number(constraint.topology_key, value)
                here = float(counts[number]) if number is not None else 0.0
            total += here * weight + (constraint.max_skew - 1)
        return int(total + 0.5)

    def normalize(self, cycle: CycleState, scores: Ints) -> Ints:
        """The fewer pods the better: the best node gets most; what is not ranked, nothing."""
        if not len(scores):
            return scores
        if int(scores.min()) != UNRANKED:
            return _normalized(scores)
        is_ranked = scores != UNRANKED
        found = np.zeros_like(scores)
        if is_ranked.any():
            found[is_ranked] = _normalized(scores[is_ranked])
        return found

    # -- which nodes count

    def _plan(self, pod: PodView, constraints: Constraints, table: NodeTable) -> SpreadPlan:
        known: SpreadPlan | None = table.remembered.get(self, pod.signature)
        if known is not None and known.holds(constraints, table):
            return known
        plan = SpreadPlan(pod, constraints, table, numeric=self._numeric)
        table.remembered.put(self, pod.signature, plan)
        return plan

    def _counts(self, constraint: Constraint, pod: PodView, node: Node) -> bool:
        """Whether the pods on a node that has all labels count for the constraint."""
        if constraint.honors_affinity and not fits_node(pod.pod.spec, node):
            return False
        if not constraint.honors_taints:
            return True
        taints, tolerations = node.spec.taints, pod.pod.spec.tolerations
        return blocking_taint(taints, tolerations, numeric=self._numeric) is None


def _is_host(field: Field) -> bool:
    return field.constraint.topology_key == HOSTNAME


def _weights(plan: SpreadPlan, table: NodeTable, rows: Ints) -> list[float]:
    """What a pod weighs in each topology: the more domains feasible nodes are in, the fewer pods each of them has."""
    is_all = len(rows) == table.count
    if plan.unranked is not None:
        rows = rows[~plan.unranked.take(rows)]
        is_all = False
    found: list[float] = []
    for field in plan.soft:
        if _is_host(field):
            size = len(rows)
        elif is_all:
            size = field.spots
        else:
            size = int(np.count_nonzero(np.bincount(field.slots.take(rows), None, field.size)))
        found.append(math.log(size + 2))
    return found


def _normalized(scores: Ints) -> Ints:
    most, least = int(scores.max()), int(scores.min())
    if not most:
        return np.full_like(scores, MAX_SCORE)
    return MAX_SCORE * (most + least - scores) // most
