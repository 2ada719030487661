"""What every object's metadata must be, when it is made and when it is changed.

In goes an `ObjectMeta` (names already generated, on an update `resourceVersion` and the like already filled in by
the request path), out come field errors in Kubernetes' order.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.meta import ManagedFieldsEntry, ObjectMeta, OwnerReference
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, quote, required, too_long
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import (
    dns_label,
    label_key_faults,
    mask_trailing_dash,
    path_segment_name,
    path_segment_prefix,
    size,
)
from nodeward.validation.checks import IMMUTABLE, NOT_NEGATIVE
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.validator import NameRule

METADATA: Final = ROOT.child("metadata")
ANNOTATIONS_LIMIT: Final = 256 * 1024
_MANAGER_LIMIT: Final = 128
_SUBRESOURCE_LIMIT: Final = 256
#: Unlike upstream: each of these faults shows the whole list, so only the first ones are reported.
_CONTROLLERS_REPORTED: Final = 10

#: Finalizers that need no domain in their name.
STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def validate_metadata(
    meta: ObjectMeta, name_rule: NameRule, *, namespaced: bool, path: FieldPath = METADATA
) -> list[FieldError]:
    """Metadata of an object that is being made."""
    errors: list[FieldError] = []
    if meta.generate_name:
        errors += [
            invalid(path.child("generateName"), meta.generate_name, fault)
            for fault in _prefix_faults(meta.generate_name, name_rule)
        ]
    if not meta.name:
        errors.append(required(path.child("name"), "name or generateName is required"))
    elif faults := name_rule(meta.name):
        errors += [invalid(path.child("name"), meta.name, fault) for fault in faults]
    if namespaced:
        if not meta.namespace:
            errors.append(required(path.child("namespace")))
        elif faults := dns_label(meta.namespace):
            errors += [invalid(path.child("namespace"), meta.namespace, fault) for fault in faults]
    elif meta.namespace:
        errors.append(forbidden(path.child("namespace"), "not allowed on this type"))
    if meta.generation < 0:
        errors.append(invalid(path.child("generation"), meta.generation, NOT_NEGATIVE))
    _labels_to_owners(meta, path, errors)
    if meta.finalizers:
        errors += validate_finalizers(meta.finalizers, path.child("finalizers"))
    if meta.managed_fields:
        errors += _managed_fields(meta.managed_fields, path.child("managedFields"))
    if meta.finalizers:
        errors += _unqualified_finalizers(meta.finalizers, path.child("finalizers"))
    return errors


def validate_metadata_update(
    new: ObjectMeta, old: ObjectMeta, path: FieldPath = METADATA
) -> list[FieldError]:
    """Metadata of an object that is being changed."""
    errors: list[FieldError] = []
    if old.deletion_timestamp is not None and new.finalizers:
        added = sorted(set(new.finalizers) - set(old.finalizers))
        if added:
            listed = ", ".join(quote(name) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(forbidden(path.child("finalizers"), detail))
    if not new.resource_version:
        errors.append(invalid(path.child("resourceVersion"), "", "must be specified for an update"))
    if new.generation < 0:
        errors.append(invalid(path.child("generation"), new.generation, NOT_NEGATIVE))
    if new.generation < old.generation:
        errors.append(invalid(path.child("generation"), new.generation, "must not be decremented"))
    if new.name != old.name:
        errors.append(invalid(path.child("name"), new.name, IMMUTABLE))
    if new.namespace != old.namespace:
        errors.append(invalid(path.child("namespace"), new.namespace, IMMUTABLE))
    if new.uid != old.uid:
        errors.append(invalid(path.child("uid"), new.uid, IMMUTABLE))
    if new.creation_timestamp != old.creation_timestamp:
        errors.append(invalid(path.child("creationTimestamp"), new.creation_timestamp, IMMUTABLE))
    if new.deletion_timestamp != old.deletion_timestamp:
        errors.append(invalid(path.child("deletionTimestamp"), new.deletion_timestamp, IMMUTABLE))
    if new.deletion_grace_period_seconds != old.deletion_grace_period_seconds:
        at = path.child("deletionGracePeriodSeconds")
        errors.append(invalid(at, new.deletion_grace_period_seconds, IMMUTABLE))
    _labels_to_owners(new, path, errors)
    if new.managed_fields:
        errors += _managed_fields(new.managed_fields, path.child("managedFields"))
    if new.finalizers:
        errors += _unqualified_finalizers(new.finalizers, path.child("finalizers"))
    return errors


def validate_annotations(annotations: dict[str, str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    total = 0
    for key, value in annotations.items():
        total += size(key) + size(value)
        # Annotation keys are label keys whose case does not matter.
        if faults := label_key_faults(key.lower()):
            errors += [invalid(path, key, fault) for fault in faults]
    if total > ANNOTATIONS_LIMIT:
        errors.append(too_long(path, ANNOTATIONS_LIMIT))
    return errors


def validate_finalizers(finalizers: list[str], path: FieldPath) -> list[FieldError]:
    errors = [invalid(path, name, fault) for name in finalizers for fault in label_key_faults(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(path, finalizers, detail))
    return errors


def _unqualified_finalizers(finalizers: list[str], path: FieldPath) -> list[FieldError]:
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(path.index(i), name, detail)
        for i, name in enumerate(finalizers)
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def _prefix_faults(prefix: str, name_rule: NameRule) -> list[str]:
    if name_rule is path_segment_name:
        return path_segment_prefix(prefix)
    return name_rule(mask_trailing_dash(prefix))


def _labels_to_owners(meta: ObjectMeta, path: FieldPath, errors: list[FieldError]) -> None:
    if meta.labels:
        errors += validate_labels(meta.labels, path.child("labels"))
    if meta.annotations:
        errors += validate_annotations(meta.annotations, path.child("annotations"))
    if meta.owner_references:
        errors += _owners(meta.owner_references, path.child("ownerReferences"))


def _owners(owners: list[OwnerReference], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    first_controller, reported = "", 0
    for i, owner in enumerate(owners):
        _owner(owner, path.index(i), errors)
        if owner.controller and reported < _CONTROLLERS_REPORTED:
            name = f"{owner.kind}/{owner.name}"
            if first_controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first_controller} and {name}'
                )
                errors.append(invalid(path, owners, detail))
                reported += 1
            else:
                first_controller = name
    return errors


def _owner(owner: OwnerReference, path: FieldPath, errors: list[FieldError]) -> None:
    version = owner.api_version
    if not version:
        errors.append(required(path.child("apiVersion"), "must not be empty"))
    elif version.count("/") > 1 or version.endswith("/"):
        detail = "must be <group>/<version> or <version>"
        errors.append(invalid(path.child("apiVersion"), version, detail))
    if not owner.kind:
        errors.append(required(path.child("kind"), "must not be empty"))
    if not owner.name:
        errors.append(required(path.child("name"), "must not be empty"))
    if not owner.uid:
        errors.append(required(path.child("uid"), "must not be empty"))
    if version == "v1" and owner.kind == "Event":
        errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))


def _managed_fields(entries: list[ManagedFieldsEntry], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, entry in enumerate(entries):
        # The server writes most entries itself: the loop must cost nothing for those.
        if (
            entry.operation in ("Apply", "Update")
            and entry.fields_type in ("", "FieldsV1")
            and len(entry.manager) <= _MANAGER_LIMIT
            and entry.manager.isascii()
            and entry.manager.isprintable()
            and len(entry.subresource) <= _SUBRESOURCE_LIMIT
        ):
            continue
        at = path.index(i)
        if not entry.operation:
            errors.append(required(at.child("operation"), "must not be empty"))
        elif entry.operation not in ("Apply", "Update"):
            errors.append(not_supported(at.child("operation"), entry.operation, ("Apply", "Update")))
        if entry.fields_type not in ("", "FieldsV1"):
            errors.append(invalid(at.child("fieldsType"), entry.fields_type, "must be `FieldsV1`"))
        errors += validate_field_manager(entry.manager, at.child("manager"))
        if size(entry.subresource) > _SUBRESOURCE_LIMIT:
            errors.append(too_long(at.child("subresource"), _SUBRESOURCE_LIMIT))
    return errors


def validate_field_manager(manager: str, path: FieldPath) -> list[FieldError]:
    """The `fieldManager` of a request and of a managed-fields entry: short and printable."""
    errors = [too_long(path, _MANAGER_LIMIT)] if size(manager) > _MANAGER_LIMIT else []
    if manager.isprintable():
        return errors
    position = 0
    for character in manager:
        if not character.isprintable():
            shown = f"U+{ord(character):04X}"
            errors.append(invalid(path, manager, f"invalid character {shown} (at position {position})"))
        position += size(character)
    return errors
