"""Members of values: `a.b`, `a[b]`, `a.?b`, `has(a.b)`.

Called by both planners. A map gives the value of a key, a list the item at an index; an optional passes the question on
to what it holds.
"""

from __future__ import annotations

from nodeward.cel.cel_types import CelType
from nodeward.cel.conversions import show
from nodeward.cel.values import (
    NONE,
    CelMap,
    EvaluationError,
    OptionalValue,
    Uint,
    Value,
    find_key,
    type_of_value,
)

#: What Go calls the Python types, for messages that print them.
_GO_TYPES = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    OptionalValue: "*types.Optional",
    CelType: "*types.Type",
    CelMap: "*types.baseMap",
    dict: "*types.baseMap",
    list: "*types.baseList",
}


def go_type(value: Value) -> str:
    """Return Go's name of the value's type."""
    found = _GO_TYPES.get(type(value))
    if found is not None:
        return found
    name = type_of_value(value).name
    package = "types" if name.startswith("google") else "cel"
    return f"{package}.{name.rpartition('.')[2].replace('NamedFormat', 'Format')}"


_KEYS = frozenset({str, int, Uint, bool, float})


def check_key(key: Value) -> Value:
    """Return a computed key; raises EvaluationError when nothing can have it."""
    if type(key) not in _KEYS:
        raise EvaluationError(f"invalid qualifier type: {go_type(key)}")
    return key


def missing_key(key: Value) -> EvaluationError:
    return EvaluationError(f"no such key: {show(key)}")


def member(value: Value, key: Value) -> Value:
    """Return `value[key]`; raises EvaluationError when there is none."""
    if type(value) is OptionalValue:
        if not value.has_value:
            return value
        found, is_there = member_if_present(value.value, key)
        return OptionalValue(found) if is_there else NONE
    return plain_member(value, key)


def plain_member(value: Value, key: Value) -> Value:
    """Return `value[key]` of a list or map."""
    if isinstance(value, list | tuple):
        index = _index(key)
        if 0 <= index < len(value):
            return value[index]
        raise EvaluationError(f"index out of bounds: {show(key)}")
    if isinstance(value, dict | CelMap):
        found, is_there = find_key(value, key)
        if is_there:
            return found
    raise missing_key(key)


def member_if_present(value: Value, key: Value) -> tuple[Value, bool]:
    """Return `value[key]` and whether it is there; values without members have none."""
    if isinstance(value, dict | CelMap):
        return find_key(value, key)
    if isinstance(value, list | tuple):
        index = _index(key)
        if 0 <= index < len(value):
            return value[index], True
    return None, False


def optional_member(value: Value, key: Value) -> OptionalValue:
    """Return `value.?key`."""
    if type(value) is OptionalValue:
        if not value.has_value:
            return NONE
        value = value.value
    found, is_there = member_if_present(value, key)
    return OptionalValue(found) if is_there else NONE


def has_member(value: Value, key: str) -> bool:
    """Return `has(value.key)`."""
    if type(value) is OptionalValue:
        return value.has_value and member_if_present(value.value, key)[1]
    return member_if_present(value, key)[1]


def _index(key: Value) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        if key < 2**63:
            return int(key)
    elif kind is float:
        if key.is_integer() and -(2.0**63) <= key < 2.0**63:
            return int(key)
    else:
        raise EvaluationError(f"unsupported index type '{type_of_value(key)}' in list")
    raise EvaluationError(f"unsupported index value {show(key)} in list")
