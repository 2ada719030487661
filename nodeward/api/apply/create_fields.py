"""The managed fields of a new object, written straight from its tree.

This runs on every create, so it makes no sets: the schema is compiled into writers that join text snippets. Objects of
a kind tend to have the same fields, so each writer caches, per combination of names, the finished text with gaps for
what differs; and the text of a whole `spec`, or of its containers, is cached for the next object that has the same, as
replicas have. The result is byte for byte the encoding of `compare(empty object, tree)`: what the tree sets beyond an
empty object of the kind.

Caches are bounded: a client that invents names clears a writer's cache, and never makes it grow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from nodeward.api.apply.field_set import Path, encode, from_paths, recursive_difference
from nodeward.api.apply.ownership import (
    empty_tree,
    field_schema,
    is_divided_by_field,
    is_leaf,
    is_whole,
    item_element,
    key_defaults,
)
from nodeward.api.apply.path_element import order
from nodeward.api.apply.walk import whole
from nodeward.api.schema import Schema, Shape

#: How many combinations of names, and how many list items, a writer remembers.
_REMEMBERED = 1024
#: Objects with more fields, and items with longer names, are not remembered.
_MOST_NAMES, _LONGEST_NAME = 64, 8
#: How many whole specs are remembered, and how long one may be in JSON.
_REMEMBERED_SPECS, _LONGEST_SPEC = 512, 8192
#: A key field that is not there; no value in JSON equals it.
_MISSING = object()

#: From a value to the text of its node in the field set.
Writer: TypeAlias = Callable[[Any], str]
_Names: TypeAlias = tuple[str, ...]


def fields_v1_bytes(tree: dict[str, Any], schema: Schema, strip: tuple[Path, ...] = ()) -> bytes:
    """Return `fieldsV1` of a new object; fields at or below the `strip` paths are not owned.

    `b"{}"` when the tree has nothing that could be owned.
    """
    return ("{" + _compiled(schema, strip)(tree) + "}").encode()


@functools.cache
def _compiled(schema: Schema, strip: tuple[Path, ...]) -> Writer:
    return _fields_beyond(schema, empty_tree(schema.python_type), strip, is_top=True)


@functools.cache
def _writer(schema: Schema) -> Writer | None:
    """Make the writer of a value that is new with everything in it; None: its text is always `{}`."""
    if is_leaf(schema):
        return None
    return _fields_writer(schema) if is_divided_by_field(schema) else _list_writer(schema)


def _remember(known: dict[Any, Any], key: Any, value: Any, size: int) -> None:
    """Keep a result for the next time, unless it is large: what is kept must not fill the memory."""
    if size > _MOST_NAMES:
        return
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value


def _snippet(element: str) -> str:
    return msgspec.json.encode(element).decode() + ":"


def _fields_writer(schema: Schema) -> Writer:
    """Make the writer of an object that is owned field by field."""
    # For names seen together: the text, and for its gaps who fills them from which field.
    known: dict[_Names, tuple[str, list[tuple[str, Writer]]]] = {}
    recall = known.get

    def learn(names: _Names) -> tuple[str, list[tuple[str, Writer]]]:
        parts = ['".":{}']
        gaps: list[tuple[str, Writer]] = []
        for name in sorted(names):
            inner = field_schema(schema, name)
            if inner is None:
                continue
            if inside := _writer(inner):
                parts.append(_snippet("f:" + name) + "\0")
                gaps.append((name, inside))
            else:
                parts.append(_snippet("f:" + name) + "{}")
        text = "{" + ",".join(parts) + "}" if len(parts) > 1 else "{}"
        if gaps:
            text = text.replace("%", "%%").replace("\0", "%s")
        _remember(known, names, (text, gaps), len(names))
        return text, gaps

    def write(value: Any) -> str:
        if not value:
            return "{}"
        names = tuple(value)
        text, gaps = recall(names) or learn(names)
        if not gaps:
            return text
        if len(gaps) == 1:
            name, inside = gaps[0]
            return text % inside(value[name])
        return text % tuple([inside(value[name]) for name, inside in gaps])

    return write


def _list_writer(schema: Schema) -> Writer:
    """Make the writer of a keyed list or a set that is new itself."""
    items = _items_writer(schema)
    return lambda value: '{".":{},' + items(value) + "}" if value and not is_whole(schema, value) else "{}"


def _items_writer(schema: Schema) -> Writer:
    """Make the writer of the items of a keyed list or a set, which must not be empty."""
    keys = schema.list_keys
    key = keys[0] if len(keys) == 1 else ""
    defaults = {name: key_defaults(schema).get(name, _MISSING) for name in keys}
    default = defaults.get(key)
    inside = _writer(schema.item) if schema.item is not None else None
    # For what tells an item apart: how it sorts, how it is written.
    known: dict[Any, tuple[Any, str]] = {}
    recall = known.get

    def learn(identity: Any, item: Any) -> tuple[Any, str]:
        element = item_element(schema, item)
        place = order(element), _snippet(element)
        _remember(known, identity, place, len(element) // _LONGEST_NAME)
        return place

    def placed(item: Any) -> tuple[Any, str]:
        if key:
            identity = item.get(key, default)
        elif keys:
            identity = tuple([item.get(name, defaults[name]) for name in keys])
        else:
            identity = item
        return recall(identity) or learn(identity, item)

    def write(value: Any) -> str:
        if len(value) == 1:
            item = value[0]
            return placed(item)[1] + ("{}" if inside is None else inside(item))
        found: dict[tuple[Any, str], str] = {}
        for item in value:
            place = placed(item)
            found[place] = "{}" if inside is None or place in found else inside(item)
        return ",".join([place[1] + found[place] for place in sorted(found)])

    return write


def _fields_beyond(
    schema: Schema, always: dict[str, Any], strip: tuple[Path, ...], is_top: bool = False
) -> Writer:
    """Make the writer of the fields an object has beyond an empty object of its type."""
    # For names seen together: parts of the text, and for parts that may be missing who writes them.
    known: dict[_Names, list[tuple[str, str, Writer | None]]] = {}

    def learn(names: _Names) -> list[tuple[str, str, Writer | None]]:
        parts: list[tuple[str, str, Writer | None]] = []
        for name in sorted(names):
            inner = field_schema(schema, name)
            element = "f:" + name
            below = tuple(path[1:] for path in strip if path[0] == element)
            if inner is None or () in below:
                continue
            if name in always:
                inside = _beyond(inner, always[name], below)
                is_large = is_top and name != "metadata" and not is_leaf(inner)
                parts.append((_snippet(element), name, _remembering(inside) if is_large else inside))
            elif below:
                parts.append((_snippet(element), name, _stripped(inner, below)))
            elif new := _writer(inner):
                parts.append((_snippet(element), name, _remembering(new) if _is_large(inner) else new))
            elif parts and parts[-1][2] is None:
                parts[-1] = (f"{parts[-1][0]},{_snippet(element)}{{}}", name, None)
            else:
                parts.append((_snippet(element) + "{}", name, None))
        _remember(known, names, parts, len(names))
        return parts

    def write(value: Any) -> str:
        if not value:
            return ""
        names = tuple(value)
        parts = known.get(names)
        if parts is None:
            parts = learn(names)
        written = []
        for snippet, name, inside in parts:
            if inside is None:
                written.append(snippet)
            elif text := inside(value[name]):
                written.append(snippet + text)
        return ",".join(written)

    return write


def _beyond(schema: Schema, always: Any, strip: tuple[Path, ...]) -> Writer:
    """Make the writer of a field that every object has: nothing, if its value is that of an empty object."""
    if is_leaf(schema):
        return lambda value: "" if value == always else "{}"
    if schema.shape is Shape.LIST:
        items = _remembering(_items_writer(schema)) if _is_large(schema) else _items_writer(schema)
        return lambda value: "{" + items(value) + "}" if value else ("" if value == always else "{}")
    fields = _fields_beyond(schema, always or {}, strip)

    def write(value: Any) -> str:
        if not value and not always:
            # Two empty values differ only if one is null and the other is not.
            return "" if value == always else "{}"
        text = fields(value)
        return "{" + text + "}" if text else ""

    return write


def _stripped(schema: Schema, strip: tuple[Path, ...]) -> Writer:
    """Make the writer of a new value, without what lies below the `strip` paths."""
    taken = from_paths(*((".new", *path) for path in strip))

    def write(value: Any) -> str:
        left = recursive_difference({".new": whole(value, schema)}, taken)
        return encode(left[".new"]).decode()

    return write


def _is_large(schema: Schema) -> bool:
    """Tell whether this is a list of structs that are owned field by field: containers, volumes."""
    return schema.shape is Shape.LIST and schema.item is not None and not is_leaf(schema.item)


def _remembering(inside: Writer) -> Writer:
    """Make a writer that caches the text of large values that occur again and again, by their JSON."""
    known: dict[bytes, str] = {}

    def write(value: Any) -> str:
        content = msgspec.json.encode(value)
        text = known.get(content)
        if text is None:
            text = inside(value)
            if len(content) <= _LONGEST_SPEC:
                if len(known) >= _REMEMBERED_SPECS:
                    known.clear()
                known[content] = text
        return text

    return write
