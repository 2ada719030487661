"""Persistent volumes: one source each, a size, and where they can be reached from.

The spec of a volume also stands inside a volume attachment; there it names a CSI driver and nothing else.
"""

from __future__ import annotations

import posixpath
from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.references import NodeSelector
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from nodeward.api.go_form import go_name
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, label_value_faults
from nodeward.validation.checks import (
    IMMUTABLE,
    check_immutable,
    check_one_of,
    check_present,
    check_subdomain,
    check_unset,
)
from nodeward.validation.core.persistent_volume_sources import SOURCES, iscsi_length
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.pod.volume_claim import VOLUME_MODES, validate_access_modes
from nodeward.validation.spec_diff import spec_diff

_SPEC: Final = ROOT.child("spec")
_INLINE: Final = "may not be specified in the context of inline volumes"
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_BETA_LABELS: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


def validate_volume_spec(
    spec: PersistentVolumeSpec,
    path: FieldPath,
    *,
    name: str = "",
    is_inline: bool = False,
    allow_invalid_labels: bool = False,
) -> list[FieldError]:
    errors = _inline_only(spec, path) if is_inline else []
    errors += check_present(spec.access_modes, path.child("accessModes"))
    errors += validate_access_modes(spec.access_modes, path.child("accessModes"))
    if not is_inline:
        errors += _capacity(spec, path.child("capacity"))
    errors += _reclaim(spec, path.child("persistentVolumeReclaimPolicy"), is_inline=is_inline)
    if spec.node_affinity is not None:
        at = path.child("nodeAffinity")
        if is_inline:
            errors.append(forbidden(at, _INLINE))
        else:
            errors += _node_affinity(spec.node_affinity, at, allow_invalid_labels=allow_invalid_labels)
    errors += _source(spec, name, path, needs_affinity=is_inline or spec.node_affinity is None)
    errors += _root(spec, path.child("persistentVolumeReclaimPolicy"))
    return errors + _class(spec, path, is_inline=is_inline)


def _inline_only(spec: PersistentVolumeSpec, path: FieldPath) -> list[FieldError]:
    errors = check_unset(path, _INLINE, claimRef=spec.claim_ref is not None, capacity=spec.capacity)
    if spec.csi is None:
        errors.append(required(path.child("csi"), "has to be specified in the context of inline volumes"))
    return errors


def _capacity(spec: PersistentVolumeSpec, path: FieldPath) -> list[FieldError]:
    errors = [] if spec.capacity else [required(path)]
    if list(spec.capacity) != ["storage"]:
        errors.append(not_supported(path, spec.capacity or None, ("storage",)))
    for resource, amount in spec.capacity.items():
        at = path.key(resource)
        if amount.sign < 0:
            errors.append(invalid(at, amount.value, "must be a valid resource quantity"))
        if amount.sign <= 0:
            errors.append(invalid(at, str(amount), "must be greater than zero"))
    return errors


def _reclaim(spec: PersistentVolumeSpec, path: FieldPath, *, is_inline: bool) -> list[FieldError]:
    policy = spec.persistent_volume_reclaim_policy
    if not policy:
        return []
    if is_inline:
        detail = "may only be Retain in the context of inline volumes"
        return [] if policy == "Retain" else [forbidden(path, detail)]
    return [] if policy in _RECLAIM else [not_supported(path, policy, _RECLAIM)]


def _node_affinity(
    affinity: VolumeNodeAffinity, path: FieldPath, *, allow_invalid_labels: bool
) -> list[FieldError]:
    at = path.child("required")
    if affinity.required is None:
        return [required(at, "must specify required node constraints")]
    return validate_node_selector(affinity.required, at, allow_invalid_values=allow_invalid_labels)


