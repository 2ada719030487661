"""Access reviews: they ask about exactly one thing, and carry no metadata of their own."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.authorization_v1 import (
    LocalSubjectAccessReview,
    NonResourceAttributes,
    ResourceAttributes,
    SelfSubjectAccessReview,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from nodeward.api.context import Context
from nodeward.api.meta import FieldSelectorRequirement, LabelSelectorRequirement, ObjectMeta
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.validation.checks import check_each, check_label_value, check_present, check_qualified
from nodeward.validation.kinds import asked
from nodeward.validation.meta.metadata import METADATA

_SPEC: Final = ROOT.child("spec")
_RESOURCE: Final = _SPEC.child("resourceAttributes")


def _subject(spec: SubjectAccessReviewSpec) -> list[FieldError]:
    errors = _one_of(spec.resource_attributes, spec.non_resource_attributes)
    if not spec.user and not spec.groups:
        errors.append(invalid(_SPEC.child("user"), "", "at least one of user or group must be specified"))
    return errors + _resource(spec.resource_attributes)


def _one_of(resource: ResourceAttributes | None, other: NonResourceAttributes | None) -> list[FieldError]:
    if (resource is None) != (other is None):
        return []
    detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return [invalid(_SPEC, other, detail)]


def _resource(attributes: ResourceAttributes | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if attributes is not None and (fields := attributes.field_selector) is not None:
        at = _RESOURCE.child("fieldSelector")
        errors += _selector(fields.raw_selector, bool(fields.requirements), at)
        errors += check_each(fields.requirements, at.child("requirements"), _field)
    if attributes is not None and (labels := attributes.label_selector) is not None:
        at = _RESOURCE.child("labelSelector")
        errors += _selector(labels.raw_selector, bool(labels.requirements), at)
        errors += check_each(labels.requirements, at.child("requirements"), _label)
    return errors


def _selector(raw: str, has_requirements: bool, path: FieldPath) -> list[FieldError]:
    if raw and has_requirements:
        detail = "may not specified at the same time as requirements"
        return [invalid(path.child("rawSelector"), raw, detail)]
    if not raw and not has_requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [required(path.child("requirements"), detail)]
    return []


def _operator(
    requirement: FieldSelectorRequirement | LabelSelectorRequirement, path: FieldPath
) -> list[FieldError]:
    # Operators nobody knows yet are let through: an authorizer that does not know one ignores it.
    at = path.child("values")
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        return [required(at, "must be specified when `operator` is 'In' or 'NotIn'")]
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        return [forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    return []


def _field(requirement: FieldSelectorRequirement, path: FieldPath) -> list[FieldError]:
    errors = check_present(requirement.key, path.child("key"), "must be specified")
    return errors + _operator(requirement, path)


def _label(requirement: LabelSelectorRequirement, path: FieldPath) -> list[FieldError]:
    errors = _operator(requirement, path) + check_qualified(requirement.key, path.child("key"))
    return errors + check_each(requirement.values, path.child("values"), check_label_value)


def _bare(meta: ObjectMeta, detail: str, **ignored: str) -> list[FieldError]:
    rest = msgspec.structs.replace(meta, managed_fields=[], **ignored)
    return [] if rest == ObjectMeta() else [invalid(METADATA, meta, detail)]


def _create_subject(new: SubjectAccessReview, old: None, ctx: Context) -> list[FieldError]:
    return _subject(new.spec) + _bare(new.metadata, "must be empty")


def _create_self(new: SelfSubjectAccessReview, old: None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = _one_of(spec.resource_attributes, spec.non_resource_attributes)
    return errors + _resource(spec.resource_attributes) + _bare(new.metadata, "must be empty")


def _create_local(review: LocalSubjectAccessReview, old: None, ctx: Context) -> list[FieldError]:
    spec, namespace = review.spec, review.metadata.namespace
    errors = _subject(spec)
    errors += _bare(review.metadata, "must be empty except for namespace", namespace="")
    if spec.resource_attributes is not None and spec.resource_attributes.namespace != namespace:
        at = _RESOURCE.child("namespace")
        errors.append(invalid(at, spec.resource_attributes.namespace, "must match metadata.namespace"))
    if spec.non_resource_attributes is not None:
        at = _SPEC.child("nonResourceAttributes")
        errors.append(invalid(at, spec.non_resource_attributes, "disallowed on this kind of request"))
    return errors


SUBJECT_ACCESS_REVIEW: Final = asked(_create_subject)
SELF_SUBJECT_ACCESS_REVIEW: Final = asked(_create_self)
LOCAL_SUBJECT_ACCESS_REVIEW: Final = asked(_create_local)
SELF_SUBJECT_RULES_REVIEW: Final = asked()
