"""Namespaces: what their finalizers are called, and which phase fits which state."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import Namespace
from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, qualified_name
from nodeward.validation.checks import check_each
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import Validator

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_FINALIZERS: Final = ROOT.child("spec", "finalizers")


def _finalizer(name: str, path: FieldPath) -> list[FieldError]:
    errors = [invalid(path, name, fault) for fault in qualified_name(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid(path, name, detail))
    return errors


def _create(namespace: Namespace, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(namespace.metadata, dns_label, namespaced=False)
    for name in namespace.spec.finalizers:
        errors += _finalizer(name, _FINALIZERS)
    return errors


def _update(new: Namespace, old: Namespace, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _create(new, ctx)


def _status(new: Namespace, old: Namespace, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    at = ROOT.child("status", "Phase")
    if new.metadata.deletion_timestamp is None:
        if new.status.phase != "Active":
            errors.append(
                invalid(at, new.status.phase, "may only be 'Active' if `deletionTimestamp` is empty")
            )
    elif new.status.phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        errors.append(invalid(at, new.status.phase, detail))
    return errors


def validate_namespace_finalize(new: Namespace, old: Namespace) -> list[FieldError]:
    """The finalize subresource, which alone may change `spec.finalizers`."""
    errors = validate_metadata_update(new.metadata, old.metadata)
    return errors + check_each(new.spec.finalizers, _FINALIZERS, _finalizer)


NAMESPACE: Final = Validator(create=_create, update=_update, status=_status, name=dns_label)
