"""What a call cost, known its arguments and result.

Called by `tracking.py` after every call. The counterpart of `call_estimates.py` and of the standard rules in
`estimate.py`. An argument may be an error; its size is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from nodeward.cel.cel_types import BYTES, STRING
from nodeward.cel.library.named_formats import NamedFormat
from nodeward.cel.ranges import LIST_COST, REGEX, TRAVERSAL
from nodeward.cel.values import CelMap, ExtensionValue, OptionalValue, Value, find_key, size_of, type_of_value

_Rule: TypeAlias = Callable[[str, list[Value], Value], int | None]


def cost_of_call(function: str, overload: str, arguments: list[Value], result: Value) -> int:
    """Return the cost of a call without its arguments."""
    if (rule := _OVERLOADS.get(overload)) is not None and (
        found := rule(overload, arguments, result)
    ) is not None:
        return found
    if (rule := _FUNCTIONS.get(function)) is not None and (
        found := rule(overload, arguments, result)
    ) is not None:
        return found
    standard = _STANDARD.get(overload)
    return 1 if standard is None else standard(arguments)


#: Overloads whose work may be much and whose cost does not depend on the result: they are not begun beyond the limit.
CHARGED_AHEAD: Final = frozenset({
    "list_distinct", "list_sets_contains_list", "list_sets_intersects_list", "list_sets_equivalent_list", "matches",
    "matches_string", "string_find_string", "string_find_all_string", "string_find_all_string_int",
})  # fmt: skip


def _read(size: int, factor: float = TRAVERSAL) -> int:
    return math.ceil(float(size) * factor)


def _traversal(value: Value) -> int:
    if isinstance(value, str):
        return int(float(len(value.encode())) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(float(len(value)) * TRAVERSAL)
    if isinstance(value, list | tuple):
        return sum(_traversal(each) for each in value)
    if isinstance(value, dict | CelMap):
        return sum(_traversal(key) + _traversal(find_key(value, key)[0]) for key in value)
    return 1


def _traverse_first(_overload: str, arguments: list[Value], _result: Value) -> int:
    return _traversal(arguments[0]) if arguments else 0


def _read_first(factor: float) -> _Rule:
    def rule(_overload: str, arguments: list[Value], _result: Value) -> int | None:
        return _read(size_of(arguments[0]), factor) if arguments else None

    return rule


def _join(_overload: str, _arguments: list[Value], result: Value) -> int:
    return _read(size_of(result), 2 * TRAVERSAL)


def _find(_overload: str, arguments: list[Value], _result: Value) -> int:
    return _matches([arguments[0], arguments[1]])


def _ip(overload: str, arguments: list[Value], _result: Value) -> int:
    return 1 if overload == "cidr_ip" else _read(size_of(arguments[0]))


def _fixed(_overload: str, _arguments: list[Value], _result: Value) -> int:
    return 1


def _contains_ip(overload: str, arguments: list[Value], _result: Value) -> int:
    mine = size_of(arguments[0])
    parsing = _read(size_of(arguments[1])) if overload == "cidr_contains_ip_string" else 0
    return _read(2 * mine) + parsing


def _contains_cidr(overload: str, arguments: list[Value], _result: Value) -> int:
    mine = size_of(arguments[0])
    parsing = _read(size_of(arguments[1])) if overload == "cidr_contains_cidr_string" else 0
    return _read(2 * mine) + _read(mine) + 1 + parsing


def _validate(_overload: str, arguments: list[Value], _result: Value) -> int | None:
    form = arguments[0]
    if not isinstance(form, NamedFormat):
        return None
    return math.ceil((1.0 + size_of(arguments[1])) * TRAVERSAL) * _read(form.regex_size, REGEX)


def _equals(_overload: str, arguments: list[Value], _result: Value) -> int | None:
    return 1 if isinstance(arguments[0], ExtensionValue) else None


# --- lists and sets


def _new_list(factor: float, size: int) -> int:
    return int(float(size) * (1.0 if factor < 0 else factor)) + 1 + LIST_COST


def _output(_overload: str, _arguments: list[Value], result: Value) -> int:
    return _new_list(1, size_of(result))


def _flatten(_overload: str, arguments: list[Value], _result: Value) -> int:
    depth = float(arguments[1]) if len(arguments) == 2 and type(arguments[1]) is int else 1.0
    return _new_list(depth, size_of(arguments[0]))


def _compare_all(index: int) -> _Rule:
    def rule(_overload: str, arguments: list[Value], _result: Value) -> int | None:
        items = arguments[index]
        if not isinstance(items, list | tuple):
            return None
        factor = 2.0
        if items and type_of_value(items[0]) in (STRING, BYTES):
            factor += TRAVERSAL
        return _new_list(factor, len(items) ** 2)

    return rule


def _sets(factor: float) -> _Rule:
    def rule(_overload: str, arguments: list[Value], _result: Value) -> int:
        return 1 + int(float(size_of(arguments[0]) * size_of(arguments[1])) * factor)

    return rule


_KINDS: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
_OVERLOADS: Final[dict[str, _Rule]] = {
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": _compare_all(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{kind}_sort": _compare_all(0) for kind in _KINDS},
    **{f"list_{kind}_sortByAssociatedKeys": _compare_all(1) for kind in _KINDS},
}
_FUNCTIONS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traverse_first),
    **dict.fromkeys(
        (
            "url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "quantity", "isQuantity",
            "semver", "isSemver",
        ),
        _read_first(TRAVERSAL),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _read_first(2 * TRAVERSAL)),
    **dict.fromkeys(
        (
            "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
            "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger",
            "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch",
            "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason",
            "error", "errored", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",
        ),
        _fixed,
    ),
    "check": lambda _overload, _arguments, _result: 350_000,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "ip": _ip,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}  # fmt: skip


# --- the standard functions


def _size(value: Value) -> int:
    if isinstance(value, OptionalValue) and value.has_value:
        return _size(value.value)
    return size_of(value)


def _matches(arguments: list[Value]) -> int:
    return math.ceil((1.0 + _size(arguments[0])) * TRAVERSAL) * _read(_size(arguments[1]), REGEX)


def _compare(arguments: list[Value]) -> int:
    return _read(min(_size(arguments[0]), _size(arguments[1])))


def _concatenate(arguments: list[Value]) -> int:
    return _read(_size(arguments[0]) + _size(arguments[1]))


_STANDARD: Final[dict[str, Callable[[list[Value]], int]]] = {
    "starts_with_string": lambda arguments: _read(_size(arguments[1])),
    "ends_with_string": lambda arguments: _read(_size(arguments[1])),
    "string_to_bytes": lambda arguments: _read(_size(arguments[0])),
    "bytes_to_string": lambda arguments: _read(_size(arguments[0])),
    "strings_quote": lambda arguments: _read(_size(arguments[0])),
    "string_format": lambda arguments: _read(_size(arguments[0])),
    "in_list": lambda arguments: _size(arguments[1]),
    "equals": _compare,
    "not_equals": _compare,
    "add_string": _concatenate,
    "add_bytes": _concatenate,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": lambda arguments: _read(_size(arguments[0])) * _read(_size(arguments[1])),
    **{
        f"{word}_{kind}": _compare
        for word in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    },
}
