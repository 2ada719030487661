"""TaintToleration: no pod on a node whose taints it does not tolerate, numbers included (KEP-5471).

Nodes that would rather not have the pod (PreferNoSchedule) score lower, by how many such taints they have. The reason
for a rejection is upstream's; which taints it was is told in notes (docs/keps/kep-5471.md, Decided).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.rules.taints import blocking_taint, unwelcome
from nodeward.rules.tolerations import has_unreadable_value
from nodeward.scheduler.cache.node_taints import NODE_TAINTS
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    ColumnScorePlugin,
    CycleState,
    EnqueueExtensions,
    NotedFilterPlugin,
    RejectedRows,
    RejectionNotes,
    ScoreExtensions,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, unresolvable
from nodeward.scheduler.plugins.normalizing import by_largest
from nodeward.scheduler.plugins.unreadable_taints import UnreadableTaints

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unresolvable("node(s) had untolerated taint(s)")
#: What a note says of a taint that an `Lt` or `Gt` toleration should have been compared with.
UNREADABLE: Final = " (the value is no number)"


class TaintToleration(NotedFilterPlugin, ColumnScorePlugin, ScoreExtensions, EnqueueExtensions):
    name: ClassVar[str] = "TaintToleration"
    default_weight: ClassVar[int] = 3
    pod_fields = ("spec.tolerations",)
    is_static: ClassVar[bool] = True

    def __init__(self, context: PluginContext) -> None:
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        # An explanation is told what it asks for, and logs nothing.
        self._unreadable = UnreadableTaints() if context.handle is not None and self._numeric else None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        tolerations = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
        return (
            ClusterEventWithHint(node, self._after_node),
            ClusterEventWithHint(tolerations, _after_tolerations),
        )

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        taints = table.node_index(NODE_TAINTS[self._numeric])
        fits = taints.are_tolerated(cycle.pod.pod.spec.tolerations, rows)
        if fits.all():
            return None
        if self._unreadable is not None:
            self._unreadable.report(cycle.pod, table, rows[~fits])
        return RejectedRows(np.where(fits, -1, 0), (REASON,))

    def rejection_notes(self, pod: PodView, table: NodeTable, rows: NDArray[np.int64]) -> RejectionNotes:
        """Name the taints of each row that the pod does not tolerate."""
        tolerations = pod.pod.spec.tolerations
        taints = table.node_index(NODE_TAINTS[self._numeric])
        blocking = taints.sets.judge(tolerations).blocking
        sets, which = np.unique(taints.ids[rows], return_inverse=True)
        texts: dict[tuple[str, str, str], str] = {}

        def text(taint: Taint) -> str:
            key = (taint.key, taint.value, taint.effect)
            if key not in texts:
                is_unreadable = self._numeric and has_unreadable_value(taint, tolerations)
                texts[key] = _named(taint) + (UNREADABLE if is_unreadable else "")
            return texts[key]

        # Two taints of a node may differ in their effect alone.
        notes = [tuple(dict.fromkeys(map(text, blocking[each]))) for each in sets.tolist()]
        return RejectionNotes(which, notes)

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return REASON if self._blocks(pod, node.node) else SUCCESS

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        taints = table.node_index(NODE_TAINTS[self._numeric])
        return taints.unwelcome(cycle.pod.pod.spec.tolerations, rows)

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        return unwelcome(node.node.spec.taints, pod.pod.spec.tolerations, numeric=self._numeric)

    def normalize(self, cycle: CycleState, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return by_largest(scores, reverse=True)

    def _blocks(self, pod: PodView, node: Node) -> bool:
        found = blocking_taint(node.spec.taints, pod.pod.spec.tolerations, numeric=self._numeric)
        return found is not None

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        was_blocked = old is None or self._blocks(pod, old)
        return QueueingHint.QUEUE if was_blocked and not self._blocks(pod, new) else QueueingHint.SKIP


def _named(taint: Taint) -> str:
    return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"


def _after_tolerations(pod: PodView, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE
