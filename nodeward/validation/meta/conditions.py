"""Conditions in the form newer kinds use (meta/v1 `Condition`).

In goes the list with its path, out come field errors.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.meta import Condition
from nodeward.base.fielderror import FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import regex_error
from nodeward.validation.checks import check_choice, check_form, check_size
from nodeward.validation.meta.labels import validate_label_name

_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON: Final = re.compile(_REASON).fullmatch
_BAD_REASON: Final = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_REASON_LIMIT: Final = 1024
_MESSAGE_LIMIT: Final = 32 * 1024


def condition_reason(text: str) -> list[str]:
    """What is wrong with the form (not the length) of a reason."""
    return [] if _IS_REASON(text) else [_BAD_REASON]


def validate_conditions(conditions: list[Condition], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at = path.index(i)
        if condition.type in seen:
            errors.append(duplicate(at, condition.type))
        seen.add(condition.type)
        errors += _condition(condition, at)
    return errors


def _condition(condition: Condition, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not condition.type:
        errors.append(required(path.child("type"), "is required"))
    else:
        errors += validate_label_name(condition.type, path.child("type"))
    errors += check_choice(condition.status, path.child("status"), ("False", "True", "Unknown"))
    if condition.observed_generation < 0:
        at = path.child("observedGeneration")
        errors.append(invalid(at, condition.observed_generation, "must be greater than or equal to zero"))
    if condition.last_transition_time is None:
        errors.append(required(path.child("lastTransitionTime")))
    if not condition.reason:
        errors.append(required(path.child("reason")))
    else:
        errors += check_form(condition.reason, path.child("reason"), condition_reason)
        errors += check_size(condition.reason, path.child("reason"), _REASON_LIMIT)
    return errors + check_size(condition.message, path.child("message"), _MESSAGE_LIMIT)
