"""What each struct looks like on the wire: its field numbers, and what is behind each.

The struct descriptions say what a field is; `numbers.txt` says which number it has in Kubernetes' messages. Both
together make a `Message`, compiled when it is first asked for and never changed. What has no number (a kind of our own
making) cannot be sent, and is not there.
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


class Place(Enum):
    """Where a value goes in JSON."""

    FIELD = "field"
    ITEM = "item of a list"
    ENTRY = "entry of a map"
    #: the fields of the message stand among those of the one around it
    HERE = "here"


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What stands behind a field number."""

    name: str
    place: Place
    inside: Message | Leaf


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A struct on the wire."""

    name: str
    fields: dict[int, Field]
    wire: ClassVar[int] = LENGTH
    zero: ClassVar[bytes] = b""


@functools.cache
def message_of(struct: type[msgspec.Struct]) -> Message:
    """The message a struct is sent as."""
    package = struct.__module__.removeprefix("nodeward.api.").partition(".")[0]
    return _message(f"{package}.{struct.__name__}", struct)


def _message(name: str, struct: type[msgspec.Struct]) -> Message:
    """`name` is the struct's own message, or one that is inlined in it."""
    schema = schema_of(struct)
    fields: dict[int, Field] = {}
    for number, key in _numbers().get(name, {}).items():
        if key.startswith("+"):
            fields[number] = Field(key[1:], Place.HERE, _message(key[1:], struct))
        elif key.endswith("[]"):
            fields[number] = Field(key[:-2], Place.ITEM, STRING)
        else:
            fields[number] = _field(key, schema.fields[key])
    return Message(name, fields)


def _field(name: str, schema: Schema) -> Field:
    if schema.shape is Shape.LIST and schema.item is not None:
        return Field(name, Place.ITEM, _inside(schema.item))
    if schema.shape is Shape.MAP and schema.item is not None:
        if schema.item.shape is Shape.ANY:  # a struct that has no fields yet
            return Field(name, Place.FIELD, Message(name, {}))
        return Field(name, Place.ENTRY, _inside(schema.item))
    return Field(name, Place.FIELD, _inside(schema))


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
    """`numbers.txt`: message, field number, JSON name."""
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
