"""VolumeRestrictions: no two pods use a disk that takes one, or a claim that is for one pod only.

Disks of GCE, AWS, iSCSI and RBD that pods name themselves conflict on one node (read-only use aside, except on AWS);
a ReadWriteOncePod claim conflicts on all of them as long as another pod has it, which preemption can change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.core_v1.volume import Volume
from nodeward.scheduler.cache.claims_in_use import ClaimsInUse, named_claims
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
    PreFilterExtensions,
    RejectedRows,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from nodeward.scheduler.plugins.volumes.row_answers import judge_rows

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

DISK: Final = unschedulable("node(s) had no available disk")
IN_USE: Final = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod"
)


@dataclass(slots=True)
class _Exclusive:
    """The pod's claims for one pod only, and how often others have them."""

    claims: frozenset[str]
    users: int

    def copy(self) -> _Exclusive:
        return _Exclusive(self.claims, self.users)

    def count(self, pod: Pod) -> int:
        return sum(name in self.claims for name in named_claims(pod))


class VolumeRestrictions(PreFilterExtensions, ColumnFilterPlugin, StatefulPlugin, EnqueueExtensions):
    name: ClassVar[str] = "VolumeRestrictions"
    objects = (PersistentVolumeClaim,)
    pod_fields = ()  # stateful: asked for every pod it concerns
    concerns_pods_with: ClassVar[str] = "spec.volumes"

    def __init__(self, context: PluginContext) -> None:
        self._listers = context.listers
        self._in_use: tuple[NodeTable, ClaimsInUse] | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), _after_pod_is_gone),
            ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD)),
            ClusterEventWithHint(ClusterEvent(PersistentVolumeClaim, Action.ADD), _after_claim),
        )

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        return any(
            volume.persistent_volume_claim is not None or _is_disk(volume) for volume in pod.pod.spec.volumes
        )

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        if not pod.pod.spec.volumes:
            return SKIP
        exclusive: list[str] = []
        for name in named_claims(pod.pod):
            claim = self._listers.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return unresolvable(f'persistentvolumeclaim "{name}" not found')
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.append(name)
        users = sum(
            self._claims_in_use(table).users(pod.namespace, name) > 0 for name in dict.fromkeys(exclusive)
        )
        if not users and not any(_is_disk(volume) for volume in pod.pod.spec.volumes):
            return SKIP
        cycle.data[self.name] = _Exclusive(frozenset(exclusive), users)
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodView, added: PodView, node: Node) -> Status:
        return self._count(cycle, pod, added, 1)

    def remove_pod(self, cycle: CycleState, pod: PodView, removed: PodView, node: Node) -> Status:
        return self._count(cycle, pod, removed, -1)

    def _count(self, cycle: CycleState, pod: PodView, other: PodView, sign: int) -> Status:
        state: _Exclusive = cycle.data[self.name]
        # Unlike upstream a claim of the same name in another namespace is another claim.
        if other.namespace == pod.namespace:
            state.users += sign * state.count(other.pod)
        return SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        pod = cycle.pod
        return judge_rows(table, rows, lambda row, _: self._judge(cycle, pod, table.pods_on(row)))

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return self._judge(cycle, pod, node.pods)

    def _judge(self, cycle: CycleState, pod: PodView, others: Iterable[PodView]) -> Status:
        disks = [volume for volume in pod.pod.spec.volumes if _is_disk(volume)]
        if disks and any(_conflict(disks, other.pod) for other in others):
            return DISK
        state: _Exclusive | None = cycle.data.get(self.name)
        return IN_USE if state is not None and state.users > 0 else SUCCESS

    def _claims_in_use(self, table: NodeTable) -> ClaimsInUse:
        if self._in_use is None or self._in_use[0] is not table:
            self._in_use = table, ClaimsInUse(table)
        return self._in_use[1]


def _is_disk(volume: Volume) -> bool:
    kinds = volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd
    return any(kind is not None for kind in kinds)


def _conflict(disks: Sequence[Volume], other: Pod) -> bool:
    return any(_is_same_disk(disk, theirs) for disk in disks for theirs in other.spec.volumes)


def _is_same_disk(mine: Volume, theirs: Volume) -> bool:
    """Whether both are one disk that takes only one of them."""
    gce, other_gce = mine.gce_persistent_disk, theirs.gce_persistent_disk
    if gce is not None and other_gce is not None and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    aws, other_aws = mine.aws_elastic_block_store, theirs.aws_elastic_block_store
    if aws is not None and other_aws is not None and aws.volume_id == other_aws.volume_id:
        return True
    iscsi, other_iscsi = mine.iscsi, theirs.iscsi
    if iscsi is not None and other_iscsi is not None and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    rbd, other_rbd = mine.rbd, theirs.rbd
    if rbd is None or other_rbd is None:
        return False
    shares_monitor = any(each in other_rbd.monitors for each in rbd.monitors)
    is_same = shares_monitor and (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
    return is_same and not (rbd.read_only and other_rbd.read_only)


def _after_pod_is_gone(pod: PodView, old: Pod, new: Pod | None) -> QueueingHint:
    disks = [volume for volume in pod.pod.spec.volumes if _is_disk(volume)]
    if old.metadata.namespace != pod.namespace:
        # Unlike upstream: a disk is the same disk in every namespace.
        return QueueingHint.QUEUE if _conflict(disks, old) else QueueingHint.SKIP
    wanted = named_claims(pod.pod)
    shares = any(name in wanted for name in named_claims(old))
    return QueueingHint.QUEUE if shares or _conflict(disks, old) else QueueingHint.SKIP


def _after_claim(pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    is_mine = pod.namespace == new.metadata.namespace and new.metadata.name in named_claims(pod.pod)
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP
