"""Operators on values: arithmetic with the bounds of 64 bits, and order.

Called by the standard library. Every function takes two values of unknown type and gives a value or raises
EvaluationError with cel-go's text.
"""

from __future__ import annotations

import math
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    EvaluationError,
    GrowingList,
    JoinedList,
    Timestamp,
    Uint,
    Value,
    no_overload,
)

MIN_SECONDS: Final = -62135596800
#: Up to this length two lists are copied into one.
_COPIED: Final = 64
MAX_SECONDS: Final = 253402300799


def int_or_overflow(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def uint_or_overflow(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def duration_or_overflow(nanoseconds: int) -> Duration:
    if INT_MIN <= nanoseconds <= INT_MAX:
        return Duration(nanoseconds)
    raise EvaluationError("integer overflow")


def timestamp_or_overflow(nanoseconds: int, zone: int = 0) -> Timestamp:
    if MIN_SECONDS <= nanoseconds // SECOND_NS <= MAX_SECONDS:
        return Timestamp(nanoseconds, zone)
    raise EvaluationError("timestamp overflow")


def add(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return int_or_overflow(left + right)
        if kind in (str, float, bytes):
            return left + right
        if kind is Uint:
            return uint_or_overflow(int(left) + int(right))
        if kind is Duration:
            return duration_or_overflow(left.nanoseconds + right.nanoseconds)
    if kind is GrowingList and isinstance(right, list | tuple):
        left.extend(right)
        return left
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) + len(right) <= _COPIED:
            return [*left, *right]
        return JoinedList(left, right)
    if kind is Duration and type(right) is Timestamp:
        left, right = right, left
    if type(left) is Timestamp and type(right) is Duration:
        return timestamp_or_overflow(left.nanoseconds + right.nanoseconds, left.zone)
    raise no_overload()


def subtract(left: Value, right: Value) -> Value:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return int_or_overflow(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return uint_or_overflow(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return duration_or_overflow(left.nanoseconds - right.nanoseconds)
    if kind is Timestamp and other is Duration:
        return timestamp_or_overflow(left.nanoseconds - right.nanoseconds, left.zone)
    raise no_overload()


def multiply(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return int_or_overflow(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return uint_or_overflow(int(left) * int(right))
    raise no_overload()


def divide(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint, float):
        raise no_overload()
    if kind is float:
        return _divide_floats(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    if kind is Uint:
        return Uint(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return int_or_overflow(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def modulo(left: Value, right: Value) -> Value:
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise no_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(int(left) % int(right))
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate(value: Value) -> Value:
    if type(value) is int:
        return int_or_overflow(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return duration_or_overflow(-value.nanoseconds)
    raise no_overload()


_NUMBERS: Final = frozenset({int, Uint, float})
_ORDERED: Final = frozenset({str, bytes, bool})


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is other:
        if kind is str:
            return _compare_texts(left, right)
        if kind in _ORDERED:
            return int(left > right) - int(left < right)
        if kind is Duration or kind is Timestamp:
            return _compare_numbers(left.nanoseconds, right.nanoseconds)
    raise no_overload()


def _compare_numbers(left: float, right: float) -> int:
    if type(left) is float or type(right) is float:
        if left != left or right != right:
            raise EvaluationError("NaN values cannot be ordered")
        left, right = float(left), float(right)
    return (left > right) - (left < right)


def _compare_texts(left: str, right: str) -> int:
    # Code points sort as their UTF-8 bytes do.
    return (left > right) - (left < right)


def less(left: Value, right: Value) -> bool:
    return compare(left, right) < 0


def less_equal(left: Value, right: Value) -> bool:
    return compare(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return compare(left, right) > 0


def greater_equal(left: Value, right: Value) -> bool:
    return compare(left, right) >= 0


#: Python types that take part in an operator; for others cel-go's message names the operator.
ADDABLE: Final = frozenset(
    {int, Uint, float, str, bytes, list, tuple, GrowingList, JoinedList, Duration, Timestamp}
)
SUBTRACTABLE: Final = frozenset({int, Uint, float, Duration, Timestamp})
MULTIPLIABLE: Final = frozenset({int, Uint, float})
COMPARABLE: Final = frozenset({int, Uint, float, str, bytes, bool, Duration, Timestamp})
MODDABLE: Final = frozenset({int, Uint})
NEGATABLE: Final = frozenset({int, float, bool, Duration})
#: Types whose values receive functions by name, and answer `no such overload` to unknown ones.
RECEIVERS: Final = frozenset({str, Timestamp, Duration})
