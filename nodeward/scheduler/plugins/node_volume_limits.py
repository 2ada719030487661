"""NodeVolumeLimits: no more volumes of a CSI driver on a node than its CSINode allows.

Counted are the volumes of the pods there and those attached for whatever reason; a volume that several pods share
counts once. Volumes that are yet to be made count by the driver of their class. In-tree volumes do not count: they
are not translated to the CSI drivers that replaced them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import CSIDriver, CSINode, StorageClass, VolumeAttachment
from nodeward.rules.volumes import claims_of, class_of_claim, ownership_fault
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
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, failed, unresolvable, unschedulable
from nodeward.scheduler.plugins.volumes.row_answers import judge_rows

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

REASON: Final = unschedulable("node(s) exceed max volume count")

#: (driver, handle): one volume
Handles = Mapping[tuple[str, str], None]


class NodeVolumeLimits(PreFilterPlugin, ColumnFilterPlugin, StatefulPlugin, EnqueueExtensions):
    name: ClassVar[str] = "NodeVolumeLimits"
    objects = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, VolumeAttachment)
    pod_fields = ()  # stateful: asked for every pod it concerns
    concerns_pods_with: ClassVar[str] = "spec.volumes"

    def __init__(self, context: PluginContext) -> None:
        self._listers = context.listers
        self._checks_drivers = context.gates.enabled("VolumeLimitScaling")
        self._attached: dict[str, dict[tuple[str, str], None]] = {}
        self._attached_version: tuple[int, int] | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(ClusterEvent(CSINode, Action.ADD)),
            ClusterEventWithHint(ClusterEvent(CSINode, Action.UPDATE), _after_csi_node),
            ClusterEventWithHint(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), _after_pod_is_gone),
            ClusterEventWithHint(ClusterEvent(PersistentVolumeClaim, Action.ADD), _after_claim),
            ClusterEventWithHint(ClusterEvent(VolumeAttachment, Action.DELETE), _after_detaching),
        )

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        return bool(pod.pod.spec.volumes) and bool(claims_of(pod.pod))

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        if not self.concerns(pod):
            return SKIP
        # What is wrong with it is told of every node, as other plugins may know better why.
        cycle.data[self.name] = self._handles(pod.pod, is_new=True)
        return SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        return judge_rows(
            table, rows, lambda row, node: self._judge(cycle, node.metadata.name, table.pods_on(row))
        )

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return self._judge(cycle, node.name, node.pods)

    def _judge(self, cycle: CycleState, name: str, pods: Iterable[PodView]) -> Status:
        wanted: Handles | Status = cycle.data.get(self.name) or {}
        if isinstance(wanted, Status):
            return wanted
        if not wanted:
            return SUCCESS
        node = self._listers.get(CSINode, name)
        if self._checks_drivers:
            for driver in sorted({driver for driver, _ in wanted}):
                if self._is_missing(driver, node):
                    return unschedulable(f"{driver} CSI driver is not installed on the node")
        limits = _limits(node)
        if not limits:
            return SUCCESS
        there: dict[tuple[str, str], None] = {}
        for each in pods:
            if not each.pod.spec.volumes:
                continue
            found = self._handles(each.pod, is_new=False)
            if isinstance(found, Status):
                return found
            there.update(found)
        more = Counter(driver for driver, handle in wanted if (driver, handle) not in there)
        there.update(self._attached_to(name))
        used = Counter(driver for driver, _ in there)
        is_full = any(
            driver in limits and used[driver] + count > limits[driver] for driver, count in more.items()
        )
        return REASON if is_full else SUCCESS

    def _is_missing(self, name: str, node: CSINode | None) -> bool:
        """Whether the driver wants no pods where it is not, and is not there."""
        driver = self._listers.get(CSIDriver, name)
        if driver is None or not driver.spec.prevent_pod_scheduling_if_missing:
            return False
        return node is None or all(each.name != name for each in node.spec.drivers)

    def _handles(self, pod: Pod, *, is_new: bool) -> Handles | Status:
        """The CSI volumes of a pod. A pod that runs may have lost its claims; a new one needs them."""
        found: dict[tuple[str, str], None] = {}
        namespace = pod.metadata.namespace
        for use in claims_of(pod):
            claim = self._listers.get(PersistentVolumeClaim, use.name, namespace)
            if claim is None:
                if is_new:
                    text = f'persistentvolumeclaim "{use.name}" not found'
                    return unresolvable(f"looking up PVC {namespace}/{use.name}: {text}")
                continue
            fault = ownership_fault(pod, claim) if use.is_ephemeral else ""
            if fault:
                return failed(fault)
            handle = self._handle(claim)
            if handle is not None:
                found[handle] = None
        return found

    def _handle(self, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
        """The driver and its name of the volume; for one that is yet to be made, a name nothing else has."""
        bound = claim.spec.volume_name
        volume = self._listers.get(PersistentVolume, bound) if bound else None
        if volume is not None:
            source = volume.spec.csi
            return (source.driver, source.volume_handle) if source is not None else None
        name = class_of_claim(claim)
        storage = self._listers.get(StorageClass, name) if name else None
        if storage is None or not storage.provisioner:
            return None
        return storage.provisioner, f"\0{claim.metadata.namespace}/{claim.metadata.name}"

    def _attached_to(self, node: str) -> Handles:
        """The CSI volumes that are attached to the node."""
        version = self._listers.version(VolumeAttachment), self._listers.version(PersistentVolume)
        if version != self._attached_version:
            self._attached_version = version
            self._attached = {}
            for each in self._listers.list(VolumeAttachment):
                spec = each.spec
                name = spec.source.persistent_volume_name
                volume = self._listers.get(PersistentVolume, name) if name else None
                if spec.attacher and volume is not None and volume.spec.csi is not None:
                    handle = spec.attacher, volume.spec.csi.volume_handle
                    self._attached.setdefault(spec.node_name, {})[handle] = None
        return self._attached.get(node, {})


def _limits(node: CSINode | None) -> dict[str, int]:
    """How many volumes of each driver the node takes; drivers without a limit are left out."""
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _after_csi_node(pod: PodView, old: CSINode, new: CSINode) -> QueueingHint:
    before = _limits(old)
    has_grown = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
    return QueueingHint.QUEUE if has_grown else QueueingHint.SKIP


def _after_pod_is_gone(pod: PodView, old: Pod, new: Pod | None) -> QueueingHint:
    was_somewhere = old.spec.node_name or old.status.nominated_node_name
    return QueueingHint.QUEUE if was_somewhere and claims_of(old) else QueueingHint.SKIP


def _after_claim(pod: PodView, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> QueueingHint:
    is_mine = pod.namespace == new.metadata.namespace and any(
        use.name == new.metadata.name for use in claims_of(pod.pod)
    )
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def _after_detaching(pod: PodView, old: VolumeAttachment, new: VolumeAttachment | None) -> QueueingHint:
    return QueueingHint.QUEUE if claims_of(pod.pod) else QueueingHint.SKIP
