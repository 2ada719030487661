"""The protobuf messages of the struct types: field numbers, and the type behind each. Called by `reading.py`.

The struct descriptions say what a field is; `numbers.txt` says which number it has in Kubernetes' messages. Both
together make a `Message`, compiled when first needed and never changed. A type without numbers (a kind of our own)
cannot be sent as protobuf.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from typing import ClassVar

import msgspec

from nodeward.api.protobuf.leaves import BY_FORMAT, BY_TYPE, JSON, STRING, STRINGS, Leaf
from nodeward.api.protobuf.wire import LENGTH
from nodeward.api.schema import Schema, Shape, schema_of


class JsonPlace(Enum):
    """Where a value goes in JSON."""

    FIELD = "field"
    ITEM = "item of a list"
    ENTRY = "entry of a map"
    #: the fields of the message stand among those of the one around it
    HERE = "here"


@dataclass(frozen=True, slots=True, eq=False)
class WireField:
    """The field behind a field number."""

    name: str
    place: JsonPlace
    inside: Message | Leaf


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """The protobuf message of a struct."""

    name: str
    fields: dict[int, WireField]
    wire: ClassVar[int] = LENGTH
    zero: ClassVar[bytes] = b""


@functools.cache
def message_of(struct: type[msgspec.Struct]) -> Message:
    """Return the message of a struct."""
    package = struct.__module__.removeprefix("nodeward.api.").partition(".")[0]
    return _message(f"{package}.{struct.__name__}", struct)


def _message(name: str, struct: type[msgspec.Struct]) -> Message:
    """Compile a message. `name` is the struct's own message, or one that is inlined in it."""
    schema = schema_of(struct)
    fields: dict[int, WireField] = {}
    for number, key in _numbers().get(name, {}).items():
        if key.startswith("+"):
            fields[number] = WireField(key[1:], JsonPlace.HERE, _message(key[1:], struct))
        elif key.endswith("[]"):
            fields[number] = WireField(key[:-2], JsonPlace.ITEM, STRING)
        else:
            fields[number] = _field(key, schema.fields[key])
    return Message(name, fields)


def _field(name: str, schema: Schema) -> WireField:
    if schema.shape is Shape.LIST and schema.item is not None:
        return WireField(name, JsonPlace.ITEM, _inside(schema.item))
    if schema.shape is Shape.MAP and schema.item is not None:
        if schema.item.shape is Shape.ANY:  # a struct that has no fields yet
            return WireField(name, JsonPlace.FIELD, Message(name, {}))
        return WireField(name, JsonPlace.ENTRY, _inside(schema.item))
    return WireField(name, JsonPlace.FIELD, _inside(schema))


def _inside(schema: Schema) -> Message | Leaf:
    match schema.shape:
        case Shape.STRUCT:
            return message_of(schema.python_type)
        case Shape.ANY:
            return JSON
        case Shape.LIST:  # only ever of strings, in a map
            return STRINGS
        case _:
            return BY_FORMAT[schema.format] if schema.format else BY_TYPE[schema.python_type]


@functools.cache
def _numbers() -> dict[str, dict[int, str]]:
    """Read `numbers.txt`: message, field number, JSON name."""
    source = resources.files(__package__).joinpath("numbers.txt").read_text(encoding="utf-8")
    messages: dict[str, dict[int, str]] = {}
    fields: dict[int, str] = {}
    for line in source.splitlines():
        if line.startswith("#"):
            continue
        for word in line.split():
            number, is_field, name = word.partition("=")
            if is_field:
                fields[int(number)] = name
            else:
                fields = messages.setdefault(word, {})
    return messages
