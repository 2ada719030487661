"""TaintToleration: no pod on a node whose taints it does not tolerate, numbers included (KEP-5471).

Nodes that would rather not have the pod (PreferNoSchedule) score lower, by how many such taints they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.rules.taints import blocking_taint, unwelcome
from nodeward.scheduler.framework.events import Action, ClusterEvent, Hint, Registered, Resource
from nodeward.scheduler.framework.plugin import Cycle, Rejected
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, unresolvable
from nodeward.scheduler.plugins.normalizing import by_largest
from nodeward.scheduler.plugins.setting import Setting

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    name: ClassVar[str] = "TaintToleration"
    is_static: ClassVar[bool] = True

    def __init__(self, setting: Setting) -> None:
        self._numeric = setting.gates.enabled("TaintTolerationComparisonOperators")

    def events_to_register(self) -> Sequence[Registered]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        tolerations = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
        return (Registered(node, self._after_node), Registered(tolerations, _after_tolerations))

    def filter_rows(self, cycle: Cycle, table: NodeTable, rows: NDArray[np.int64]) -> Rejected | None:
        fits = table.taint_sets.are_tolerated(cycle.pod.pod.spec.tolerations, table.taint_set[rows])
        return None if fits.all() else Rejected(np.where(fits, -1, 0), (REASON,))

    def filter(self, cycle: Cycle, pod: PodView, node: NodeView) -> Status:
        return REASON if self._blocks(pod, node.node) else SUCCESS

    def score_rows(self, cycle: Cycle, table: NodeTable, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = table.taint_sets.unwelcome(cycle.pod.pod.spec.tolerations, table.taint_set[rows])
        return counts.astype(np.int64)

    def score(self, cycle: Cycle, pod: PodView, node: NodeView) -> int:
        return unwelcome(node.node.spec.taints, pod.pod.spec.tolerations, numeric=self._numeric)

    def normalize(self, cycle: Cycle, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return by_largest(scores, reverse=True)

    def _blocks(self, pod: PodView, node: Node) -> bool:
        found = blocking_taint(node.spec.taints, pod.pod.spec.tolerations, numeric=self._numeric)
        return found is not None

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> Hint:
        was_blocked = old is None or self._blocks(pod, old)
        return Hint.QUEUE if was_blocked and not self._blocks(pod, new) else Hint.SKIP


def _after_tolerations(pod: PodView, old: Any, new: Any) -> Hint:
    return Hint.QUEUE
