"""Persistent volume claims: what may still change once one exists, and what is reported about it."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.pod_status import VolumeHealthCondition, VolumeHealthStatus
from nodeward.api.core_v1.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.base.quantity import ZERO, Quantity
from nodeward.rules.names import dns_subdomain
from nodeward.rules.resource_names import is_native
from nodeward.validation.checks import (
    Fields,
    check_each,
    check_immutable,
    check_present,
    check_qualified,
    form,
    unless_empty,
)
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.conditions import condition_reason
from nodeward.validation.meta.labels import is_usable
from nodeward.validation.meta.metadata import (
    METADATA,
)
from nodeward.validation.pod.resource_lists import validate_quantity
from nodeward.validation.pod.volume_claim import validate_claim_spec
from nodeward.validation.spec_diff import spec_diff

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_RESIZE_STATES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_REASON: Final = Fields(VolumeHealthCondition, reason=unless_empty(form(condition_reason)))


def _claim(new: PersistentVolumeClaim, old: PersistentVolumeClaim | None, ctx: Context) -> list[FieldError]:
    return validate_claim_spec(
        new.spec,
        _SPEC,
        allow_invalid_label_values=old is not None and not is_usable(old.spec.selector),
        allow_invalid_api_group=old is not None and _has_group(old.spec),
    )


def _has_group(spec: PersistentVolumeClaimSpec) -> bool:
    return any(
        ref is not None and ref.api_group is not None for ref in (spec.data_source, spec.data_source_ref)
    )


def _change(new: PersistentVolumeClaim, old: PersistentVolumeClaim, ctx: Context) -> list[FieldError]:
    errors = _immutable(new, old) + _size(new, old)
    errors += check_immutable(new.spec.volume_mode, old.spec.volume_mode, ROOT.child("volumeMode"))
    return errors + _attributes_class(new, old)


def _immutable(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """The spec stays, but for binding, for a class given late, and for growing a bound claim."""
    errors: list[FieldError] = []
    now, was = new.spec, old.spec
    class_name = was.storage_class_name
    if not _is_class_from_annotation(new, old):
        annotation = new.metadata.annotations.get(_CLASS_ANNOTATION, "")
        before = old.metadata.annotations.get(_CLASS_ANNOTATION, "")
        errors += check_immutable(annotation, before, METADATA.child("annotations", _CLASS_ANNOTATION))
        if not _is_class_given_late(new, old):
            class_name = now.storage_class_name
    masked = msgspec.structs.replace(now, storage_class_name=class_name)
    if not was.volume_name:
        masked.volume_name = ""
    if new.status.phase == "Bound":
        masked.volume_attributes_class_name = was.volume_attributes_class_name
        if now.resources.requests:
            requests = {**now.resources.requests, "storage": was.resources.requests.get("storage", ZERO)}
            masked.resources = msgspec.structs.replace(now.resources, requests=requests)
    if masked != was:
        detail = (
            "spec is immutable after creation except resources.requests and "
            f"volumeAttributesClassName for bound claims\n{spec_diff(was, masked)}"
        )
        errors.append(forbidden(_SPEC, detail))
    return errors


def _is_class_from_annotation(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """The class moves from the old annotation to its field."""
    name = old.metadata.annotations.get(_CLASS_ANNOTATION)
    if name is None or old.spec.storage_class_name is not None or new.spec.storage_class_name != name:
        return False
    return new.metadata.annotations.get(_CLASS_ANNOTATION, name) == name


def _is_class_given_late(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> bool:
    """A claim without a class gets one, the one its annotation names if there is one."""
    name = new.spec.storage_class_name
    if name is None or old.spec.storage_class_name is not None:
        return False
    return old.metadata.annotations.get(_CLASS_ANNOTATION, name) == name


def _size(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    """A claim never shrinks below what it has; one that never grew can take its wish back."""
    at = _SPEC.child("resources", "requests", "storage")
    size = new.spec.resources.requests.get("storage", ZERO)
    if size >= old.spec.resources.requests.get("storage", ZERO):
        return []
    if size > old.status.capacity.get("storage", ZERO):
        return []
    return [forbidden(at, "field can not be less than status.capacity")]


def _attributes_class(new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> list[FieldError]:
    name = new.spec.volume_attributes_class_name
    if name == old.spec.volume_attributes_class_name:
        return []
    if old.status.current_volume_attributes_class_name is None or name:
        return []
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden(_SPEC.child("volumeAttributesClassName"), detail)]


def _status(new: PersistentVolumeClaim, old: PersistentVolumeClaim, ctx: Context) -> list[FieldError]:
    errors = check_present(new.metadata.resource_version, ROOT.child("resourceVersion"))
    errors += check_present(new.spec.access_modes, ROOT.child("Spec", "accessModes"))
    for resource, amount in new.status.capacity.items():
        errors += _amount(amount, _STATUS.child("capacity").key(resource))
    errors += _health(new.status.health_status, _STATUS.child("healthStatus"))
    at = _STATUS.child("allocatedResourceStatuses")
    for resource, state in new.status.allocated_resource_statuses.items():
        errors += _resource(resource, at)
        if state not in _RESIZE_STATES:
            errors.append(not_supported(at, resource, sorted(_RESIZE_STATES)))
    at = _STATUS.child("allocatedResources")
    for resource, amount in new.status.allocated_resources.items():
        key = at.key(resource)
        errors += _resource(resource, at) or _amount(amount, key) or validate_quantity("storage", amount, key)
    return errors


def _amount(amount: Quantity, path: FieldPath) -> list[FieldError]:
    return [] if amount.value >= 0 else [invalid(path, amount.value, "must be a valid resource quantity")]


def _resource(name: str, path: FieldPath) -> list[FieldError]:
    if errors := check_qualified(name, path):
        return errors
    return [not_supported(path, name, ("storage",))] if is_native(name) and name != "storage" else []


def _health(health: VolumeHealthStatus | None, path: FieldPath) -> list[FieldError]:
    conditions = health.health_conditions if health else ()
    return check_each(conditions, path.child("healthConditions"), _REASON)


PERSISTENT_VOLUME_CLAIM: Final = kind(
    dns_subdomain,
    _claim,
    update=(changed, made(dns_subdomain, namespaced=True), _claim, _change),
    status=_status,
)
