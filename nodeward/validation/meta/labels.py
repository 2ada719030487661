"""Labels and the selectors that ask for them.

In go maps and selectors with their path, out come field errors. Keys are qualified names, values are short.
"""

from __future__ import annotations

from nodeward.api.meta import LabelSelector, LabelSelectorRequirement
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import label_key_faults, label_value_faults


def validate_label_name(key: str, path: FieldPath) -> list[FieldError]:
    return [invalid(path, key, fault) for fault in label_key_faults(key)]


def validate_labels(labels: dict[str, str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        if faults := label_key_faults(key):
            errors += [invalid(path, key, fault) for fault in faults]
        if faults := label_value_faults(value):
            errors += [invalid(path, value, fault) for fault in faults]
    return errors


def has_invalid_label_value(selector: LabelSelector | None) -> bool:
    """Old objects may hold selectors that would be refused today; updates of those stay possible."""
    if selector is None:
        return False
    return any(label_value_faults(v) for e in selector.match_expressions for v in e.values)


def validate_label_selector(
    selector: LabelSelector | None, path: FieldPath, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    if selector is None:
        return []
    errors: list[FieldError] = []
    if selector.match_labels:
        errors += validate_labels(selector.match_labels, path.child("matchLabels"))
    for i, requirement in enumerate(selector.match_expressions):
        at = path.child("matchExpressions").index(i)
        errors += _requirement(requirement, at, allow_invalid_values)
    return errors


def is_usable(selector: LabelSelector | None) -> bool:
    """Whether a selector can be asked at all: a malformed one cannot."""
    return not validate_label_selector(selector, ROOT)


def is_empty(selector: LabelSelector) -> bool:
    """Whether a selector names no label, and so selects everything."""
    return not selector.match_labels and not selector.match_expressions


def _requirement(
    requirement: LabelSelectorRequirement, path: FieldPath, allow_invalid_values: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    if requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(required(path.child("values"), detail))
    elif requirement.operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(path.child("values"), detail))
    else:
        detail = "not a valid selector operator"
        errors.append(invalid(path.child("operator"), requirement.operator, detail))
    errors += validate_label_name(requirement.key, path.child("key"))
    if not allow_invalid_values:
        for i, value in enumerate(requirement.values):
            for fault in label_value_faults(value):
                errors.append(invalid(path.child("values").index(i), value, fault))
    return errors
