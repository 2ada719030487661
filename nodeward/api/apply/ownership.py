"""How a schema divides a tree into fields that can be owned: leaves, fields of an object, items of a list.

Scalars, values of unknown form and everything atomic are leaves. Other objects are divided by field, keyed lists by the
keys of their items, sets by value. All of `nodeward.api.apply` uses these functions, so that the fast and the slow
implementation divide alike.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from nodeward.api.apply.path_element import key_element, value_element
from nodeward.api.null_lists import tree_with_nulls
from nodeward.api.schema import Schema, Shape
from nodeward.base.errors import NodewardError

#: Key fields that OpenAPI gives a value for when they are not written, beside those that are always written.
_KEY_DEFAULTS: dict[tuple[str, str], Any] = {
    ("ContainerPort", "protocol"): "TCP",
    ("ServicePort", "protocol"): "TCP",
    ("LocalObjectReference", "name"): "",
}


class NotIdentifiable(NodewardError, ValueError):
    """A list item cannot be distinguished from its neighbours; the message says why."""


def is_leaf(schema: Schema) -> bool:
    """Tell whether a value is owned as a whole."""
    match schema.shape:
        case Shape.STRUCT | Shape.MAP:
            return schema.is_atomic
        case Shape.LIST:
            return not (schema.list_keys or schema.is_set)
        case _:
            return True


def is_whole(schema: Schema, *values: Any) -> bool:
    """Tell whether one of these values is owned as a whole: also a boolean where lists are owned by item."""
    return is_leaf(schema) or (schema.is_bool_too and any(isinstance(value, bool) for value in values))


def is_divided_by_field(schema: Schema) -> bool:
    """Tell whether a value is owned field by field."""
    return schema.shape in (Shape.STRUCT, Shape.MAP) and not schema.is_atomic


def field_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field of a struct or an entry of a map; None: there is no such field."""
    return schema.fields.get(name) if schema.shape is Shape.STRUCT else schema.item


def is_declared(schema: Schema, name: str) -> bool:
    """Tell whether this is a field of a struct, not an entry of a map."""
    return schema.shape is Shape.STRUCT and name in schema.fields


@functools.cache
def empty_tree(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the tree of an empty object of this type: the fields that are always written."""
    tree: dict[str, Any] = tree_with_nulls(struct(), lambda empty: msgspec.to_builtins(empty, enc_hook=str))
    return tree


@functools.cache
def key_defaults(schema: Schema) -> dict[str, Any]:
    """Return the key fields of a keyed list, with the default of each; absent: none."""
    item = schema.item
    if item is None or item.shape is not Shape.STRUCT:
        return {}
    written = empty_tree(item.python_type)
    defaults: dict[str, Any] = {}
    for name in schema.list_keys:
        known = (item.python_type.__name__, name)
        if known in _KEY_DEFAULTS:
            defaults[name] = _KEY_DEFAULTS[known]
        elif name in written:
            defaults[name] = written[name]
    return defaults


def item_keys(schema: Schema, item: Any) -> dict[str, Any]:
    """Return the key fields of one item of a keyed list."""
    if item is None:
        raise NotIdentifiable("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NotIdentifiable("associative list with keys may not have non-map elements")
    defaults = key_defaults(schema)
    keys = {}
    for name in schema.list_keys:
        if name in item:
            keys[name] = item[name]
        elif name in defaults:
            keys[name] = defaults[name]
    if not keys:
        named = " ".join(f'"{name}"' for name in schema.list_keys)
        raise NotIdentifiable(
            f"associative list with keys has an element that omits all key fields [{named}] "
            "(and doesn't have default values for any key fields)"
        )
    return keys


def item_element(schema: Schema, item: Any) -> str:
    """Return the path element of one item of a keyed list or a set."""
    if schema.list_keys:
        return key_element(item_keys(schema, item))
    match item:
        case dict():
            raise NotIdentifiable("associative list without keys has an element that's a map type")
        case list():
            raise NotIdentifiable("not supported: associative list with lists as elements")
        case None:
            raise NotIdentifiable("associative list without keys has an element that's an explicit null")
        case _:
            return value_element(item)


def items_by_element(schema: Schema, items: list[Any] | None) -> dict[str, list[Any]]:
    """Return the items of a list by their element; an invalid list may have several under one."""
    found: dict[str, list[Any]] = {}
    for item in items or ():
        found.setdefault(item_element(schema, item), []).append(item)
    return found
