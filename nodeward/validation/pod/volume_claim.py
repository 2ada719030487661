"""What a claim for a volume must say, in a PersistentVolumeClaim and in the template of an ephemeral volume."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from nodeward.api.core_v1.storage import PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate
from nodeward.api.meta import ObjectMeta
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import check_label, check_one_of, check_present, check_subdomain
from nodeward.validation.meta.labels import validate_label_selector, validate_labels
from nodeward.validation.meta.metadata import validate_annotations

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")

#: Fields of metadata a template may not set, with their names in errors.
_NOT_IN_TEMPLATE: Final = (
    ("name", "name"),
    ("generate_name", "generateName"),
    ("namespace", "namespace"),
    ("self_link", "selfLink"),
    ("uid", "uID"),
    ("resource_version", "resourceVersion"),
    ("generation", "generation"),
    ("creation_timestamp", "creationTimestamp"),
    ("deletion_timestamp", "deletionTimestamp"),
    ("deletion_grace_period_seconds", "deletionGracePeriodSeconds"),
    ("owner_references", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managed_fields", "managedFields"),
)


def validate_claim_template(template: PersistentVolumeClaimTemplate, path: FieldPath) -> list[FieldError]:
    errors = validate_template_metadata(template.metadata, path.child("metadata"))
    return errors + validate_claim_spec(template.spec, path.child("spec"))


def validate_template_metadata(meta: ObjectMeta, path: FieldPath) -> list[FieldError]:
    """Metadata that will be copied to objects made from a template: labels and annotations, nothing else."""
    errors = validate_annotations(meta.annotations, path.child("annotations"))
    errors += validate_labels(meta.labels, path.child("labels"))
    untouched = ObjectMeta()
    errors += [
        forbidden(path.child(name), "cannot be set")
        for attribute, name in _NOT_IN_TEMPLATE
        if getattr(meta, attribute) != getattr(untouched, attribute)
    ]
    return errors


def validate_claim_spec(
    spec: PersistentVolumeClaimSpec,
    path: FieldPath,
    *,
    allow_invalid_label_values: bool = False,
    allow_invalid_api_group: bool = False,
) -> list[FieldError]:
    """The two options are for updates of claims that were stored before the rule was as strict."""
    errors: list[FieldError] = []
    if not spec.access_modes:
        errors.append(required(path.child("accessModes"), "at least 1 access mode is required"))
    errors += validate_label_selector(
        spec.selector, path.child("selector"), allow_invalid_values=allow_invalid_label_values
    )
    errors += validate_access_modes(spec.access_modes, path.child("accessModes"))
    storage = spec.resources.requests.get("storage")
    at = path.child("resources").key("storage")
    if storage is None:
        errors.append(required(at))
    elif storage.nanos <= 0:
        errors.append(invalid(at, str(storage), "must be greater than zero"))
    errors += check_subdomain(spec.storage_class_name or None, path.child("storageClassName"))
    errors += check_one_of(spec.volume_mode, path.child("volumeMode"), VOLUME_MODES)
    errors += _data_sources(spec, path, allow_invalid_api_group)
    if spec.volume_attributes_class_name:
        name = spec.volume_attributes_class_name
        errors += check_subdomain(name, path.child("volumeAttributesClassName"))
    return errors


def validate_access_modes(modes: list[str], path: FieldPath) -> list[FieldError]:
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    has_others = any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes)
    if "ReadWriteOncePod" in modes and has_others:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _data_sources(
    spec: PersistentVolumeClaimSpec, path: FieldPath, allow_invalid_group: bool
) -> list[FieldError]:
    source, ref = spec.data_source, spec.data_source_ref
    errors: list[FieldError] = []
    if source is not None:
        errors += _reference(source, path.child("dataSource"), allow_invalid_group)
    if ref is not None:
        at = path.child("dataSourceRef")
        errors += _reference(ref, at, allow_invalid_group)
        errors += check_label(ref.namespace or None, at.child("namespace"))
    if source is not None and ref is not None:
        # The value shown is upstream's slip: a path, which JSON shows as an empty object.
        if ref.namespace:
            errors.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
        elif (source.api_group, source.kind, source.name) != (ref.api_group, ref.kind, ref.name):
            errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def _reference(
    reference: TypedLocalObjectReference | TypedObjectReference, path: FieldPath, allow_invalid_group: bool
) -> list[FieldError]:
    errors = check_present(reference.name, path.child("name"))
    errors += check_present(reference.kind, path.child("kind"))
    group = reference.api_group or ""
    if not group and reference.kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, reference.kind, detail))
    if group and not allow_invalid_group:
        errors += check_subdomain(group, path.child("apiGroup"))
    return errors
