"""NodeReadinessGates: general pods wait until a node with gates is Ready and every gate holds (KEP-5233).

Pods of a DaemonSet are let through, since they are what makes a node ready. A gate that was given up after its time
no longer counts, with action Taint from the moment its taint is on the node. Nodes without gates are as they always
were. Pods that run are left alone, whatever happens.

A waiting pod is woken when a node begins to take it: its gates open and the pod tolerates its taints. Both belong
together, because the taint of a gate that was given up opens the node for some pods only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.rules.readiness import is_exempt, is_open, why_closed
from nodeward.rules.taints import blocking_taint
from nodeward.scheduler.cache.columns import NodeColumn
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
    CycleState,
    EnqueueExtensions,
    PreFilterPlugin,
    RejectedRows,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable


#: whether a node's gates let general pods in
OPEN: Final = NodeColumn("open", np.bool_, is_open)


def _is_exempt(pod: PodView) -> bool:
    return is_exempt(pod.pod.metadata)


class NodeReadinessGates(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeReadinessGates"
    gate: ClassVar[str] = "NodeReadinessGates"
    pod_fields = (_is_exempt,)
    is_static: ClassVar[bool] = True

    def __init__(self, context: PluginContext) -> None:
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changes = (
            Action.ADD
            | Action.UPDATE_NODE_CONDITION
            | Action.UPDATE_NODE_READINESS_GATE
            | Action.UPDATE_NODE_TAINT
        )
        tolerations = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
        return (
            ClusterEventWithHint(ClusterEvent(Resource.NODE, changes), self._after_node),
            ClusterEventWithHint(tolerations),
        )

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        return SKIP if is_exempt(pod.pod.metadata) else SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        is_closed = ~table.column(OPEN)[rows]
        if not is_closed.any():
            return None
        which = np.full(len(rows), -1, np.int64)
        reasons: dict[Status, int] = {}
        for index in np.flatnonzero(is_closed).tolist():
            node = table.node(int(rows[index]))
            if node is not None:
                which[index] = reasons.setdefault(_reason(node), len(reasons))
        return RejectedRows(which, tuple(reasons))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return SUCCESS if is_exempt(pod.pod.metadata) or is_open(node.node) else _reason(node.node)

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        took_it = old is not None and self._takes(pod, old)
        return QueueingHint.QUEUE if not took_it and self._takes(pod, new) else QueueingHint.SKIP

    def _takes(self, pod: PodView, node: Node) -> bool:
        tolerations = pod.pod.spec.tolerations
        return is_open(node) and blocking_taint(node.spec.taints, tolerations, numeric=self._numeric) is None


def _reason(node: Node) -> Status:
    return unresolvable(f"node(s) had unsatisfied readiness gates: {', '.join(why_closed(node))}")
