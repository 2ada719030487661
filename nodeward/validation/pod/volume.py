"""The volumes of a pod: one source each, names that containers can mount by.

`validate_volumes` answers the faults and the volumes that had none, by name; mounts of the others are reported too,
as Kubernetes does.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from nodeward.api.core_v1.storage import EphemeralVolumeSource
from nodeward.api.core_v1.volume import ProjectedVolumeSource, Volume
from nodeward.api.core_v1.volume_sources import (
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    ImageVolumeSource,
    PersistentVolumeClaimVolumeSource,
)
from nodeward.api.meta import ObjectMeta
from nodeward.base.fielderror import FieldError, duplicate, forbidden, invalid, not_supported, quote, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import Rule, check_name
from nodeward.validation.pod import volume_files, volume_network
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.volume_claim import validate_claim_template

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")

#: (field of `Volume`, its name when there is one source too many, its name in errors inside, the rule), in the
#: order in which Kubernetes looks, after emptyDir. Odd names are upstream's. No rule: `_own` has it.
_SOURCES: Final[tuple[tuple[str, str, str, Rule | None], ...]] = (
    ("host_path", "hostPath", "hostPath", volume_network.host_path),
    ("git_repo", "gitRepo", "gitRepo", volume_network.git_repo),
    ("gce_persistent_disk", "gcePersistentDisk", "persistentDisk", volume_network.gce_disk),
    ("aws_elastic_block_store", "awsElasticBlockStore", "awsElasticBlockStore", volume_network.aws_disk),
    ("secret", "secret", "secret", volume_files.secret),
    ("nfs", "nfs", "nfs", volume_network.nfs),
    ("iscsi", "iscsi", "iscsi", volume_network.iscsi),
    ("glusterfs", "glusterfs", "glusterfs", volume_network.glusterfs),
    ("flocker", "flocker", "flocker", volume_network.flocker),
    ("persistent_volume_claim", "persistentVolumeClaim", "persistentVolumeClaim", None),
    ("rbd", "rbd", "rbd", volume_network.rbd),
    ("cinder", "cinder", "cinder", volume_network.cinder),
    ("cephfs", "cephFS", "cephfs", volume_network.cephfs),
    ("quobyte", "quobyte", "quobyte", volume_network.quobyte),
    ("downward_api", "downwarAPI", "downwardAPI", None),
    ("fc", "fc", "fc", volume_network.fibre_channel),
    ("flex_volume", "flexVolume", "flexVolume", volume_network.flex),
    ("config_map", "configMap", "configMap", volume_files.config_map),
    ("azure_file", "azureFile", "azureFile", volume_network.azure_file),
    ("vsphere_volume", "vsphereVolume", "vsphereVolume", volume_network.vsphere),
    ("photon_persistent_disk", "photonPersistentDisk", "photonPersistentDisk", volume_network.photon),
    ("portworx_volume", "portworxVolume", "portworxVolume", volume_network.portworx),
    ("azure_disk", "azureDisk", "azureDisk", volume_network.azure_disk),
    ("storageos", "storageos", "storageos", volume_network.storageos),
    ("projected", "projected", "projected", None),
    ("scale_io", "scaleIO", "scaleIO", volume_network.scale_io),
    ("csi", "csi", "csi", volume_network.csi),
    ("ephemeral", "ephemeral", "ephemeral", None),
    ("image", "image", "image", None),
)
#: All of them at once: every volume of every pod is asked.
_sources_of: Final = attrgetter(*(attribute for attribute, *_ in _SOURCES))
_MORE_THAN_ONE: Final = "may not specify more than 1 volume type"


def validate_volumes(
    volumes: list[Volume], meta: ObjectMeta | None, path: FieldPath, options: PodOptions
) -> tuple[dict[str, Volume], list[FieldError]]:
    errors: list[FieldError] = []
    good: dict[str, Volume] = {}
    pod_name = meta.name if meta is not None else ""
    created = {f"{pod_name}-{v.name}" for v in volumes if pod_name and v.ephemeral is not None}
    for i, volume in enumerate(volumes):
        at = path.index(i)
        faults = _source(volume, at, pod_name, options)
        if not volume.name or dns_label(volume.name):
            faults += check_name(volume.name, at.child("name"), dns_label)
        if volume.name in good:
            faults.append(duplicate(at.child("name"), volume.name))
        if faults:
            errors += faults
        else:
            good[volume.name] = volume
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(at.child("persistentVolumeClaim", "claimName"), claim.claim_name, detail))
    return good, errors


def _source(volume: Volume, path: FieldPath, pod_name: str, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    if volume.empty_dir is not None:
        count = 1
        errors += _empty_dir(volume.empty_dir, path.child("emptyDir"))
    for row, source in zip(_SOURCES, _sources_of(volume), strict=True):
        if source is None:
            continue
        attribute, name, inner, rule = row
        if count:
            errors.append(forbidden(path.child(name), _MORE_THAN_ONE))
        elif rule is not None:
            errors += rule(source, path.child(inner))
        else:
            errors += _own(source, volume.name, path, path.child(inner), pod_name, options)
        count += 1
        if attribute == "iscsi" and volume_network.is_too_long_for_iscsi(volume.name, source):
            errors.append(invalid(path.child("name"), volume.name, volume_network.BAD_ISCSI_LENGTH))
    if not count:
        errors.append(required(path, "must specify a volume type"))
    return errors


def _own(
    source: Any, name: str, volume: FieldPath, path: FieldPath, pod_name: str, options: PodOptions
) -> list[FieldError]:
    match source:
        case PersistentVolumeClaimVolumeSource():
            return [] if source.claim_name else [required(path.child("claimName"))]
        case DownwardAPIVolumeSource():
            return volume_files.downward_api(source, path, options.ctx)
        case ProjectedVolumeSource():
            return volume_files.projected(source, path, options)
        case EphemeralVolumeSource():
            return _ephemeral(source, name, volume, path, pod_name)
        case _:
            return _image(source, path, options)


def _empty_dir(source: EmptyDirVolumeSource, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if source.size_limit is not None and source.size_limit.nanos < 0:
        detail = "SizeLimit field must be a valid resource quantity"
        errors.append(forbidden(path.child("sizeLimit"), detail))
    if source.mode is not None and not 0 <= source.mode <= 0o1777:
        detail = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.append(invalid(path.child("mode"), source.mode, detail))
    return errors


def _ephemeral(
    source: EphemeralVolumeSource, name: str, volume: FieldPath, path: FieldPath, pod_name: str
) -> list[FieldError]:
    at = path.child("volumeClaimTemplate")
    if source.volume_claim_template is None:
        errors = [required(at)]
    else:
        errors = validate_claim_template(source.volume_claim_template, at)
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        errors += [
            invalid(volume.child("name"), name, f"PVC name {quote(claim)}: {fault}")
            for fault in dns_subdomain(claim)
        ]
    return errors


def _image(source: ImageVolumeSource, path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if not source.reference and not options.empty_image_volume():
        errors.append(required(path.child("reference")))
    return errors + validate_pull_policy(source.pull_policy, path.child("pullPolicy"))


def validate_pull_policy(policy: str, path: FieldPath) -> list[FieldError]:
    if not policy:
        return [required(path)]
    return [] if policy in PULL_POLICIES else [not_supported(path, policy, PULL_POLICIES)]
