"""Taints of nodes and the tolerations of pods for them, numeric operators included (KEP-5471).

`Lt` and `Gt` compare whole numbers and are taken only where the caller says so: with the gate
TaintTolerationComparisonOperators on, or when the old object already used them. A server older than the gate has
never heard of them and refuses them as it refuses any other word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from nodeward.api.context import Context
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.base.fielderror import (
    Cause,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    quote,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import decimal_integer, label_key_faults, label_value_faults
from nodeward.validation.meta.labels import validate_label_name

COMPARISON_GATE: Final = "TaintTolerationComparisonOperators"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NUMERIC: Final = ("Lt", "Gt")

_NUMBER: Final = re.compile("[+-]?[0-9]+")


class Numbers(Enum):
    """What a server makes of the numeric operators."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNHEARD_OF = "unheard of"


#: Asked only when a toleration uses a numeric operator.
AskNumbers: TypeAlias = Callable[[], Numbers]


def numbers(ctx: Context, *, was_used: bool) -> Numbers:
    """What this server makes of them, for an object that used them before or did not."""
    if not ctx.knows(COMPARISON_GATE):
        return Numbers.UNHEARD_OF
    return Numbers.TAKEN if was_used or ctx.on(COMPARISON_GATE) else Numbers.REFUSED


def uses_comparison_operators(tolerations: list[Toleration]) -> bool:
    return any(toleration.operator in NUMERIC for toleration in tolerations)


def validate_tolerations(tolerations: list[Toleration], path: FieldPath, ask: AskNumbers) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, toleration in enumerate(tolerations):
        # The tolerations every pod gets at admission look like this; they must cost nothing.
        if (
            toleration.operator == "Exists"
            and not toleration.value
            and toleration.effect == "NoExecute"
            and (not toleration.key or not label_key_faults(toleration.key))
        ):
            continue
        errors += _toleration(toleration, path.index(i), ask)
    return errors


def _toleration(toleration: Toleration, path: FieldPath, ask: AskNumbers) -> list[FieldError]:
    errors: list[FieldError] = []
    if toleration.key:
        errors += validate_label_name(toleration.key, path.child("key"))
    elif toleration.operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(path.child("operator"), toleration.operator, detail))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(path.child("effect"), toleration.effect, detail))
    if toleration.operator in ("Equal", ""):
        if faults := label_value_faults(toleration.value):
            errors.append(invalid(path.child("operator"), toleration.value, ";".join(faults)))
    elif toleration.operator == "Exists":
        if toleration.value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(path.child("operator"), toleration.value, detail))
    elif toleration.operator not in NUMERIC or (made := ask()) is Numbers.UNHEARD_OF:
        errors.append(not_supported(path.child("operator"), toleration.operator, ("Equal", "Exists")))
    elif made is Numbers.REFUSED:
        supported = ("Equal", "Exists", *NUMERIC)
        errors.append(not_supported(path.child("operator"), toleration.operator, supported))
    else:
        errors += _number(toleration.value, path.child("value"))
    if toleration.effect and toleration.effect not in EFFECTS:
        errors.append(not_supported(path.child("effect"), toleration.effect, EFFECTS))
    return errors


def _number(text: str, path: FieldPath) -> list[FieldError]:
    errors = [invalid(path, text, fault) for fault in decimal_integer(text)]
    if not _NUMBER.fullmatch(text):
        why = "invalid syntax"
    elif not -(2**63) <= int(text) < 2**63:
        why = "value out of range"
    else:
        return errors
    errors.append(invalid(path, text, f"strconv.ParseInt: parsing {quote(text)}: {why}"))
    return errors


def validate_only_added_tolerations(
    new: list[Toleration], old: list[Toleration], path: FieldPath, ask: AskNumbers
) -> list[FieldError]:
    """On a pod that exists tolerations are only added; of the old ones only tolerationSeconds may change."""
    if new != old:
        kept = {(t.key, t.operator, t.value, t.effect) for t in new}
        if any((t.key, t.operator, t.value, t.effect) not in kept for t in old):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden(path, detail)]
    return validate_tolerations(new, path, ask)


def validate_taints(taints: list[Taint], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: dict[tuple[str, str], None] = {}
    for i, taint in enumerate(taints):
        at = path.index(i)
        errors += validate_taint(taint, at)
        identity = (taint.effect, taint.key)
        if identity in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(FieldError(Cause.DUPLICATE, str(at), taint, detail))
        seen[identity] = None
    return errors


def validate_taint(taint: Taint, path: FieldPath) -> list[FieldError]:
    errors = validate_label_name(taint.key, path.child("key"))
    if faults := label_value_faults(taint.value):
        errors.append(invalid(path.child("value"), taint.value, ";".join(faults)))
    if not taint.effect:
        errors.append(required(path.child("effect")))
    elif taint.effect not in EFFECTS:
        errors.append(not_supported(path.child("effect"), taint.effect, EFFECTS))
    return errors
