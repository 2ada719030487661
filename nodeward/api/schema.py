"""Struct descriptions compiled into a tree that generic code can walk, field by field.

Takes a struct type; returns a `Schema`. Patches, server-side apply, unknown-field checks and OpenAPI read it; none of
them knows a kind by name. A compiled schema never changes.
"""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Any

import msgspec

from nodeward.api import fields
from nodeward.base.invariant import invariant
from nodeward.base.quantity import Quantity


class Shape(Enum):
    """The form of a value in JSON."""

    SCALAR = "scalar"
    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    #: anything goes, nothing is known
    ANY = "any"


@dataclass(slots=True, eq=False)
class Schema:
    """The description of one value: its form, what is inside, how it merges."""

    shape: Shape
    #: STRUCT: the struct class; SCALAR: str, int, float, bool, bytes, Quantity
    python_type: Any = None
    #: SCALAR: OpenAPI's format ("int32", "date-time", "int-or-string", ...)
    format: str = ""
    #: LIST and MAP: what each item is
    item: Schema | None = None
    #: LIST: the fields that tell items apart (list-type=map)
    list_keys: tuple[str, ...] = ()
    #: LIST: plain values without repeats (list-type=set)
    is_set: bool = False
    #: LIST: the field was a boolean once and may still be one; a boolean is owned as a whole
    is_bool_too: bool = False
    #: STRUCT and MAP: owned and replaced whole
    is_atomic: bool = False
    #: LIST: the key a strategic merge patch merges by, "" for plain values; None: the list is replaced
    merge_key: str | None = None
    #: strategic merge patch: fields the patch does not name are cleared
    retain_keys: bool = False
    #: strategic merge patch: the value is replaced, not merged
    is_replaced: bool = False
    #: STRUCT: said to be owned in parts although its type is atomic
    is_granular: bool = False
    is_required: bool = False
    is_nullable: bool = False
    #: usual values of a string
    values: tuple[str, ...] = ()
    _fields: dict[str, Schema] | None = dataclass_field(default=None, repr=False)

    @property
    def fields(self) -> dict[str, Schema]:
        """The fields of a STRUCT by their JSON name, in the order they are written."""
        if self._fields is None:
            self._fields = _struct_fields(self.python_type)
        return self._fields

    @property
    def is_keyed(self) -> bool:
        """Whether this is a list whose items have an identity of their own."""
        return bool(self.list_keys)


@functools.cache
def schema_of(struct: type[msgspec.Struct]) -> Schema:
    """Return the schema of a struct type."""
    return Schema(Shape.STRUCT, python_type=struct, is_atomic=bool(getattr(struct, "is_atomic", False)))


@functools.cache
def _struct_fields(struct: type[msgspec.Struct]) -> dict[str, Schema]:
    hints = typing.get_type_hints(struct, include_extras=True)
    return {f.encode_name: _compile(hints[f.name]) for f in msgspec.structs.fields(struct)}


_SCALARS: dict[Any, tuple[Any, str]] = {
    str: (str, ""),
    bool: (bool, ""),
    float: (float, "double"),
    bytes: (bytes, "byte"),
    Quantity: (Quantity, "quantity"),
    fields.Int32: (int, "int32"),
    fields.Int64: (int, "int64"),
    fields.Time: (str, "date-time"),
    fields.MicroTime: (str, "micro-time"),
}


def _compile(hint: Any) -> Schema:
    if hint is Any:
        return Schema(Shape.ANY)
    if hint is msgspec.Raw:
        return Schema(Shape.ANY, format="fields")
    if hint in _SCALARS:
        python_type, format_ = _SCALARS[hint]
        return Schema(Shape.SCALAR, python_type=python_type, format=format_)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        base = schema_of(hint)
        return Schema(Shape.STRUCT, python_type=hint, is_atomic=base.is_atomic)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        # Annotated types flatten: what msgspec checks belongs to the type, the rest are our facts.
        checks = tuple(fact for fact in arguments[1:] if isinstance(fact, msgspec.Meta))
        facts = tuple(fact for fact in arguments[1:] if not isinstance(fact, msgspec.Meta))
        inner = typing.Annotated.__class_getitem__((arguments[0], *checks)) if checks else arguments[0]
        return _with_facts(_compile(inner), facts)
    if origin is list:
        return Schema(Shape.LIST, item=_compile(arguments[0]))
    if origin is dict:
        return Schema(Shape.MAP, item=_compile(arguments[1]))
    invariant(origin in (typing.Union, types.UnionType), f"a field cannot be described by {hint!r}")
    return _compile_union(arguments)


def _compile_union(members: tuple[Any, ...]) -> Schema:
    rest = [member for member in members if member is not type(None)]
    is_nullable = len(rest) < len(members)
    if len(rest) == 1:
        schema = _compile(rest[0])
    elif set(rest) == {int, str}:
        schema = Schema(Shape.SCALAR, python_type=object, format="int-or-string")
    else:
        invariant(rest == [bool, list[str]], f"a field cannot be described by {members!r}")
        schema = _compile(rest[1])
        schema.is_set = schema.is_bool_too = True
    schema.is_nullable = is_nullable
    return schema


def _with_facts(schema: Schema, facts: tuple[Any, ...]) -> Schema:
    for fact in facts:
        match fact:
            case fields.Keyed(key):
                schema.list_keys, schema.merge_key = (key,), key
            case fields.ListMap(keys):
                schema.list_keys = keys
            case fields.Merge(key, retain_keys):
                schema.merge_key, schema.retain_keys = key, retain_keys
            case fields.OneOf(values):
                schema.values = values
            case fields.SET:
                schema.is_set = True
            case fields.ATOMIC:
                schema.is_atomic = True
            case fields.GRANULAR:
                schema.is_atomic, schema.is_granular = False, True
            case fields.REPLACE:
                schema.is_replaced = True
            case fields.RETAIN_KEYS:
                schema.retain_keys = True
            case fields.REQUIRED:
                schema.is_required = True
            case _:
                invariant(False, f"unknown fact about a field: {fact!r}")
    return schema
