"""Required lists that are empty: null in what is stored and sent, `[]` in structs and in trees that are compared.

`encode_with_nulls` writes a struct in the form that is stored; `fill_null_lists` turns a stored tree into the form in
which trees are compared. Both first ask a search over the bytes, in C, whether there is anything to do, so that the
many objects without such a list cost nothing. Used by `nodeward.api.codec` and the API server's field ownership.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from nodeward.api.fields import required_lists
from nodeward.api.schema import Schema, Shape, schema_of

_EMPTY, _NULL = rb"\[\]", rb"null"


def encode_with_nulls(obj: msgspec.Struct, encode: Callable[[Any], bytes]) -> bytes:
    """The struct as JSON, with null for each required list that is empty."""
    value = encode(obj)
    pattern = _pattern(type(obj), _EMPTY)
    if pattern is None or pattern.search(value) is None:
        return value
    found = list(_empty_lists(obj))
    for holder, name in found:
        setattr(holder, name, None)
    value = encode(obj)
    for holder, name in found:
        setattr(holder, name, [])
    return value


def fill_null_lists(tree: Any, value: bytes, kind: type[msgspec.Struct]) -> Any:
    """The tree read from `value`, with an empty list, in place, for each required list that is null."""
    pattern = _pattern(kind, _NULL)
    if pattern is not None and pattern.search(value) is not None:
        _fill(tree, schema_of(kind))
    return tree


def _empty_lists(holder: Any) -> Iterator[tuple[msgspec.Struct, str]]:
    if isinstance(holder, list):
        for item in holder:
            yield from _empty_lists(item)
    elif isinstance(holder, dict):
        for item in holder.values():
            yield from _empty_lists(item)
    elif isinstance(holder, msgspec.Struct):
        for name in required_lists(type(holder)):
            if not getattr(holder, name):
                yield holder, name
        for name in holder.__struct_fields__:
            yield from _empty_lists(getattr(holder, name))


def _fill(tree: Any, schema: Schema | None) -> None:
    if schema is None:
        return
    if isinstance(tree, list):
        for item in tree:
            _fill(item, schema.item)
    elif isinstance(tree, dict) and schema.shape is Shape.MAP:
        for item in tree.values():
            _fill(item, schema.item)
    elif isinstance(tree, dict) and schema.shape is Shape.STRUCT:
        for name in _json_names(schema.python_type):
            if name in tree and tree[name] is None:
                tree[name] = []
        for name, value in tree.items():
            _fill(value, schema.fields.get(name))


@functools.cache
def _json_names(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    wanted = required_lists(struct)
    return tuple(info.encode_name for info in msgspec.structs.fields(struct) if info.name in wanted)


@functools.cache
def _pattern(kind: type[msgspec.Struct], value: bytes) -> re.Pattern[bytes] | None:
    """What finds a required list of this value in the JSON of a kind; None if the kind has no such list."""
    names = sorted(_names_below(schema_of(kind), set()))
    if not names:
        return None
    return re.compile(b'"(?:' + b"|".join(name.encode() for name in names) + b')":' + value)


def _names_below(schema: Schema | None, seen: set[type]) -> set[str]:
    if schema is None or schema.python_type in seen:
        return set()
    if schema.shape in (Shape.LIST, Shape.MAP):
        return _names_below(schema.item, seen)
    if schema.shape is not Shape.STRUCT:
        return set()
    seen.add(schema.python_type)
    below = (_names_below(inner, seen) for inner in schema.fields.values())
    return set(_json_names(schema.python_type)).union(*below)
