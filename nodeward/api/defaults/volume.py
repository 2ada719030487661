"""Defaults of a pod's volumes: source, file modes, lifetimes of tokens.

Volumes are defaulted in place. The common sources come first and the rare ones are checked only when there is no common
one, as most pods have a volume or two and all of them pass here.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.volume import ProjectedVolumeSource, Volume
from nodeward.api.core_v1.volume_sources import (
    AzureDiskVolumeSource,
    DownwardAPIVolumeFile,
    EmptyDirVolumeSource,
)
from nodeward.api.defaults.image import pull_policy_for
from nodeward.api.defaults.rounding import round_up

_FILE_MODE: Final = 0o644
_HOUR: Final = 3600


def default_volumes(volumes: list[Volume]) -> None:
    for volume in volumes:
        _volume(volume)


def _volume(volume: Volume) -> None:
    if volume.empty_dir is not None or volume.persistent_volume_claim is not None:
        return
    if volume.projected is not None:
        _projected(volume.projected)
    elif volume.config_map is not None:
        if volume.config_map.default_mode is None:
            volume.config_map.default_mode = _FILE_MODE
    elif volume.secret is not None:
        if volume.secret.default_mode is None:
            volume.secret.default_mode = _FILE_MODE
    elif volume.downward_api is not None:
        if volume.downward_api.default_mode is None:
            volume.downward_api.default_mode = _FILE_MODE
        _files(volume.downward_api.items)
    elif volume.host_path is not None:
        if volume.host_path.type is None:
            volume.host_path.type = ""
    elif volume == Volume(name=volume.name):
        volume.empty_dir = EmptyDirVolumeSource()
    else:
        _rare(volume)


def _projected(source: ProjectedVolumeSource) -> None:
    if source.default_mode is None:
        source.default_mode = _FILE_MODE
    for part in source.sources:
        if part.downward_api is not None:
            _files(part.downward_api.items)
        token = part.service_account_token
        if token is not None and token.expiration_seconds is None:
            token.expiration_seconds = _HOUR


def _files(files: list[DownwardAPIVolumeFile]) -> None:
    for file in files:
        if file.field_ref is not None and not file.field_ref.api_version:
            file.field_ref.api_version = "v1"


def _rare(volume: Volume) -> None:
    if volume.iscsi is not None:
        volume.iscsi.iscsi_interface = volume.iscsi.iscsi_interface or "default"
    if volume.rbd is not None:
        volume.rbd.pool = volume.rbd.pool or "rbd"
        volume.rbd.user = volume.rbd.user or "admin"
        volume.rbd.keyring = volume.rbd.keyring or "/etc/ceph/keyring"
    if volume.azure_disk is not None:
        _azure_disk(volume.azure_disk)
    if volume.scale_io is not None:
        volume.scale_io.storage_mode = volume.scale_io.storage_mode or "ThinProvisioned"
        volume.scale_io.fs_type = volume.scale_io.fs_type or "xfs"
    if volume.image is not None and not volume.image.pull_policy:
        volume.image.pull_policy = pull_policy_for(volume.image.reference)
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        claim = volume.ephemeral.volume_claim_template.spec
        if claim.volume_mode is None:
            claim.volume_mode = "Filesystem"
        round_up(claim.resources.limits)
        round_up(claim.resources.requests)


def _azure_disk(disk: AzureDiskVolumeSource) -> None:
    if disk.caching_mode is None:
        disk.caching_mode = "ReadWrite"
    if disk.fs_type is None:
        disk.fs_type = "ext4"
    if disk.read_only is None:
        disk.read_only = False
    if disk.kind is None:
        disk.kind = "Shared"
