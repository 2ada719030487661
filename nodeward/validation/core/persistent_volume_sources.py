"""The kinds of storage a persistent volume can be: the sources that differ from those in pods.

`SOURCES` lists all sources a volume can have, in the order Kubernetes looks at them: the struct's field, the name in
errors, the rule. `core/persistent_volume.py` walks it.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1 import storage as kinds
from nodeward.api.core_v1.references import SecretReference
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import (
    Fields,
    Rule,
    between,
    check_label,
    check_present,
    named,
    unless_empty,
)
from nodeward.validation.meta.paths import validate_no_backsteps
from nodeward.validation.pod import volume_network as shared


def _endpoints_namespace(namespace: str | None, path: FieldPath) -> list[FieldError]:
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [invalid(path, namespace, detail)]
    return check_label(namespace, path)


def _initiator(text: str | None, path: FieldPath) -> list[FieldError]:
    if text is None or shared.is_initiator(text):
        return []
    return [invalid(path, text, "must be valid format")]


def _local_path(text: str, path: FieldPath) -> list[FieldError]:
    return validate_no_backsteps(text, path) if text else [required(path)]


_SECRET: Final = Fields(SecretReference, name=check_present, namespace=check_present)
_NAMED_SECRET: Final = Fields(SecretReference, name=named(dns_subdomain), namespace=named(dns_label))
_TARGET: Final = Fields(
    kinds.ISCSIPersistentVolumeSource,
    target_portal=check_present,
    iqn=lambda text, path: _initiator(text, path) if text else [required(path)],
    lun=between(0, 255),
)


def _iscsi(source: kinds.ISCSIPersistentVolumeSource, path: FieldPath) -> list[FieldError]:
    errors = _TARGET(source, path)
    if source.secret_ref is None:
        if source.chap_auth_discovery or source.chap_auth_session:
            errors.append(required(path.child("secretRef")))
    elif not source.secret_ref.name:
        errors.append(required(path.child("secretRef", "name")))
    return errors + _initiator(source.initiator_name, path.child("initiatorname"))


def iscsi_length(
    source: kinds.ISCSIPersistentVolumeSource | None, volume: str, path: FieldPath
) -> list[FieldError]:
    if source is None or not shared.is_too_long_for_iscsi(volume, source):
        return []
    return [invalid(path.child("targetportal"), source.target_portal, shared.BAD_ISCSI_LENGTH)]


_glusterfs: Final = Fields(
    kinds.GlusterfsPersistentVolumeSource,
    endpoints=check_present,
    path=check_present,
    endpoints_namespace=_endpoints_namespace,
)
_cinder: Final = Fields(kinds.CinderPersistentVolumeSource, volume_id=check_present, secret_ref=_SECRET)
_azure_file: Final = Fields(
    kinds.AzureFilePersistentVolumeSource,
    secret_name=check_present,
    share_name=check_present,
    secret_namespace=lambda text, path: [required(path)] if text == "" else [],
)
_local: Final = Fields(kinds.LocalVolumeSource, path=_local_path)
_storageos: Final = Fields(
    kinds.StorageOSPersistentVolumeSource,
    volume_name=named(dns_label),
    volume_namespace=unless_empty(check_label),
    secret_ref=_SECRET,
)
_csi: Final = Fields(
    kinds.CSIPersistentVolumeSource,
    driver=shared.validate_csi_driver_name,
    volume_handle=check_present,
    controller_publish_secret_ref=_NAMED_SECRET,
    controller_expand_secret_ref=_NAMED_SECRET,
    node_publish_secret_ref=_NAMED_SECRET,
    node_expand_secret_ref=_NAMED_SECRET,
)

#: field of the spec, its name when two sources clash, its name in the source's own errors, the rule
SOURCES: Final[tuple[tuple[str, str, str, Rule], ...]] = (
    ("host_path", "hostPath", "hostPath", shared.host_path),
    ("gce_persistent_disk", "gcePersistentDisk", "persistentDisk", shared.gce_disk),
    ("aws_elastic_block_store", "awsElasticBlockStore", "awsElasticBlockStore", shared.aws_disk),
    ("glusterfs", "glusterfs", "glusterfs", _glusterfs),
    ("flocker", "flocker", "flocker", shared.flocker),
    ("nfs", "nfs", "nfs", shared.nfs),
    ("rbd", "rbd", "rbd", shared.rbd),
    ("quobyte", "quobyte", "quobyte", shared.quobyte),
    ("cephfs", "cephFS", "cephfs", shared.cephfs),
    ("iscsi", "iscsi", "iscsi", _iscsi),
    ("cinder", "cinder", "cinder", _cinder),
    ("fc", "fc", "fc", shared.fibre_channel),
    ("flex_volume", "flexVolume", "flexVolume", shared.flex),
    ("azure_file", "azureFile", "azureFile", _azure_file),
    ("vsphere_volume", "vsphereVolume", "vsphereVolume", shared.vsphere),
    ("photon_persistent_disk", "photonPersistentDisk", "photonPersistentDisk", shared.photon),
    ("portworx_volume", "portworxVolume", "portworxVolume", shared.portworx),
    ("azure_disk", "azureDisk", "azureDisk", shared.azure_disk),
    ("scale_io", "scaleIO", "scaleIO", shared.scale_io),
    ("local", "local", "local", _local),
    ("storageos", "storageos", "storageos", _storageos),
    ("csi", "csi", "csi", _csi),
)
