"""Namespaces: what their finalizers are called, and which phase fits which state."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import Namespace
from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label
from nodeward.validation.checks import check_each, check_qualified
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.metadata import STANDARD_FINALIZERS, validate_metadata_update

_FINALIZERS: Final = ROOT.child("spec", "finalizers")


def _finalizer(name: str, path: FieldPath) -> list[FieldError]:
    errors = check_qualified(name, path)
    if "/" not in name and name not in STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid(path, name, detail))
    return errors


def _namespace(new: Namespace, old: Namespace | None, ctx: Context) -> list[FieldError]:
    return [error for name in new.spec.finalizers for error in _finalizer(name, _FINALIZERS)]


def _status(new: Namespace, old: Namespace, ctx: Context) -> list[FieldError]:
    is_going = new.metadata.deletion_timestamp is not None
    expected, state = ("Terminating", "not empty") if is_going else ("Active", "empty")
    if new.status.phase == expected:
        return []
    detail = f"may only be '{expected}' if `deletionTimestamp` is {state}"
    return [invalid(ROOT.child("status", "Phase"), new.status.phase, detail)]


def validate_namespace_finalize(new: Namespace, old: Namespace) -> list[FieldError]:
    """The finalize subresource, which alone may change `spec.finalizers`."""
    errors = validate_metadata_update(new.metadata, old.metadata)
    return errors + check_each(new.spec.finalizers, _FINALIZERS, _finalizer)


NAMESPACE: Final = kind(
    dns_label,
    _namespace,
    namespaced=False,
    update=(changed, made(dns_label, namespaced=False), _namespace),
    status=_status,
)
