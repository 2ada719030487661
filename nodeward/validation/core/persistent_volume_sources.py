"""The kinds of storage a persistent volume can be: the sources that differ from those in pods.

Every function takes a source with its path and returns field errors. `SOURCES` lists all sources a volume can have, in
the order Kubernetes looks at them: the struct's field, the name in errors, the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from nodeward.api.core_v1 import storage as kinds
from nodeward.api.core_v1.references import ObjectReference, SecretReference
from nodeward.api.core_v1.volume_sources import HostPathVolumeSource
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, in_range
from nodeward.validation.checks import check_label, check_one_of, check_subdomain
from nodeward.validation.meta.paths import validate_no_backsteps
from nodeward.validation.pod import volume_network as shared

_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_INITIATORS: Final = (
    ("iqn", re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$").search),
    ("eui", re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch),
    ("naa", re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch),
)
_ISCSI_LIMIT: Final = 64


def _missing(path: FieldPath, /, **fields: object) -> list[FieldError]:
    return [required(path.child(name)) for name, value in fields.items() if not value]


def _secret(ref: SecretReference | ObjectReference | None, path: FieldPath) -> list[FieldError]:
    if ref is None:
        return []
    return _missing(path.child("secretRef"), name=ref.name, namespace=ref.namespace)


def host_path(source: HostPathVolumeSource, path: FieldPath) -> list[FieldError]:
    if not source.path:
        return [required(path.child("path"))]
    errors = validate_no_backsteps(source.path, path.child("path"))
    return errors + check_one_of(source.type, path.child("type"), _HOST_PATHS)


def glusterfs(source: kinds.GlusterfsPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, endpoints=source.endpoints, path=source.path)
    namespace, at = source.endpoints_namespace, path.child("endpointsNamespace")
    if namespace is None:
        return errors
    if not namespace:
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [*errors, invalid(at, namespace, detail)]
    return errors + [invalid(at, namespace, fault) for fault in dns_label(namespace)]


def rbd(source: kinds.RBDPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, monitors=source.monitors, image=source.image)


def cephfs(source: kinds.CephFSPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, monitors=source.monitors)


def cinder(source: kinds.CinderPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, volumeID=source.volume_id) + _secret(source.secret_ref, path)


def _is_initiator(name: str) -> bool:
    return any(name.startswith(prefix) and matches(name) for prefix, matches in _INITIATORS)


def iscsi(source: kinds.ISCSIPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, targetPortal=source.target_portal, iqn=source.iqn)
    if source.iqn and not _is_initiator(source.iqn):
        errors.append(invalid(path.child("iqn"), source.iqn, "must be valid format"))
    if not 0 <= source.lun <= 255:
        errors.append(invalid(path.child("lun"), source.lun, in_range(0, 255)))
    if source.secret_ref is None:
        if source.chap_auth_discovery or source.chap_auth_session:
            errors.append(required(path.child("secretRef")))
    elif not source.secret_ref.name:
        errors.append(required(path.child("secretRef", "name")))
    if source.initiator_name is not None and not _is_initiator(source.initiator_name):
        errors.append(invalid(path.child("initiatorname"), source.initiator_name, "must be valid format"))
    return errors


def iscsi_length(
    source: kinds.ISCSIPersistentVolumeSource | None, volume: str, path: FieldPath
) -> list[FieldError]:
    """An initiator name of its own makes a file name of the volume and the portal, which must fit."""
    if source is None or source.initiator_name is None:
        return []
    if len(f"{volume}:{source.target_portal}") <= _ISCSI_LIMIT:
        return []
    detail = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
        "if iscsi.initiatorName is specified."
    )
    return [invalid(path.child("targetportal"), source.target_portal, detail)]


def flex(source: kinds.FlexPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, driver=source.driver)
    for key in source.options:
        domain = f".{key.split('/', 1)[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(path.child("options").key(key), key, detail))
    return errors


def azure_file(source: kinds.AzureFilePersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, secretName=source.secret_name, shareName=source.share_name)
    return [*errors, required(path.child("secretNamespace"))] if source.secret_namespace == "" else errors


def scale_io(source: kinds.ScaleIOPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    return _missing(path, gateway=source.gateway, system=source.system, volumeName=source.volume_name)


def local(source: kinds.LocalVolumeSource, path: FieldPath) -> list[FieldError]:
    if not source.path:
        return [required(path.child("path"))]
    return validate_no_backsteps(source.path, path.child("path"))


def storageos(source: kinds.StorageOSPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, volumeName=source.volume_name)
    for field, value in (("volumeName", source.volume_name), ("volumeNamespace", source.volume_namespace)):
        errors += check_label(value or None, path.child(field))
    return errors + _secret(source.secret_ref, path)


def csi(source: kinds.CSIPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = shared.validate_csi_driver_name(source.driver, path.child("driver"))
    errors += _missing(path, volumeHandle=source.volume_handle)
    for field, ref in (
        ("controllerPublishSecretRef", source.controller_publish_secret_ref),
        ("controllerExpandSecretRef", source.controller_expand_secret_ref),
        ("nodePublishSecretRef", source.node_publish_secret_ref),
        ("nodeExpandSecretRef", source.node_expand_secret_ref),
    ):
        if ref is not None:
            errors += _named_secret(ref, path.child(field))
    return errors


def _named_secret(ref: SecretReference, path: FieldPath) -> list[FieldError]:
    errors = _missing(path, name=ref.name)
    errors += check_subdomain(ref.name or None, path.child("name"))
    errors += _missing(path, namespace=ref.namespace)
    return errors + check_label(ref.namespace or None, path.child("namespace"))


Rule = Callable[[Any, FieldPath], list[FieldError]]
#: field of the spec, its name when two sources clash, its name in the source's own errors, the rule
SOURCES: Final[tuple[tuple[str, str, str, Rule], ...]] = (
    ("host_path", "hostPath", "hostPath", host_path),
    ("gce_persistent_disk", "gcePersistentDisk", "persistentDisk", shared.gce_disk),
    ("aws_elastic_block_store", "awsElasticBlockStore", "awsElasticBlockStore", shared.aws_disk),
    ("glusterfs", "glusterfs", "glusterfs", glusterfs),
    ("flocker", "flocker", "flocker", shared.flocker),
    ("nfs", "nfs", "nfs", shared.nfs),
    ("rbd", "rbd", "rbd", rbd),
    ("quobyte", "quobyte", "quobyte", shared.quobyte),
    ("cephfs", "cephFS", "cephfs", cephfs),
    ("iscsi", "iscsi", "iscsi", iscsi),
    ("cinder", "cinder", "cinder", cinder),
    ("fc", "fc", "fc", shared.fibre_channel),
    ("flex_volume", "flexVolume", "flexVolume", flex),
    ("azure_file", "azureFile", "azureFile", azure_file),
    ("vsphere_volume", "vsphereVolume", "vsphereVolume", shared.vsphere),
    ("photon_persistent_disk", "photonPersistentDisk", "photonPersistentDisk", shared.photon),
    ("portworx_volume", "portworxVolume", "portworxVolume", shared.portworx),
    ("azure_disk", "azureDisk", "azureDisk", shared.azure_disk),
    ("scale_io", "scaleIO", "scaleIO", scale_io),
    ("local", "local", "local", local),
    ("storageos", "storageos", "storageos", storageos),
    ("csi", "csi", "csi", csi),
)
