"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Taint
from nodeward.rules.taints import NO_SCHEDULE
from nodeward.rules.tolerations import first_tolerating
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

REASON: Final = unresolvable("node(s) were unschedulable")
#: What cordoning amounts to.
CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
CORDONED: Final = NodeColumn("cordoned", np.bool_, lambda node: node.spec.unschedulable)


class NodeUnschedulable(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeUnschedulable"
    pod_fields = ("spec.tolerations",)
    is_static: ClassVar[bool] = True

    def __init__(self, context: PluginContext) -> None:
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        tolerations = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
        return (
            ClusterEventWithHint(node, self._after_node),
            ClusterEventWithHint(tolerations, self._after_tolerations),
        )

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        return SKIP if self._tolerates(pod.pod) else SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        is_cordoned = table.column(CORDONED)[rows]
        return RejectedRows(np.where(is_cordoned, 0, -1), (REASON,)) if is_cordoned.any() else None

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return REASON if node.node.spec.unschedulable and not self._tolerates(pod.pod) else SUCCESS

    def _tolerates(self, pod: Pod) -> bool:
        return first_tolerating(pod.spec.tolerations, CORDON, numeric=self._numeric) is not None

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        was_closed = old is None or old.spec.unschedulable
        return QueueingHint.QUEUE if was_closed and not new.spec.unschedulable else QueueingHint.SKIP

    def _after_tolerations(self, pod: PodView, old: Pod | None, new: Pod) -> QueueingHint:
        return QueueingHint.QUEUE if self._tolerates(new) else QueueingHint.SKIP
