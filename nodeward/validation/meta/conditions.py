"""Conditions in the form newer kinds use (meta/v1 `Condition`).

In goes the list with its path, out come field errors.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.meta import Condition
from nodeward.base.fielderror import FieldError, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import regex_error
from nodeward.validation.checks import (
    Distinct,
    Fields,
    both,
    check_each,
    check_not_negative,
    choice,
    given,
    most,
    named,
)
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
    types = Distinct()
    return check_each(
        conditions,
        path,
        lambda item, at: types.add(item.type, at) + _type(item.type, at) + _CONDITION(item, at),
    )


def _type(name: str, path: FieldPath) -> list[FieldError]:
    at = path.child("type")
    return validate_label_name(name, at) if name else [required(at, "is required")]


def _generation(number: int, path: FieldPath) -> list[FieldError]:
    return check_not_negative(number, path, "must be greater than or equal to zero")


_CONDITION: Final = Fields(
    Condition,
    status=choice("False", "True", "Unknown"),
    observed_generation=_generation,
    last_transition_time=given,
    reason=both(named(condition_reason), most(_REASON_LIMIT)),
    message=most(_MESSAGE_LIMIT),
)
