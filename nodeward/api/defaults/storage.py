"""Defaults of volumes, claims on them, and the classes and drivers behind them."""

from __future__ import annotations

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.defaults.rounding import round_up
from nodeward.api.storage_v1 import CSIDriver, StorageClass


def default_volume(volume: PersistentVolume) -> None:
    spec = volume.spec
    volume.status.phase = volume.status.phase or "Pending"
    spec.persistent_volume_reclaim_policy = spec.persistent_volume_reclaim_policy or "Retain"
    if spec.volume_mode is None:
        spec.volume_mode = "Filesystem"
    round_up(spec.capacity)
    if spec.host_path is not None and spec.host_path.type is None:
        spec.host_path.type = ""
    if spec.iscsi is not None:
        spec.iscsi.iscsi_interface = spec.iscsi.iscsi_interface or "default"
    if spec.rbd is not None:
        spec.rbd.pool = spec.rbd.pool or "rbd"
        spec.rbd.user = spec.rbd.user or "admin"
        spec.rbd.keyring = spec.rbd.keyring or "/etc/ceph/keyring"
    if spec.scale_io is not None:
        spec.scale_io.storage_mode = spec.scale_io.storage_mode or "ThinProvisioned"
        spec.scale_io.fs_type = spec.scale_io.fs_type or "xfs"
    _azure_disk(volume)


def _azure_disk(volume: PersistentVolume) -> None:
    disk = volume.spec.azure_disk
    if disk is None:
        return
    if disk.caching_mode is None:
        disk.caching_mode = "ReadWrite"
    if disk.kind is None:
        disk.kind = "Shared"
    if disk.fs_type is None:
        disk.fs_type = "ext4"
    if disk.read_only is None:
        disk.read_only = False


def default_claim(claim: PersistentVolumeClaim) -> None:
    claim.status.phase = claim.status.phase or "Pending"
    if claim.spec.volume_mode is None:
        claim.spec.volume_mode = "Filesystem"
    for amounts in (
        claim.spec.resources.limits,
        claim.spec.resources.requests,
        claim.status.capacity,
        claim.status.allocated_resources,
    ):
        round_up(amounts)


def default_storage_class(storage: StorageClass) -> None:
    if storage.reclaim_policy is None:
        storage.reclaim_policy = "Delete"
    if storage.volume_binding_mode is None:
        storage.volume_binding_mode = "Immediate"


def default_csi_driver(driver: CSIDriver) -> None:
    spec = driver.spec
    if spec.attach_required is None:
        spec.attach_required = True
    if spec.pod_info_on_mount is None:
        spec.pod_info_on_mount = False
    if spec.storage_capacity is None:
        spec.storage_capacity = False
    if spec.fs_group_policy is None:
        spec.fs_group_policy = "ReadWriteOnceWithFSType"
    spec.volume_lifecycle_modes = spec.volume_lifecycle_modes or ["Persistent"]
    if spec.requires_republish is None:
        spec.requires_republish = False
    if spec.se_linux_mount is None:
        spec.se_linux_mount = False
    if spec.prevent_pod_scheduling_if_missing is None:
        spec.prevent_pod_scheduling_if_missing = False
