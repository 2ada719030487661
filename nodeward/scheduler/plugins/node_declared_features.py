"""NodeDeclaredFeatures: a pod goes only to nodes that declare the features it needs (KEP-5328).

What a pod needs is inferred once, before filtering; the filter compares bitmaps. No feature is known here by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.features.declared import Feature, FeatureSet, FeatureTable, PodInfo
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
from nodeward.scheduler.framework.signature import PodField
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

_WORD_BITS = 64


def declared_column(features: FeatureTable) -> NodeColumn[np.uint64]:
    """What nodes declare, as words of bits."""
    return NodeColumn(
        "declared features",
        np.uint64,
        lambda node: features.set_of(node.status.declared_features).as_words(),
        width=features.words,
    )


class NodeDeclaredFeatures(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeDeclaredFeatures"
    gate: ClassVar[str] = "NodeDeclaredFeatures"
    pod_fields: Sequence[PodField] = ()  # those of the declared features
    is_static: ClassVar[bool] = True

    def __init__(self, context: PluginContext) -> None:
        self._features = context.features
        self._version = context.version
        self._declared = declared_column(self._features.table)
        self.pod_fields = [
            field for each in self._features.scheduling_features(self._version) for field in _fields(each)
        ]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        changed = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
        return (ClusterEventWithHint(node, self._after_node), ClusterEventWithHint(changed, self._after_pod))

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        needed = self._needs(pod.pod)
        cycle.data[self.name] = needed
        return SUCCESS if needed else SKIP

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        needed: FeatureSet = cycle.data[self.name]
        missing = np.array(needed.as_words(), np.uint64) & ~table.column(self._declared)[rows]
        is_out = missing.any(axis=1)
        if not is_out.any():
            return None
        kinds, kind_of = np.unique(missing[is_out], axis=0, return_inverse=True)
        which = np.full(len(rows), -1, np.int64)
        which[is_out] = kind_of.reshape(-1)
        reasons = [_reason(FeatureSet(needed.table, _bits(words))) for words in kinds.tolist()]
        return RejectedRows(which, reasons)

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        needed: FeatureSet = cycle.data[self.name]
        missing = needed - self._features.feature_set(node.node.status.declared_features)
        return _reason(missing) if missing else SUCCESS

    def _needs(self, pod: Pod) -> FeatureSet:
        return self._features.infer_for_pod_scheduling(PodInfo(pod.spec), self._version)

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        needed = self._needs(pod.pod)
        had = old is not None and self._features.match_node(needed, old).is_match
        has = self._features.match_node(needed, new).is_match
        return QueueingHint.QUEUE if has and not had else QueueingHint.SKIP

    def _after_pod(self, pod: PodView, old: Pod, new: Pod) -> QueueingHint:
        return QueueingHint.SKIP if self._needs(old) == self._needs(new) else QueueingHint.QUEUE


def _fields(feature: Feature) -> Sequence[PodField]:
    """What of a pod decides whether it needs the feature."""
    if feature.scheduling_fields is not None:
        return [f"spec.{field}" for field in feature.scheduling_fields]
    return (lambda pod: feature.infer_for_scheduling(PodInfo(pod.pod.spec)),)


def _reason(missing: FeatureSet) -> Status:
    return unresolvable(f"node(s) did not match node declared features: {', '.join(missing.names())}")


def _bits(words: Sequence[int]) -> int:
    return sum(word << (number * _WORD_BITS) for number, word in enumerate(words))
