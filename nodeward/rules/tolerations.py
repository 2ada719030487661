"""Does a toleration put up with a taint: all operators and effects, numbers included (KEP-5471).

In go a toleration and a taint, of a pod and a node or of a claim and a device; out comes a plain answer. `Gt N`
tolerates a taint whose value is greater than N, `Lt N` one that is less. Both sides must be whole numbers of 64 bits
in their one canonical form; anything else does not match, and is never an error. With `numeric` false (the gate is
off, or the component is too old to know it) `Lt` and `Gt` match nothing. `Equal` and `Exists` never look at a
number.

Called by the scheduler, controllers, other rules and benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

EQUAL: Final = "Equal"
EXISTS: Final = "Exists"
LESS: Final = "Lt"
GREATER: Final = "Gt"
NUMERIC: Final = (LESS, GREATER)

_LONGEST: Final = len(str(-(2**63)))
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


class AnyTaint(Protocol):
    """What a node's taint and a device's taint have in common."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class AnyToleration(AnyTaint, Protocol):
    """What a pod's toleration and a claim's toleration have in common."""

    @property
    def operator(self) -> str: ...
    @property
    def toleration_seconds(self) -> int | None: ...


T = TypeVar("T", bound=AnyToleration)


def canonical_int64(text: str) -> int | None:
    """Return the number a value stands for; None unless it is written in the one way numbers are compared in."""
    if len(text) > _LONGEST:
        return None
    try:
        number = int(text)
    except ValueError:
        return None
    # Python reads more than we take (blanks, plus signs, underscores, other digits); writing it again shows it.
    return number if str(number) == text and _LEAST <= number <= _MOST else None


def tolerates(toleration: AnyToleration, taint: AnyTaint, *, numeric: bool) -> bool:
    """Tell whether this one toleration covers this one taint. An empty key or effect covers all of them."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", EQUAL):
        return toleration.value == taint.value
    if operator == EXISTS:
        return True
    if not numeric or operator not in NUMERIC:
        return False
    mine, theirs = canonical_int64(toleration.value), canonical_int64(taint.value)
    if mine is None or theirs is None:
        return False
    return theirs < mine if operator == LESS else theirs > mine


def first_tolerating(tolerations: Iterable[T], taint: AnyTaint, *, numeric: bool) -> T | None:
    """Return the toleration that decides: the first that covers the taint, as they are listed."""
    for toleration in tolerations:
        if tolerates(toleration, taint, numeric=numeric):
            return toleration
    return None


def compares_numbers(tolerations: Iterable[AnyToleration]) -> bool:
    """Tell whether one of the tolerations uses `Lt` or `Gt`."""
    return any(toleration.operator in NUMERIC for toleration in tolerations)


def has_unreadable_value(taint: AnyTaint, tolerations: Iterable[AnyToleration]) -> bool:
    """Tell whether an `Lt` or `Gt` toleration has this taint's key, but the taint's value is not a number.

    Then the toleration does not match, whatever its threshold: an administrator should hear of it.
    """
    return canonical_int64(taint.value) is None and any(
        toleration.operator in NUMERIC
        and toleration.key in ("", taint.key)
        and toleration.effect in ("", taint.effect)
        for toleration in tolerations
    )
