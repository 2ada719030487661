"""The functions and operators every expression has: logic, equality, arithmetic, order, conversions, text.

Operators with special evaluation (`&&`, `||`, `?:`, `==`, `!=`, index) are declared here and carried out by the
planners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.cel import arithmetic as a
from nodeward.cel import cel_types as t
from nodeward.cel import conversions as c
from nodeward.cel.cel_types import CelType
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.library.regular_expressions import compile_regex
from nodeward.cel.values import (
    CelMap,
    EvaluationError,
    Value,
    contains,
    has_key,
    is_map,
    no_overload,
    type_of_value,
)

_A, _B = t.parameter("A"), t.parameter("B")
_LIST_A, _MAP_AB = t.list_of(_A), t.map_of(_A, _B)

_TYPE_NAMES: Final = {
    t.BOOL: "bool", t.INT: "int64", t.UINT: "uint64", t.DOUBLE: "double", t.STRING: "string", t.BYTES: "bytes",
    t.TIMESTAMP: "timestamp", t.DURATION: "duration",
}  # fmt: skip
#: The pairs of types that have an order, in the order overloads are tried.
_ORDERED: Final = (
    (t.BOOL, t.BOOL),
    (t.INT, t.INT), (t.INT, t.DOUBLE), (t.INT, t.UINT),
    (t.UINT, t.UINT), (t.UINT, t.DOUBLE), (t.UINT, t.INT),
    (t.DOUBLE, t.DOUBLE), (t.DOUBLE, t.INT), (t.DOUBLE, t.UINT),
    (t.STRING, t.STRING), (t.BYTES, t.BYTES), (t.TIMESTAMP, t.TIMESTAMP), (t.DURATION, t.DURATION),
)  # fmt: skip


def _order(name: str, word: str, implementation: Implementation) -> Function:
    overloads = tuple(
        Overload(
            f"{word}_{_TYPE_NAMES[left]}" + ("" if left == right else f"_{_TYPE_NAMES[right]}"),
            (left, right),
            t.BOOL,
        )
        for left, right in _ORDERED
    )
    return Function(name, overloads, implementation, a.COMPARABLE)


def _operator(
    name: str,
    signatures: tuple[tuple[str, CelType, CelType, CelType], ...],
    run: Implementation,
    kinds: frozenset[type],
) -> Function:
    overloads = tuple(Overload(id, (left, right), result) for id, left, right, result in signatures)  # noqa: A001
    return Function(name, overloads, run, kinds)


def _same(word: str, *kinds: CelType) -> tuple[tuple[str, CelType, CelType, CelType], ...]:
    return tuple((f"{word}_{_TYPE_NAMES[kind]}", kind, kind, kind) for kind in kinds)


def _logical_not(value: Value) -> Value:
    if type(value) is not bool:
        raise no_overload()
    return not value


def not_strictly_false(value: Value) -> bool:
    return value if type(value) is bool else True


def is_in(item: Value, items: Value) -> bool:
    if isinstance(items, list | tuple):
        return contains(items, item)
    if is_map(items):
        return has_key(items, item)
    raise no_overload()


def _text(name: str, id_: str, run: Callable[[str, str], bool]) -> Function:
    def checked(value: Value, other: Value) -> bool:
        if type(value) is not str or type(other) is not str:
            raise no_overload()
        return run(value, other)

    overload = Overload(id_, (t.STRING, t.STRING), t.BOOL, checked, is_member=True)
    return Function(name, (overload,), is_guarded=False)


def matches(text: Value, pattern: Value) -> bool:
    if type(pattern) is not str:
        raise no_overload()
    return compile_regex(pattern).is_match(text)


def _conversion(name: str, result: CelType, *overloads: tuple[str, CelType, Implementation]) -> Function:
    return Function(name, tuple(Overload(id_, (kind,), result, run) for id_, kind, run in overloads))


def _identity(value: Value) -> Value:
    return value


def _size(value: Value) -> int:
    if isinstance(value, str | bytes | list | tuple | dict | CelMap):
        return len(value)
    raise no_overload() if type(value) in a.RECEIVERS else EvaluationError("no such overload: size")


_SIZES: Final = (("bytes", t.BYTES), ("list", _LIST_A), ("map", _MAP_AB), ("string", t.STRING))
_SIZE: Final = Function(
    "size",
    tuple(
        Overload(f"{name}_size" if is_member else f"size_{name}", (kind,), t.INT, is_member=is_member)
        for name, kind in _SIZES
        for is_member in (False, True)
    ),
    _size,
)

OPERATORS: Final = (
    Function("_?_:_", (Overload("conditional", (t.BOOL, _A, _A), _A),)),
    Function("_&&_", (Overload("logical_and", (t.BOOL, t.BOOL), t.BOOL),)),
    Function("_||_", (Overload("logical_or", (t.BOOL, t.BOOL), t.BOOL),)),
    Function("!_", (Overload("logical_not", (t.BOOL,), t.BOOL),), _logical_not),
    Function("@not_strictly_false", (Overload("not_strictly_false", (t.BOOL,), t.BOOL),)),
    Function("_==_", (Overload("equals", (_A, _A), t.BOOL),)),
    Function("_!=_", (Overload("not_equals", (_A, _A), t.BOOL),)),
    _operator(
        "_+_",
        (
            ("add_bytes", t.BYTES, t.BYTES, t.BYTES),
            ("add_double", t.DOUBLE, t.DOUBLE, t.DOUBLE),
            ("add_duration_duration", t.DURATION, t.DURATION, t.DURATION),
            ("add_duration_timestamp", t.DURATION, t.TIMESTAMP, t.TIMESTAMP),
            ("add_timestamp_duration", t.TIMESTAMP, t.DURATION, t.TIMESTAMP),
            ("add_int64", t.INT, t.INT, t.INT),
            ("add_list", _LIST_A, _LIST_A, _LIST_A),
            ("add_string", t.STRING, t.STRING, t.STRING),
            ("add_uint64", t.UINT, t.UINT, t.UINT),
        ),
        a.add,
        a.ADDABLE,
    ),
    _operator("_/_", _same("divide", t.DOUBLE, t.INT, t.UINT), a.divide, a.MULTIPLIABLE),
    _operator("_%_", _same("modulo", t.INT, t.UINT), a.modulo, a.MODDABLE),
    _operator("_*_", _same("multiply", t.DOUBLE, t.INT, t.UINT), a.multiply, a.MULTIPLIABLE),
    Function(
        "-_",
        (Overload("negate_double", (t.DOUBLE,), t.DOUBLE), Overload("negate_int64", (t.INT,), t.INT)),
        a.negate,
        a.NEGATABLE,
    ),
    _operator(
        "_-_",
        (
            ("subtract_double", t.DOUBLE, t.DOUBLE, t.DOUBLE),
            ("subtract_duration_duration", t.DURATION, t.DURATION, t.DURATION),
            ("subtract_int64", t.INT, t.INT, t.INT),
            ("subtract_timestamp_duration", t.TIMESTAMP, t.DURATION, t.TIMESTAMP),
            ("subtract_timestamp_timestamp", t.TIMESTAMP, t.TIMESTAMP, t.DURATION),
            ("subtract_uint64", t.UINT, t.UINT, t.UINT),
        ),
        a.subtract,
        a.SUBTRACTABLE,
    ),
    _order("_<_", "less", a.less),
    _order("_<=_", "less_equals", a.less_equal),
    _order("_>_", "greater", a.greater),
    _order("_>=_", "greater_equals", a.greater_equal),
    Function(
        "_[_]",
        (Overload("index_list", (_LIST_A, t.INT), _A), Overload("index_map", (_MAP_AB, _A), _B)),
    ),
    Function(
        "@in",
        (Overload("in_list", (_A, _LIST_A), t.BOOL), Overload("in_map", (_A, _MAP_AB), t.BOOL)),
        is_in,
    ),
)

CONVERSIONS: Final = (
    Function("type", (Overload("type", (_A,), t.type_of(_A)),), type_of_value),
    Function("dyn", (Overload("to_dyn", (_A,), t.DYN),), _identity),
    _conversion(
        "bool", t.BOOL, ("bool_to_bool", t.BOOL, _identity), ("string_to_bool", t.STRING, c.text_to_bool)
    ),
    _conversion(
        "bytes", t.BYTES, ("bytes_to_bytes", t.BYTES, _identity), ("string_to_bytes", t.STRING, str.encode)
    ),
    _conversion(
        "double",
        t.DOUBLE,
        ("double_to_double", t.DOUBLE, _identity),
        ("int64_to_double", t.INT, float),
        ("string_to_double", t.STRING, c.text_to_double),
        ("uint64_to_double", t.UINT, float),
    ),
    _conversion(
        "duration",
        t.DURATION,
        ("duration_to_duration", t.DURATION, _identity),
        ("string_to_duration", t.STRING, c.text_to_duration),
    ),
    _conversion(
        "int",
        t.INT,
        ("int64_to_int64", t.INT, _identity),
        ("double_to_int64", t.DOUBLE, c.double_to_int),
        ("duration_to_int64", t.DURATION, lambda value: value.nanoseconds),
        ("string_to_int64", t.STRING, c.text_to_int),
        ("timestamp_to_int64", t.TIMESTAMP, lambda value: value.nanoseconds // SECOND_NS),
        ("uint64_to_int64", t.UINT, lambda value: a.int_or_overflow(int(value))),
    ),
    _conversion(
        "string",
        t.STRING,
        ("string_to_string", t.STRING, _identity),
        ("bool_to_string", t.BOOL, c.to_text),
        ("bytes_to_string", t.BYTES, c.bytes_to_text),
        ("double_to_string", t.DOUBLE, c.to_text),
        ("duration_to_string", t.DURATION, c.to_text),
        ("int64_to_string", t.INT, c.to_text),
        ("timestamp_to_string", t.TIMESTAMP, c.to_text),
        ("uint64_to_string", t.UINT, c.to_text),
    ),
    _conversion(
        "timestamp",
        t.TIMESTAMP,
        ("timestamp_to_timestamp", t.TIMESTAMP, _identity),
        ("int64_to_timestamp", t.INT, lambda value: a.timestamp_or_overflow(value * SECOND_NS)),
        ("string_to_timestamp", t.STRING, c.text_to_timestamp),
    ),
    _conversion(
        "uint",
        t.UINT,
        ("uint64_to_uint64", t.UINT, _identity),
        ("double_to_uint64", t.DOUBLE, c.double_to_uint),
        ("int64_to_uint64", t.INT, a.uint_or_overflow),
        ("string_to_uint64", t.STRING, c.text_to_uint),
    ),
)

TEXTS: Final = (
    _SIZE,
    _text("contains", "contains_string", lambda text, part: part in text),
    _text("endsWith", "ends_with_string", str.endswith),
    _text("startsWith", "starts_with_string", str.startswith),
    Function(
        "matches",
        (
            Overload("matches", (t.STRING, t.STRING), t.BOOL),
            Overload("matches_string", (t.STRING, t.STRING), t.BOOL, is_member=True),
        ),
        matches,
        frozenset({str}),
    ),
)

#: Conversions whose argument, when constant, is converted once at compile time.
CONSTANT_FOLDED: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
