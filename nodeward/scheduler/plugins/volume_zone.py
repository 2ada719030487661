"""VolumeZone: a pod goes to the zone and region its bound volumes are in, as the volumes' labels say.

A node without any such label takes every volume. Volumes that are yet to be bound are VolumeBinding's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import StorageClass
from nodeward.rules.volumes import WAIT_FOR_FIRST_CONSUMER, class_of_claim
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
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable
from nodeward.scheduler.plugins.volumes.row_answers import judge_rows

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unresolvable("node(s) had no available volume zone")

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
#: The labels that count, each with the name it has today.
_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
#: Between the zones of a volume that is in several.
_SEPARATOR: Final = "__"

#: A label, and the values a node may have there.
Places = tuple[tuple[str, frozenset[str]], ...]


class VolumeZone(PreFilterPlugin, ColumnFilterPlugin, StatefulPlugin, EnqueueExtensions):
    name: ClassVar[str] = "VolumeZone"
    objects = (PersistentVolume, PersistentVolumeClaim, StorageClass)
    pod_fields = ()  # stateful: asked for every pod it concerns
    concerns_pods_with: ClassVar[str] = "spec.volumes"

    def __init__(self, context: PluginContext) -> None:
        self._listers = context.listers

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        changed = Action.ADD | Action.UPDATE
        return (
            ClusterEventWithHint(ClusterEvent(StorageClass, Action.ADD), _after_class),
            ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(PersistentVolumeClaim, changed), _after_claim),
            ClusterEventWithHint(ClusterEvent(PersistentVolume, changed), _after_volume),
        )

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        return bool(pod.pod.spec.volumes) and bool(_claims(pod))

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        if not self.concerns(pod):
            return SKIP
        places: list[tuple[str, frozenset[str]]] = []
        for name in _claims(pod):
            found = self._places(name, pod.namespace)
            if isinstance(found, Status):
                return found
            places.extend(found)
        cycle.data[self.name] = tuple(places)
        return SUCCESS if places else SKIP

    def _places(self, name: str, namespace: str) -> Places | Status:
        """Where the claim's volume is."""
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = self._listers.get(PersistentVolumeClaim, name, namespace)
        if claim is None:
            return unresolvable(f'persistentvolumeclaim "{name}" not found')
        if not claim.spec.volume_name:
            return self._unbound(claim)
        volume = self._listers.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            return unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found')
        return _places_of(volume)

    def _unbound(self, claim: PersistentVolumeClaim) -> Places | Status:
        name = class_of_claim(claim)
        if not name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage = self._listers.get(StorageClass, name)
        if storage is None:
            return unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
        if storage.volume_binding_mode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        waits = storage.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        return () if waits else unresolvable("PersistentVolume had no name")

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        places: Places = cycle.data[self.name]
        return judge_rows(table, rows, lambda _, node: _judge(places, node))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return _judge(cycle.data.get(self.name, ()), node.node)


def _claims(pod: PodView) -> list[str]:
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def _places_of(volume: PersistentVolume) -> Places:
    found: list[tuple[str, frozenset[str]]] = []
    for label in _LABELS:
        text = volume.metadata.labels.get(label)
        values = text.split(_SEPARATOR) if text is not None else []
        # A label with a part that says nothing is ignored.
        if values and all(value.strip() for value in values):
            found.append((label, frozenset(value.strip() for value in values)))
    return tuple(found)


def _judge(places: Places, node: Node) -> Status:
    labels = node.metadata.labels
    if not any(label in labels for label in _LABELS):
        return SUCCESS
    for label, values in places:
        if labels.get(label, labels.get(_LABELS[label])) not in values:
            return REASON
    return SUCCESS


def _after_class(pod: PodView, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    return QueueingHint.QUEUE if new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else QueueingHint.SKIP


def _after_claim(pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    is_mine = pod.namespace == new.metadata.namespace and new.metadata.name in _claims(pod)
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def _after_volume(pod: PodView, old: PersistentVolume | None, new: PersistentVolume) -> QueueingHint:
    has_moved = old is None or _places_of(old) != _places_of(new)
    return QueueingHint.QUEUE if has_moved else QueueingHint.SKIP
