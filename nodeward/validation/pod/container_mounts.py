"""What a container sees of the pod's volumes: mounts (files) and devices (blocks)."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import VolumeDevice, VolumeMount
from nodeward.api.core_v1.volume import Volume
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
    not_found,
    not_supported,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import Distinct, check_each, check_one_of, check_present
from nodeward.validation.meta.paths import backstep_faults, validate_descending
from nodeward.validation.pod.options import AnyContainer

_PROPAGATION: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_BIND_OPTIONS: Final = ("nodev", "noexec", "nosuid")


def validate_mounts(container: AnyContainer, volumes: dict[str, Volume], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    devices = {device.name: device.device_path for device in container.volume_devices}
    device_paths = set(devices.values()) if devices else set()
    for i, mount in enumerate(container.volume_mounts):
        is_plain = (
            mount.name in volumes
            and mount.mount_path
            and mount.mount_path not in seen
            and not devices
            and not mount.sub_path
            and not mount.sub_path_expr
            and mount.mount_propagation is None
            and mount.recursive_read_only is None
            and not mount.bind_mount_options
        )
        if not is_plain:
            errors += _mount(mount, container, volumes, devices, device_paths, seen, path, path.index(i))
        seen.add(mount.mount_path)
    return errors


def _mount(
    mount: VolumeMount,
    container: AnyContainer,
    volumes: dict[str, Volume],
    devices: dict[str, str],
    device_paths: set[str],
    seen: set[str],
    path: FieldPath,
    at: FieldPath,
) -> list[FieldError]:
    errors = check_present(mount.name, at.child("name"))
    if mount.name not in volumes:
        errors.append(not_found(at.child("name"), mount.name))
    errors += check_present(mount.mount_path, at.child("mountPath"))
    if mount.mount_path in seen:
        errors.append(invalid(at.child("mountPath"), mount.mount_path, "must be unique"))
    if mount.name in devices:
        errors.append(invalid(at.child("name"), mount.name, "must not already exist in volumeDevices"))
    if mount.mount_path in device_paths:
        detail = "must not already exist as a path in volumeDevices"
        errors.append(invalid(at.child("mountPath"), mount.mount_path, detail))
    # Without the index of the mount, as upstream.
    if mount.sub_path:
        errors += validate_descending(mount.sub_path, path.child("subPath"))
    if mount.sub_path_expr:
        if mount.sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(at.child("subPathExpr"), mount.sub_path_expr, detail))
        errors += validate_descending(mount.sub_path_expr, path.child("subPathExpr"))
    if mount.mount_propagation is not None:
        errors += _propagation(mount.mount_propagation, container, path.child("mountPropagation"))
    if mount.recursive_read_only is not None:
        errors += _recursive(mount, mount.recursive_read_only, path.child("recursiveReadOnly"))
    if mount.bind_mount_options:
        errors += _bind_options(mount.bind_mount_options, at.child("bindMountOptions"))
        volume = volumes.get(mount.name)
        if volume is not None and volume.image is not None:
            detail = "bindMountOptions may not be used with image volumes"
            errors.append(invalid(at.child("bindMountOptions"), mount.bind_mount_options, detail))
    return errors


def _propagation(mode: str, container: AnyContainer, path: FieldPath) -> list[FieldError]:
    errors = check_one_of(mode, path, _PROPAGATION)
    context = container.security_context
    if mode == "Bidirectional" and not (context is not None and context.privileged):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, detail))
    return errors


def _recursive(mount: VolumeMount, mode: str, path: FieldPath) -> list[FieldError]:
    if mode == "Disabled":
        return []
    if mode not in _RECURSIVE:
        return [not_supported(path, mode, _RECURSIVE)]
    errors: list[FieldError] = []
    if not mount.read_only:
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.mount_propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        errors.append(forbidden(path, detail))
    return errors


def _bind_options(options: list[str], path: FieldPath) -> list[FieldError]:
    seen = Distinct()
    return check_each(
        options, path, lambda option, at: check_one_of(option, at, _BIND_OPTIONS) + seen.add(option, at)
    )


def validate_devices(
    devices: list[VolumeDevice], mounts: list[VolumeMount], volumes: dict[str, Volume], path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    paths: set[str] = set()
    mounted = {mount.name: mount.mount_path for mount in mounts}
    mounted_paths = set(mounted.values())
    for i, device in enumerate(devices):
        name, place = device.name, device.device_path
        at, place_at = path.index(i).child("name"), path.index(i).child("devicePath")
        volume = volumes.get(name)
        errors += check_present(name, at)
        if name in names:
            errors.append(invalid(at, name, "must be unique"))
        if volume is None:
            errors.append(not_found(at, name))
        elif volume.persistent_volume_claim is None and volume.ephemeral is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(at, name, detail))
        errors += check_present(place, place_at)
        if place in paths:
            errors.append(invalid(place_at, place, "must be unique"))
        if backstep_faults(place):
            errors.append(invalid(place_at, place, "can not contain backsteps ('..')"))
        else:
            paths.add(place)
        if name in mounted:
            errors.append(invalid(at, name, "must not already exist in volumeMounts"))
        if place in mounted_paths:
            errors.append(invalid(place_at, place, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)
    return errors
