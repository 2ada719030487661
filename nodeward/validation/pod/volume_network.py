"""Volumes that come over a network or from a cloud: what each kind of source must say.

Most of these are kept for old objects; the rules are those the sources were made with.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CephFSVolumeSource,
    CinderVolumeSource,
    CSIVolumeSource,
    FCVolumeSource,
    FlexVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    GitRepoVolumeSource,
    GlusterfsVolumeSource,
    ISCSIVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    RBDVolumeSource,
    ScaleIOVolumeSource,
    StorageOSVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from nodeward.base.fielderror import FieldError, invalid, not_supported, required, too_long
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_subdomain, in_range, size
from nodeward.validation.checks import check_label, check_one_of, check_subdomain
from nodeward.validation.meta.paths import validate_descending

_IQN: Final = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$", re.ASCII)
_EUI: Final = re.compile(r"eui.[A-Za-z0-9]{16}")
_NAA: Final = re.compile(r"naa.[A-Za-z0-9]{32}")
_HOST_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_CSI_DRIVER_LIMIT: Final = 63


def _missing(path: FieldPath, /, **fields: object) -> list[FieldError]:
    """Required errors for the fields that are empty, in the order given."""
    return [required(path.child(name)) for name, value in fields.items() if not value]


def _partition(number: int, path: FieldPath) -> list[FieldError]:
    if 0 <= number <= 255:
        return []
    return [invalid(path.child("partition"), number, in_range(1, 255))]


def gce_disk(source: GCEPersistentDiskVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, pdName=source.pd_name) + _partition(source.partition, path)


def aws_disk(source: AWSElasticBlockStoreVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, volumeID=source.volume_id) + _partition(source.partition, path)


def git_repo(source: GitRepoVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, repository=source.repository)
    return errors + validate_descending(source.directory, path.child("directory"))


def nfs(source: NFSVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, server=source.server, path=source.path)
    if not source.path.startswith("/"):
        errors.append(invalid(path.child("path"), source.path, "must be an absolute path"))
    return errors


def _initiator(name: str, path: FieldPath) -> list[FieldError]:
    if not name.startswith(("iqn", "eui", "naa")):
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    if name.startswith("iqn"):
        is_valid = _IQN.search(name) is not None
    else:
        is_valid = (_EUI if name.startswith("eui") else _NAA).fullmatch(name) is not None
    return [] if is_valid else [invalid(path, name, "must be valid format")]


def iscsi(source: ISCSIVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, targetPortal=source.target_portal, iqn=source.iqn)
    if source.iqn:
        errors += _initiator(source.iqn, path.child("iqn"))
    if not 0 <= source.lun <= 255:
        errors.append(invalid(path.child("lun"), source.lun, in_range(0, 255)))
    if (source.chap_auth_discovery or source.chap_auth_session) and source.secret_ref is None:
        errors.append(required(path.child("secretRef")))
    if source.initiator_name is not None:
        errors += _initiator(source.initiator_name, path.child("initiatorname"))
    return errors


def glusterfs(source: GlusterfsVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, endpoints=source.endpoints, path=source.path)


def flocker(source: FlockerVolumeSource, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.dataset_name and not source.dataset_uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if source.dataset_name and source.dataset_uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", detail))
    if "/" in source.dataset_name:
        errors.append(invalid(path.child("datasetName"), source.dataset_name, "must not contain '/'"))
    return errors


def rbd(source: RBDVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, monitors=source.monitors, image=source.image)


def cinder(source: CinderVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, volumeID=source.volume_id)
    if source.secret_ref is not None:
        errors += _missing(path.child("secretRef"), name=source.secret_ref.name)
    return errors


def cephfs(source: CephFSVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, monitors=source.monitors)


def quobyte(source: QuobyteVolumeSource, path: FieldPath) -> list[FieldError]:
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
    return errors + _missing(path, volume=source.volume)


def fibre_channel(source: FCVolumeSource, path: FieldPath) -> list[FieldError]:
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


def flex(source: FlexVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, driver=source.driver)
    for key in source.options:
        domain = "." + key.split("/", 1)[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(path.child("options").key(key), key, detail))
    return errors


def azure_file(source: AzureFileVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, secretName=source.secret_name, shareName=source.share_name)


def azure_disk(source: AzureDiskVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, diskName=source.disk_name, diskURI=source.disk_uri)
    modes = ("None", "ReadOnly", "ReadWrite")
    errors += check_one_of(source.caching_mode, path.child("cachingMode"), modes)
    if source.kind is None:
        return errors
    kinds = ("Dedicated", "Managed", "Shared")
    errors += check_one_of(source.kind, path.child("kind"), kinds)
    if source.kind == "Managed":
        start, form = (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    else:
        start, form = (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    if not source.disk_uri.startswith(start):
        errors.append(not_supported(path.child("diskURI"), source.disk_uri, (form,)))
    return errors


def vsphere(source: VsphereVirtualDiskVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, volumePath=source.volume_path)


def photon(source: PhotonPersistentDiskVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, pdID=source.pd_id)


def portworx(source: PortworxVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, volumeID=source.volume_id)


def scale_io(source: ScaleIOVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, gateway=source.gateway, system=source.system, volumeName=source.volume_name)


def storageos(source: StorageOSVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, volumeName=source.volume_name)
    errors += check_label(source.volume_name or None, path.child("volumeName"))
    errors += check_label(source.volume_namespace or None, path.child("volumeNamespace"))
    if source.secret_ref is not None:
        errors += _missing(path.child("secretRef"), name=source.secret_ref.name)
    return errors


def validate_csi_driver_name(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, _CSI_DRIVER_LIMIT)] if size(name) > _CSI_DRIVER_LIMIT else []
    return errors + [invalid(path, name, fault) for fault in dns_subdomain(name.lower())]


def csi(source: CSIVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = validate_csi_driver_name(source.driver, path.child("driver"))
    if source.node_publish_secret_ref is not None:
        name = source.node_publish_secret_ref.name
        if not name:
            errors.append(required(path.child("nodePublishSecretRef", "name")))
        else:
            errors += check_subdomain(name, path.child("name"))
    return errors
