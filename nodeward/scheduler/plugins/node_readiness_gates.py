"""NodeReadinessGates: general pods wait until a node with gates is Ready and every gate holds (KEP-5233).

Pods of a DaemonSet are let through, since they are what makes a node ready. A gate that was given up after its time
no longer counts, and nodes without gates are as they always were. Pods that run are left alone, whatever happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.rules.readiness import is_exempt, is_open, waiting_for
from nodeward.scheduler.framework.events import Action, ClusterEvent, Hint, Registered, Resource
from nodeward.scheduler.framework.plugin import Cycle, Rejected
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable


class NodeReadinessGates:
    name: ClassVar[str] = "NodeReadinessGates"
    is_static: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[Registered]:
        changes = Action.ADD | Action.UPDATE_NODE_CONDITION | Action.UPDATE_NODE_READINESS_GATE
        return (Registered(ClusterEvent(Resource.NODE, changes), _after_node),)

    def pre_filter(self, cycle: Cycle, pod: PodView, table: NodeTable) -> Status:
        return SKIP if is_exempt(pod.pod.metadata) else SUCCESS

    def filter_rows(self, cycle: Cycle, table: NodeTable, rows: NDArray[np.int64]) -> Rejected | None:
        is_closed = ~table.is_open[rows]
        if not is_closed.any():
            return None
        which = np.full(len(rows), -1, np.int64)
        reasons: dict[Status, int] = {}
        for index in np.flatnonzero(is_closed).tolist():
            node = table.node(int(rows[index]))
            if node is not None:
                which[index] = reasons.setdefault(_reason(node), len(reasons))
        return Rejected(which, tuple(reasons))

    def filter(self, cycle: Cycle, pod: PodView, node: NodeView) -> Status:
        return SUCCESS if is_exempt(pod.pod.metadata) or is_open(node.node) else _reason(node.node)


def _reason(node: Node) -> Status:
    return unresolvable(f"node(s) had unsatisfied readiness gates: {', '.join(waiting_for(node))}")


def _after_node(pod: PodView, old: Node | None, new: Node) -> Hint:
    was_closed = old is None or not is_open(old)
    return Hint.QUEUE if was_closed and is_open(new) else Hint.SKIP
