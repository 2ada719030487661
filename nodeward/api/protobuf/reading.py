"""Converts a protobuf body to JSON, so that the rest of the server knows only one form.

Called by `apiserver/negotiation.py` with what a Go client sends as `application/vnd.kubernetes.protobuf`: four bytes of
magic, an envelope that names version and kind, and in it the object. Returns the tree the same client would have sent
as JSON, but for empty values, which Go writes in protobuf and leaves out in JSON, and which mean the same.

What must stay true: bytes that cannot be read raise `ProtobufError` and nothing else; unknown fields are skipped (a
newer client may know more than we do). The depth of nesting is that of our own types, none of which contains itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from nodeward.api.fields import KubeTop
from nodeward.api.meta import DeleteOptions
from nodeward.api.protobuf.leaves import BYTES, STRING, Leaf, small
from nodeward.api.protobuf.messages import JsonPlace, Message, WireField, message_of
from nodeward.api.protobuf.wire import LENGTH, VARINT, ProtobufError, values, varints
from nodeward.api.scheme import SCHEME

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"
_TYPE_META: Final = {1: STRING, 2: STRING}
_ENVELOPE: Final = {1: BYTES, 2: BYTES, 3: STRING, 4: STRING}


def read_envelope(body: bytes) -> tuple[str, str, dict[str, Any]]:
    """Return version, kind, and the object as a tree; raises `ProtobufError`."""
    if not body.startswith(_MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    envelope = small(body[len(_MAGIC) :], _ENVELOPE)
    names = small(envelope.get(1, b""), _TYPE_META)
    api_version, kind = names.get(1, ""), names.get(2, "")
    encoding, media = envelope.get(3, ""), envelope.get(4, "")
    if encoding or media not in ("", MEDIA_TYPE):
        raise ProtobufError(f'content of type "{media}", encoded as "{encoding}", cannot be read')
    tree: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
    _read(_message(api_version, kind), envelope.get(2, b""), tree)
    return api_version, kind, tree


def protobuf_to_json(body: bytes) -> bytes:
    """Return the object as JSON; raises `ProtobufError`."""
    return msgspec.json.encode(read_envelope(body)[2])


def _message(api_version: str, kind: str) -> Message:
    if kind == "DeleteOptions":  # is the same in every version of every group
        return message_of(DeleteOptions)
    type_ = _types().get((api_version, kind))
    if type_ is None:
        raise ProtobufError(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "nodeward"'
        )
    return message_of(type_)


@functools.cache
def _types() -> dict[tuple[str, str], type[KubeTop]]:
    """Return the types that may be sent: objects, and bodies of their subresources."""
    types = {(kind.api_version, kind.name): kind.type for kind in SCHEME.kinds}
    for kind in SCHEME.kinds:
        for sub in kind.subresources:
            if sub.type is not None:
                version = f"{sub.group}/{sub.version}" if sub.group else kind.api_version
                types[version, sub.kind] = sub.type
    return types


def _read(message: Message, data: bytes, tree: dict[str, Any]) -> dict[str, Any]:
    """Put the message's fields into `tree`: a repeated message is merged, of repeated plain values the last counts."""
    for number, wire, value in values(data):
        field = message.fields.get(number)
        if field is None:
            continue
        name, inside = field.name, field.inside
        if wire != inside.wire:
            parts = _packed(message, field, wire, value)  # first: refused unless it is a list
            tree.setdefault(name, []).extend(parts)
        elif field.place is JsonPlace.ITEM:
            tree.setdefault(name, []).append(_value(inside, value))
        elif field.place is JsonPlace.ENTRY:
            _put_entry(inside, value, tree.setdefault(name, {}))
        elif isinstance(inside, Message):
            _read(inside, value, tree if field.place is JsonPlace.HERE else tree.setdefault(name, {}))
        elif (plain := inside.read(value)) is not None:
            tree[name] = plain
        else:
            tree.pop(name, None)
    return tree


def _value(inside: Message | Leaf, value: Any) -> Any:
    return inside.read(value) if isinstance(inside, Leaf) else _read(inside, value, {})


def _packed(message: Message, field: WireField, wire: int, value: Any) -> Iterator[Any]:
    """Read a list of numbers, which may be packed; other values must have their own wire type."""
    if not (wire == LENGTH and field.place is JsonPlace.ITEM and field.inside.wire == VARINT):
        raise ProtobufError(f"{message.name}.{field.name} has wire type {wire}, not {field.inside.wire}")
    return (_value(field.inside, part) for part in varints(value))


def _put_entry(inside: Message | Leaf, data: bytes, entries: dict[str, Any]) -> None:
    """Put a map entry into the tree: a message in which 1 is the key, 2 the value, and either may be left out."""
    key, value = "", inside.zero
    for number, wire, part in values(data):
        if number not in (1, 2):
            continue
        wanted = LENGTH if number == 1 else inside.wire
        if wire != wanted:
            raise ProtobufError(f"field {number} of a map entry has wire type {wire}, not {wanted}")
        if number == 1:
            key = STRING.read(part)
        else:
            value = part
    entries[key] = _value(inside, value)
