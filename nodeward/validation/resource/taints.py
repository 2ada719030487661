"""Taints of devices, the tolerations of claims for them, and which node operations a driver does without.

`Lt` and `Gt` in device tolerations come with TaintTolerationComparisonOperators (KEP-5471), `skipNodeOperations` with
DRAOptionalNodePreparation (KEP-5945).
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.resource_v1 import DeviceTaint, DeviceToleration
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import decimal_integer, label_value_faults
from nodeward.validation.checks import (
    Distinct,
    check_choice,
    check_form,
    check_label_value,
    check_one_of,
    check_qualified,
)
from nodeward.validation.pod.tolerations import COMPARISON_GATE, NUMERIC

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
SKIP_GATE: Final = "DRAOptionalNodePreparation"
_PREPARE: Final = "NodePrepareResources"
_UNPREPARE: Final = "NodeUnprepareResources"
_OPERATIONS: Final = ("*", _PREPARE, _UNPREPARE)

Skipped = bool | list[str] | None


def validate_device_taint(taint: DeviceTaint, old: DeviceTaint | None, path: FieldPath) -> list[FieldError]:
    errors = check_qualified(taint.key, path.child("key"))
    errors += check_label_value(taint.value, path.child("value"))
    if old is not None and old.effect == taint.effect:
        return errors
    return errors + check_choice(taint.effect, path.child("effect"), EFFECTS)


def validate_device_toleration(
    toleration: DeviceToleration, path: FieldPath, ctx: Context
) -> list[FieldError]:
    errors = check_qualified(toleration.key or None, path.child("key"))
    errors += _operator(toleration, path, ctx)
    return errors + check_one_of(toleration.effect or None, path.child("effect"), EFFECTS)


def _operator(toleration: DeviceToleration, path: FieldPath, ctx: Context) -> list[FieldError]:
    at, value = path.child("value"), toleration.value
    match toleration.operator:
        case "Exists":
            return [invalid(at, value, "must be empty for operator `Exists`")] if value else []
        case "Equal":
            return [invalid(at, value, fault) for fault in label_value_faults(value)]
        case "":
            return [required(path.child("operator"))]
        case operator if operator in NUMERIC and ctx.on(COMPARISON_GATE):
            # Unlike upstream: shipped Kubernetes compares numbers for nodes only.
            return _number(value, at)
        case operator:
            return [not_supported(path.child("operator"), operator, ("Equal", "Exists"))]


def _number(text: str, path: FieldPath) -> list[FieldError]:
    if errors := check_form(text, path, decimal_integer):
        return errors
    return [] if -(2**63) <= int(text) < 2**63 else [invalid(path, text, "must fit into 64 bits")]


def is_skipping(skipped: Skipped) -> bool:
    """Does the driver do without any operation on the node?"""
    return skipped is not None and skipped is not False and skipped != []


def validate_skipped(new: Skipped, old: Skipped, path: FieldPath, ctx: Context) -> list[FieldError]:
    """With the gate off nobody starts to skip; whoever does already may go on."""
    if is_skipping(new) and not is_skipping(old) and not ctx.on(SKIP_GATE):
        return [forbidden(path, f"may only be set when the {SKIP_GATE} feature gate is enabled")]
    if not isinstance(new, list):
        return []
    errors: list[FieldError] = []
    if _PREPARE in new and _UNPREPARE not in new and "*" not in new:
        detail = f"{_PREPARE} cannot be skipped unless {_UNPREPARE} is also skipped"
        errors.append(invalid(path, new, detail))
    seen = Distinct()
    for i, operation in enumerate(new):
        errors += seen.add(operation, path.index(i))
    known = set(old) if isinstance(old, list) else set()
    for i, operation in enumerate(new):
        if operation not in known:
            errors += check_one_of(operation, path.index(i), _OPERATIONS)
    return errors
