"""Required lists that are empty: null in what is stored and sent, an empty list in structs.

Kubernetes stores no difference between an empty list and null, so `encode_with_nulls` writes null for both.
managedFields are computed before an object is stored, and there a list that was sent empty is a field like any other:
`tree_with_nulls` keeps it apart from an absent one. Both only look at the few places where such lists may stand. Used
by `nodeward.api.codec` and the API server's field manager.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from nodeward.api.fields import NullList, required_lists
from nodeward.api.schema import Schema, Shape, schema_of

#: The struct that holds an empty required list, the name of the list, and the list.
Place: TypeAlias = tuple[msgspec.Struct, str, list[Any]]
Finder: TypeAlias = Callable[[Any, list[Place]], None]

_EMPTY: Final = b":[]"


def encode_with_nulls(obj: msgspec.Struct, encode: Callable[[Any], bytes]) -> bytes:
    """Encode the struct as JSON, with null for each required list that is empty."""
    value = encode(obj)
    if _EMPTY not in value:
        return value
    places = _empty_lists(obj)
    return _with_nulls(obj, places, encode) if places else value


def tree_with_nulls(obj: msgspec.Struct, to_tree: Callable[[Any], Any]) -> Any:
    """Convert the struct to a tree, with null for each required list that is absent."""
    places = [place for place in _empty_lists(obj) if isinstance(place[2], NullList)]
    return _with_nulls(obj, places, to_tree) if places else to_tree(obj)


def _with_nulls(obj: msgspec.Struct, places: list[Place], write: Callable[[Any], Any]) -> Any:
    for holder, name, _ in places:
        setattr(holder, name, None)
    try:
        return write(obj)
    finally:
        for holder, name, value in places:
            setattr(holder, name, value)


def _empty_lists(obj: msgspec.Struct) -> list[Place]:
    found: list[Place] = []
    finder = _finder(type(obj))
    if finder is not None:
        finder(obj, found)
    return found


@functools.cache
def _finder(struct: type[msgspec.Struct]) -> Finder | None:
    """Return the function that finds the empty required lists in a struct; None if it can have none."""
    lists = required_lists(struct)
    schema = schema_of(struct)
    inner = [(info.name, _inside(schema.fields[info.encode_name])) for info in msgspec.structs.fields(struct)]
    steps = [(name, finder) for name, finder in inner if finder is not None]
    if not lists and not steps:
        return None

    def find(holder: Any, found: list[Place]) -> None:
        for name in lists:
            value = getattr(holder, name)
            if not value:
                found.append((holder, name, value))
        for name, finder in steps:
            value = getattr(holder, name)
            if value:
                finder(value, found)

    return find


def _inside(schema: Schema) -> Finder | None:
    if schema.shape is Shape.STRUCT:
        return _finder(schema.python_type)
    if schema.shape not in (Shape.LIST, Shape.MAP) or schema.item is None:
        return None
    finder = _inside(schema.item)
    return None if finder is None else functools.partial(_each, finder)


def _each(finder: Finder, values: Any, found: list[Place]) -> None:
    for value in values.values() if isinstance(values, dict) else values:
        finder(value, found)
