"""VolumeBinding: a pod goes where its volumes can be used, and its claims are bound before it is.

Bound claims tie the pod to nodes that can reach their volumes. Claims that wait for a pod are matched with free
volumes, or left to be made for the chosen node; what was chosen is assumed at once, so that the next pod finds it
taken, and written to the API before the pod is bound. Pods without claims cost nothing. In-tree volumes are not
translated to CSI drivers, and nodes are not scored by storage capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import CSIDriver, CSIStorageCapacity, StorageClass
from nodeward.base.invariant import InvariantBroken
from nodeward.rules.volumes import claims_of
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
    PreBindPlugin,
    PreFilterPlugin,
    RejectedRows,
    ReservePlugin,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status
from nodeward.scheduler.plugins.volumes.assumed import AssumedVolumes
from nodeward.scheduler.plugins.volumes.binding import VolumeBinder, VolumeReservation, release, reserve
from nodeward.scheduler.plugins.volumes.claim_matching import PodClaims, VolumeFinder, volume_limit
from nodeward.scheduler.plugins.volumes.row_answers import judge_rows

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

BIND_TIMEOUT_SECONDS: Final = 600
_ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE
_RESERVATION: Final = "VolumeBinding/reservation"


class VolumeBinding(
    PreFilterPlugin, ColumnFilterPlugin, StatefulPlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions
):
    name: ClassVar[str] = "VolumeBinding"
    objects = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver, CSIStorageCapacity)
    pod_fields = ()  # stateful: asked for every pod it concerns
    concerns_pods_with: ClassVar[str] = "spec.volumes"

    def __init__(self, context: PluginContext) -> None:
        self._assumed = AssumedVolumes(context.listers)
        self._finder = VolumeFinder(
            context.listers,
            self._assumed,
            with_attributes_class=context.gates.enabled("VolumeAttributesClass"),
        )
        timeout = context.arguments.get("bindTimeoutSeconds")
        seconds = float(BIND_TIMEOUT_SECONDS if timeout is None else timeout)
        handle = context.handle
        self._binder = VolumeBinder(handle, context.listers, seconds) if handle is not None else None
        self._table: NodeTable | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(StorageClass, _ADD_OR_UPDATE), _after_class),
            ClusterEventWithHint(ClusterEvent(PersistentVolumeClaim, _ADD_OR_UPDATE), after_claim),
            ClusterEventWithHint(ClusterEvent(PersistentVolume, _ADD_OR_UPDATE)),
            ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(CSIDriver, Action.UPDATE), _after_driver),
            ClusterEventWithHint(ClusterEvent(CSIStorageCapacity, _ADD_OR_UPDATE), _after_capacity),
        )

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        # A volume that one pod takes is not there for the next, although they are alike.
        return bool(pod.pod.spec.volumes) and bool(claims_of(pod.pod))

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        self._table = table
        if not self.concerns(pod):
            return SKIP
        found = self._finder.claims(pod.pod)
        if isinstance(found, Status):
            return found
        cycle.data[self.name] = found
        return SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        return judge_rows(table, rows, lambda _, node: self._judge(cycle, node))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return self._judge(cycle, node.node)

    def _judge(self, cycle: CycleState, node: Node) -> Status:
        claims: PodClaims | None = cycle.data.get(self.name)
        if claims is None:
            return SUCCESS
        plan = self._finder.plan(claims, node)
        return plan if isinstance(plan, Status) else SUCCESS

    # -- once there is a node

    def reserve(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        claims: PodClaims | None = cycle.data.get(self.name)
        table = self._table
        if claims is None or table is None or not (claims.waiting or claims.selected):
            return SUCCESS
        row = table.row_of(node)
        found = table.node(row) if row is not None else None
        if found is None:
            raise InvariantBroken(f"pod {pod.key} was given to node {node}, which is not there")
        plan = self._finder.plan(claims, found)
        if isinstance(plan, Status):
            return plan
        cycle.data[_RESERVATION] = reserve(self._assumed, plan, node)
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodView, node: str) -> None:
        reservation: VolumeReservation | None = cycle.data.pop(_RESERVATION, None)
        if reservation is not None:
            release(self._assumed, reservation)

    async def pre_bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        reservation: VolumeReservation | None = cycle.data.get(_RESERVATION)
        if reservation is None or self._table is None:
            return SUCCESS
        if self._binder is None:
            raise InvariantBroken("volumes were to be bound where nothing can be written")
        return await self._binder.bind(pod, reservation, self._table)


# -- hints


def after_claim(pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    """A claim of the pod's own came or changed."""
    is_mine = pod.namespace == new.metadata.namespace and any(
        use.name == new.metadata.name for use in claims_of(pod.pod)
    )
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def _after_class(pod: PodView, old: StorageClass | None, new: StorageClass) -> QueueingHint:
    is_better = old is None or old.allowed_topologies != new.allowed_topologies
    return QueueingHint.QUEUE if is_better else QueueingHint.SKIP


def _after_driver(pod: PodView, old: CSIDriver, new: CSIDriver) -> QueueingHint:
    # Unlike upstream, which looks for inline CSI volumes here: capacity concerns claims whose volume is yet to be made.
    no_longer_counts = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return QueueingHint.QUEUE if no_longer_counts else QueueingHint.SKIP


def _after_capacity(pod: PodView, old: CSIStorageCapacity | None, new: Any) -> QueueingHint:
    limit = volume_limit(new)
    before = volume_limit(old) if old is not None else None
    has_grown = old is None or (limit is not None and (before is None or limit > before))
    return QueueingHint.QUEUE if has_grown else QueueingHint.SKIP
