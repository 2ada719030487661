"""NodeAffinity: node selectors and required affinity keep pods off nodes; preferred affinity ranks the rest.

A configuration may add an affinity to every pod of its profile (`addedAffinity`). In columns, a requirement is
judged once per value a label has in the cluster, and nodes look their answer up by the number of their value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.affinity import NodeAffinity as Affinity
from nodeward.api.core_v1.affinity import PreferredSchedulingTerm
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.rules.affinity import NAME_FIELD, fits_node, holds, label_matches, named_nodes, selects
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    ColumnFilterPlugin,
    ColumnScorePlugin,
    CycleState,
    EnqueueExtensions,
    PreFilterNodes,
    PreScorePlugin,
    RejectedRows,
    ScoreExtensions,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable
from nodeward.scheduler.plugins.normalizing import by_largest

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

REASON: Final = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED: Final = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT: Final = unresolvable("pod affinity terms conflict")


class NodeAffinity(
    PreFilterNodes, ColumnFilterPlugin, PreScorePlugin, ColumnScorePlugin, ScoreExtensions, EnqueueExtensions
):
    name: ClassVar[str] = "NodeAffinity"
    default_weight: ClassVar[int] = 2
    pod_fields = ("spec.node_selector", "spec.affinity")
    is_static: ClassVar[bool] = True

    def __init__(self, context: PluginContext) -> None:
        added = from_tree(context.arguments.get("addedAffinity") or {}, Affinity)
        self._added = added.required_during_scheduling_ignored_during_execution
        self._added_preferred = added.preferred_during_scheduling_ignored_during_execution

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (ClusterEventWithHint(node, self._after_node),)

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        required = _required(pod)
        if required is None and self._added is None and not pod.pod.spec.node_selector:
            return SKIP
        return CONFLICT if self.only_nodes(cycle, pod) == [] else SUCCESS

    def only_nodes(self, cycle: CycleState, pod: PodView) -> list[str] | None:
        required = _required(pod)
        return named_nodes(pod.pod.spec) if required is not None and required.node_selector_terms else None

    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        which = np.full(len(rows), -1, np.int64)
        fits = rows_that_fit(cycle.pod, table, rows)
        which[~fits] = 0
        if self._added is not None:
            which[~_selects(self._added, table, rows)] = 1
        return RejectedRows(which, (REASON, ENFORCED)) if (which >= 0).any() else None

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        if self._added is not None and not selects(self._added, node.node):
            return ENFORCED
        return SUCCESS if fits_node(pod.pod.spec, node.node) else REASON

    # -- score

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        return SUCCESS if self._preferred(pod) else SKIP

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        total = np.zeros(len(rows), np.int64)
        for term in self._preferred(cycle.pod):
            total += term.weight * _holds(term.preference, table, rows)
        return total

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        return sum(term.weight for term in self._preferred(pod) if holds(term.preference, node.node))

    def normalize(self, cycle: CycleState, scores: Ints) -> Ints:
        return by_largest(scores)

    def _preferred(self, pod: PodView) -> list[PreferredSchedulingTerm]:
        affinity = pod.pod.spec.affinity
        mine = affinity.node_affinity if affinity is not None else None
        if mine is None:
            return self._added_preferred
        return [*self._added_preferred, *mine.preferred_during_scheduling_ignored_during_execution]

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        if self._added is not None and not selects(self._added, new):
            return QueueingHint.SKIP
        had = old is not None and fits_node(pod.pod.spec, old)
        return QueueingHint.QUEUE if not had and fits_node(pod.pod.spec, new) else QueueingHint.SKIP


def rows_that_fit(pod: PodView, table: NodeTable, rows: Ints) -> Bools:
    """Which of `rows` the pod's node selector and required affinity allow."""
    fits = np.ones(len(rows), np.bool_)
    for key, value in pod.pod.spec.node_selector.items():
        column = table.labels.column(key)
        number = table.labels.number(key, value)
        fits &= column[rows] == number if number is not None else False
    required = _required(pod)
    if required is not None:
        fits &= _selects(required, table, rows)
    return fits


def _required(pod: PodView) -> NodeSelector | None:
    affinity = pod.pod.spec.affinity
    mine = affinity.node_affinity if affinity is not None else None
    return mine.required_during_scheduling_ignored_during_execution if mine is not None else None


def _selects(selector: NodeSelector, table: NodeTable, rows: Ints) -> Bools:
    found = np.zeros(len(rows), np.bool_)
    for term in selector.node_selector_terms:
        found |= _holds(term, table, rows)
    return found


def _holds(term: NodeSelectorTerm, table: NodeTable, rows: Ints) -> Bools:
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(rows), np.bool_)
    found = np.ones(len(rows), np.bool_)
    for wish in term.match_expressions:
        found &= _label_matches(wish, table, rows)
    for wish in term.match_fields:
        found &= _field_matches(wish, table, rows)
    return found


def _label_matches(wish: NodeSelectorRequirement, table: NodeTable, rows: Ints) -> Bools:
    numbers = table.labels.column(wish.key)[rows].astype(np.int64)
    # One answer per value that is asked about, and one for nodes without the label.
    values = table.labels.values(wish.key)
    if len(rows) < len(values):
        kinds, kind_of = np.unique(numbers, return_inverse=True)
    else:
        kinds, kind_of = np.arange(-1, len(values), dtype=np.int64), numbers + 1
    answers = [
        label_matches(wish, {wish.key: values[number]} if number >= 0 else {}) for number in kinds.tolist()
    ]
    return np.array(answers, np.bool_)[kind_of]


def _field_matches(wish: NodeSelectorRequirement, table: NodeTable, rows: Ints) -> Bools:
    if wish.key != NAME_FIELD or len(wish.values) != 1 or wish.operator not in ("In", "NotIn"):
        return np.zeros(len(rows), np.bool_)
    row = table.row_of(wish.values[0])
    is_it: Bools = rows == (-1 if row is None else row)
    return is_it if wish.operator == "In" else ~is_it
