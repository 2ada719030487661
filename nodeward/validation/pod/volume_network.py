"""Volumes that come over a network or from a cloud: what each source must say, in pods and in persistent volumes.

Most of these are kept for old objects; the rules are those the sources were made with. A table or function per source;
`pod/volume.py` and `core/persistent_volume_sources.py` list them in the order in which Kubernetes looks.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1 import volume_sources as sources
from nodeward.api.core_v1.references import LocalObjectReference
from nodeward.api.core_v1.storage import ISCSIPersistentVolumeSource
from nodeward.base.fielderror import FieldError, invalid, not_supported, required, too_long
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, dns_subdomain, dns_subdomain_any_case, in_range, size
from nodeward.validation.checks import (
    Fields,
    between,
    both,
    check_label,
    check_name,
    check_one_of,
    check_present,
    check_size,
    check_subdomain,
    named,
    one_of,
    unless_empty,
)
from nodeward.validation.meta.paths import validate_descending, validate_no_backsteps

_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII).search,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}
_HOST_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_CSI_DRIVER_LIMIT: Final = 63
_ISCSI_LIMIT: Final = 64
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
BAD_ISCSI_LENGTH: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)


def _partition(number: int, path: FieldPath) -> list[FieldError]:
    return [] if 0 <= number <= 255 else [invalid(path, number, in_range(1, 255))]


def _absolute(text: str, path: FieldPath) -> list[FieldError]:
    return [] if text.startswith("/") else [invalid(path, text, "must be an absolute path")]


def _reserved(options: dict[str, str], path: FieldPath) -> list[FieldError]:
    domains = {key: f".{key.split('/', 1)[0].lower()}" for key in options}
    return [
        invalid(path.key(key), key, "kubernetes.io and k8s.io namespaces are reserved")
        for key, domain in domains.items()
        if domain.endswith((".kubernetes.io", ".k8s.io"))
    ]


def is_initiator(name: str) -> bool:
    """Is it the name of an iSCSI initiator or target?"""
    matches = _INITIATORS.get(name[:3])
    return matches is not None and matches(name) is not None


def is_too_long_for_iscsi(
    volume: str, source: sources.ISCSIVolumeSource | ISCSIPersistentVolumeSource
) -> bool:
    """An initiator name of its own makes a file name of the volume and the portal, which must fit."""
    return source.initiator_name is not None and len(f"{volume}:{source.target_portal}") > _ISCSI_LIMIT


def _initiator(name: str, path: FieldPath) -> list[FieldError]:
    if is_initiator(name):
        return []
    how = "" if name[:3] in _INITIATORS else " starting with iqn, eui, or naa"
    return [invalid(path, name, f"must be valid format{how}")]


def host_path(source: sources.HostPathVolumeSource, path: FieldPath) -> list[FieldError]:
    if not source.path:
        return [required(path.child("path"))]
    errors = validate_no_backsteps(source.path, path.child("path"))
    return errors + check_one_of(source.type, path.child("type"), _HOST_PATH_TYPES)


_NAMED: Final = Fields(LocalObjectReference, name=check_present)
gce_disk: Final = Fields(sources.GCEPersistentDiskVolumeSource, pd_name=check_present, partition=_partition)
aws_disk: Final = Fields(
    sources.AWSElasticBlockStoreVolumeSource, volume_id=check_present, partition=_partition
)
git_repo: Final = Fields(sources.GitRepoVolumeSource, repository=check_present, directory=validate_descending)
nfs: Final = Fields(sources.NFSVolumeSource, server=check_present, path=both(check_present, _absolute))
glusterfs: Final = Fields(sources.GlusterfsVolumeSource, endpoints=check_present, path=check_present)
rbd: Final = Fields(sources.RBDVolumeSource, monitors=check_present, image=check_present)
cephfs: Final = Fields(sources.CephFSVolumeSource, monitors=check_present)
cinder: Final = Fields(sources.CinderVolumeSource, volume_id=check_present, secret_ref=_NAMED)
flex: Final = Fields(sources.FlexVolumeSource, driver=check_present, options=_reserved)
azure_file: Final = Fields(sources.AzureFileVolumeSource, secret_name=check_present, share_name=check_present)
vsphere: Final = Fields(sources.VsphereVirtualDiskVolumeSource, volume_path=check_present)
photon: Final = Fields(sources.PhotonPersistentDiskVolumeSource, pd_id=check_present)
portworx: Final = Fields(sources.PortworxVolumeSource, volume_id=check_present)
scale_io: Final = Fields(
    sources.ScaleIOVolumeSource, gateway=check_present, system=check_present, volume_name=check_present
)
storageos: Final = Fields(
    sources.StorageOSVolumeSource,
    volume_name=named(dns_label),
    volume_namespace=unless_empty(check_label),
    secret_ref=_NAMED,
)
_TARGET: Final = Fields(
    sources.ISCSIVolumeSource,
    target_portal=check_present,
    iqn=lambda text, path: _initiator(text, path) if text else [required(path)],
    lun=between(0, 255),
)


def iscsi(source: sources.ISCSIVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _TARGET(source, path)
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(path.child("secretRef")))
    if source.initiator_name is not None:
        errors += _initiator(source.initiator_name, path.child("initiatorname"))
    return errors


def flocker(source: sources.FlockerVolumeSource, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.dataset_name and not source.dataset_uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.dataset_name and source.dataset_uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", detail))
    if "/" in source.dataset_name:
        errors.append(invalid(path.child("datasetName"), source.dataset_name, "must not contain '/'"))
    return errors


def quobyte(source: sources.QuobyteVolumeSource, path: FieldPath) -> list[FieldError]:
    detail = "must be a host:port pair or multiple pairs separated by commas"
    errors: list[FieldError] = []
    if not source.registry:
        errors.append(required(path.child("registry"), detail))
    elif size(source.tenant) >= 65:
        why = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(path.child("tenant"), why))
    else:
        errors += [
            invalid(path.child("registry"), source.registry, detail)
            for pair in source.registry.split(",")
            if not _HOST_PORT.fullmatch(pair)
        ]
    return errors + check_present(source.volume, path.child("volume"))


def fibre_channel(source: sources.FCVolumeSource, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.target_wwns and not source.wwids:
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(required(path.child("targetWWNs"), detail))
    if source.target_wwns and source.wwids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(path.child("targetWWNs"), source.target_wwns, detail))
    if source.target_wwns:
        if source.lun is None:
            errors.append(required(path.child("lun"), "lun is required if targetWWNs is specified"))
        elif not 0 <= source.lun <= 255:
            errors.append(invalid(path.child("lun"), source.lun, in_range(0, 255)))
    return errors


_AZURE_DISK: Final = Fields(
    sources.AzureDiskVolumeSource,
    disk_name=check_present,
    disk_uri=check_present,
    caching_mode=one_of("None", "ReadOnly", "ReadWrite"),
    kind=one_of("Dedicated", "Managed", "Shared"),
)
_MANAGED: Final = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_UNMANAGED: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def azure_disk(source: sources.AzureDiskVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _AZURE_DISK(source, path)
    uri = _MANAGED if source.kind == "Managed" else _UNMANAGED
    if source.kind is not None and not source.disk_uri.startswith(uri[: uri.index("{")]):
        errors.append(not_supported(path.child("diskURI"), source.disk_uri, (uri,)))
    return errors


def validate_csi_driver_name(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = check_size(name, path, _CSI_DRIVER_LIMIT)
    return errors + [invalid(path, name, fault) for fault in dns_subdomain(name.lower())]


def validate_declared_driver(name: str, path: FieldPath) -> list[FieldError]:
    """A driver's name in a field that Kubernetes checks by declaration, in other words than the rest."""
    errors = check_name(name, path, dns_subdomain_any_case)
    is_too_long = len(name) > _CSI_DRIVER_LIMIT
    return [*errors, too_long(path, _CSI_DRIVER_LIMIT, unit="character")] if is_too_long else errors


def csi(source: sources.CSIVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = validate_csi_driver_name(source.driver, path.child("driver"))
    if source.node_publish_secret_ref is not None:
        name = source.node_publish_secret_ref.name
        if not name:
            errors.append(required(path.child("nodePublishSecretRef", "name")))
        else:
            errors += check_subdomain(name, path.child("name"))
    return errors
