"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.events import Action, ClusterEvent, ClusterEventWithHint, Resource
from nodeward.scheduler.framework.plugin import (
    ColumnFilterPlugin,
    CycleState,
    EnqueueExtensions,
    PreFilterNodes,
    RejectedRows,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unresolvable("node(s) didn't match the requested node name")


class NodeName(PreFilterNodes, ColumnFilterPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeName"
    pod_fields = ("spec.node_name",)
    is_static: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),)

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        return SUCCESS if pod.pod.spec.node_name else SKIP

    def only_nodes(self, cycle: CycleState, pod: PodView) -> Sequence[str] | None:
        name = pod.pod.spec.node_name
        return (name,) if name else None

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        wanted = table.row_of(cycle.pod.pod.spec.node_name)
        is_other = rows != (-1 if wanted is None else wanted)
        return RejectedRows(np.where(is_other, 0, -1), (REASON,))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        wanted = pod.pod.spec.node_name
        return SUCCESS if not wanted or wanted == node.name else REASON
