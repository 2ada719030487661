"""NodePorts: a host port is given to one pod per node, protocol and address."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.host_ports import Ports, add_ports, has_conflict
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
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unschedulable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unschedulable("node(s) didn't have free ports for the requested pod ports")


_host_ports = operator.attrgetter("host_ports")


class NodePorts(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodePorts"
    pod_fields = (_host_ports,)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        gone = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        return (
            ClusterEventWithHint(gone, _after_pod_is_gone),
            ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),
        )

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        return SUCCESS if pod.host_ports else SKIP

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        wanted = cycle.pod.host_ports
        taken = [has_conflict(table.ports_on(row), wanted) for row in rows.tolist()]
        return RejectedRows(np.where(taken, 0, -1), (REASON,)) if any(taken) else None

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return REASON if has_conflict(node.ports, pod.host_ports) else SUCCESS


def _after_pod_is_gone(pod: PodView, old: Pod, new: Pod | None) -> QueueingHint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return QueueingHint.SKIP
    freed: Ports = {}
    add_ports(freed, PodView(old).host_ports)
    return QueueingHint.QUEUE if has_conflict(freed, pod.host_ports) else QueueingHint.SKIP