def _source(
    spec: PersistentVolumeSpec, name: str, path: FieldPath, *, needs_affinity: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    is_found = False
    for attribute, clash_name, json_name, rule in SOURCES:
        source = getattr(spec, attribute)
        if source is None:
            continue
        # A flex volume beside another source is overlooked by Kubernetes, and so it is here.
        if is_found and attribute != "flex_volume":
            errors.append(forbidden(path.child(clash_name), "may not specify more than 1 volume type"))
            continue
        is_found = True
        errors += rule(source, path.child(json_name))
        if attribute == "iscsi":
            errors += iscsi_length(spec.iscsi, name, path.child(json_name))
        if attribute == "local" and needs_affinity:
            errors.append(required(path.child("nodeAffinity"), "Local volume requires node affinity"))
    return errors if is_found else [*errors, required(path, "must specify a volume type")]


def _root(spec: PersistentVolumeSpec, path: FieldPath) -> list[FieldError]:
    if spec.host_path is None or spec.persistent_volume_reclaim_policy != "Recycle":
        return []
    if posixpath.normpath(spec.host_path.path) not in ("/", "//"):
        return []
    return [forbidden(path, "may not be 'recycle' for a hostPath mount of '/'")]


def _class(spec: PersistentVolumeSpec, path: FieldPath, *, is_inline: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    at = path.child("storageClassName")
    if is_inline and spec.storage_class_name:
        errors.append(forbidden(at, _INLINE))
    elif spec.storage_class_name:
        errors += check_subdomain(spec.storage_class_name, at)
    at, mode = path.child("volumeMode"), spec.volume_mode
    if not is_inline:
        errors += check_one_of(mode, at, VOLUME_MODES)
    elif mode not in (None, "Filesystem"):
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        errors.append(forbidden(at, detail))
    at, attributes = path.child("volumeAttributesClassName"), spec.volume_attributes_class_name
    if attributes is None or is_inline:
        return errors
    errors += check_subdomain(attributes or None, at)
    errors += check_present(attributes, at, "an empty string is disallowed")
    if spec.csi is None:
        detail = "has to be specified when using volumeAttributesClassName"
        errors.append(required(path.child("csi"), detail))
    return errors


def _has_invalid_labels(selector: NodeSelector | None) -> bool:
    terms = selector.node_selector_terms if selector else []
    values = (v for term in terms for e in term.match_expressions for v in e.values)
    return any(label_value_faults(value) for value in values)


def _volume(new: PersistentVolume, old: PersistentVolume | None, ctx: Context) -> list[FieldError]:
    was = old.spec.node_affinity if old else None
    is_lenient = was is not None and _has_invalid_labels(was.required)
    return validate_volume_spec(new.spec, _SPEC, name=new.metadata.name, allow_invalid_labels=is_lenient)


def _change(new: PersistentVolume, old: PersistentVolume, ctx: Context) -> list[FieldError]:
    now, was = new.spec, old.spec
    errors: list[FieldError] = []
    if not _is_same_source(now, was):
        only = tuple(go_name(PersistentVolumeSpec, attribute) for attribute, *_ in SOURCES)
        detail = f"spec.persistentvolumesource is immutable after creation\n{spec_diff(was, now, only)}"
        errors.append(forbidden(_SPEC.child("persistentvolumesource"), detail))
    errors += check_immutable(now.volume_mode, was.volume_mode, ROOT.child("volumeMode"))
    if was.node_affinity is not None and not ctx.on("MutablePVNodeAffinity"):
        errors += _affinity_change(now.node_affinity, was.node_affinity)
    if was.volume_attributes_class_name is not None and now.volume_attributes_class_name is None:
        at = _SPEC.child("volumeAttributesClassName")
        errors.append(forbidden(at, "update from non-nil value to nil is forbidden"))
    return errors


def _is_same_source(new: PersistentVolumeSpec, old: PersistentVolumeSpec) -> bool:
    csi = new.csi
    if csi is not None and old.csi is not None and old.csi.controller_expand_secret_ref is None:
        csi = msgspec.structs.replace(csi, controller_expand_secret_ref=None)
    if csi != old.csi:
        return False
    fields = (attribute for attribute, *_ in SOURCES if attribute != "csi")
    return all(getattr(new, field) == getattr(old, field) for field in fields)


def _affinity_change(new: VolumeNodeAffinity | None, old: VolumeNodeAffinity) -> list[FieldError]:
    if new == old or (new is not None and _is_promoted(new.required, old.required)):
        return []
    detail = f"{IMMUTABLE}, except for updating from beta label to GA"
    return [invalid(ROOT.child("nodeAffinity"), new, detail)]


def _is_promoted(new: NodeSelector | None, old: NodeSelector | None) -> bool:
    """Is it the same, but for beta labels that became stable ones?"""
    if new is None or old is None or len(new.node_selector_terms) != len(old.node_selector_terms):
        return False
    for now, was in zip(new.node_selector_terms, old.node_selector_terms, strict=True):
        if now.match_fields != was.match_fields or len(now.match_expressions) != len(was.match_expressions):
            return False
        for one, other in zip(now.match_expressions, was.match_expressions, strict=True):
            is_same_key = one.key in (other.key, _BETA_LABELS.get(other.key))
            if not is_same_key or (one.operator, one.values) != (other.operator, other.values):
                return False
    return True


def _status(new: PersistentVolume, old: PersistentVolume, ctx: Context) -> list[FieldError]:
    return check_present(new.metadata.resource_version, ROOT.child("resourceVersion"))


PERSISTENT_VOLUME: Final = kind(
    dns_subdomain,
    _volume,
    namespaced=False,
    update=(changed, made(dns_subdomain, namespaced=False), _volume, _change),
    status=_status,
)
