"""Protobuf's wire format: the bytes of a message as numbered values, whatever the message is.

Takes one message; returns `(field number, wire type, value)` in the order they stand: a number for VARINT, bytes for
all others. Nested messages are bytes here; `reading` knows what is inside.

What must stay true: whatever the bytes, the only exception is `ProtobufError`, and the work is proportional to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nodeward.base.errors import NodewardError

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

_FIXED: Final = {FIXED64: 8, FIXED32: 4}
_LAST_NUMBER: Final = 2**29 - 1
#: How deep groups may nest. Nobody has sent one in this century, but they are part of the format.
_DEEPEST_GROUP: Final = 100


class ProtobufError(NodewardError, ValueError):
    """The bytes are not valid protobuf; the text says why."""


def values(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Iterate over the values in one message. A group is skipped and yields no bytes."""
    at, end = 0, len(data)
    while at < end:
        number, wire, at = _tag(data, at)
        if wire == LENGTH:
            size, at = _varint(data, at)
            stop = at + size
            if stop > end:
                raise ProtobufError(f"field {number} should have {size} bytes, but only {end - at} are left")
            yield number, wire, data[at:stop]
            at = stop
        elif wire == VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
        elif wire in _FIXED:
            start, at = at, _after_fixed(data, at, _FIXED[wire])
            yield number, wire, data[start:at]
        elif wire == START_GROUP:
            at = _after_group(data, at, number)
            yield number, wire, b""
        else:
            raise ProtobufError(f"the group {number} ends without having started")


def varints(data: bytes) -> Iterator[int]:
    """Return the numbers of a packed list."""
    at, end = 0, len(data)
    while at < end:
        value, at = _varint(data, at)
        yield value


def _tag(data: bytes, at: int) -> tuple[int, int, int]:
    """Return field number, wire type, and where the value starts."""
    tag, at = _varint(data, at)
    number, wire = tag >> 3, tag & 7
    if not 0 < number <= _LAST_NUMBER:
        raise ProtobufError(f"{number} is not a field number")
    if wire > FIXED32:
        raise ProtobufError(f"field {number} has wire type {wire}, which does not exist")
    return number, wire, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint: seven bits per byte, the lowest first; bits above 64 are ignored."""
    if at < len(data) and data[at] < 0x80:  # nearly all are tags and lengths of one byte
        return data[at], at + 1
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + shift // 7
    if shift == 70:
        raise ProtobufError("a number has more than 64 bits")
    raise ProtobufError("the message ends in the middle of a number")


def _after_fixed(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ProtobufError("the message ends in the middle of a number")
    return at + size


def _after_group(data: bytes, at: int, number: int) -> int:
    """Return where the group that just started ends. A loop, not recursion: the sender decides the depth."""
    inside = [number]
    while inside:
        if at >= len(data):
            raise ProtobufError(f"the group {inside[-1]} does not end")
        number, wire, at = _tag(data, at)
        if wire == VARINT:
            _, at = _varint(data, at)
        elif wire == LENGTH:
            size, at = _varint(data, at)
            at = _after_fixed(data, at, size)
        elif wire == START_GROUP:
            inside.append(number)
            if len(inside) > _DEEPEST_GROUP:
                raise ProtobufError(f"groups are nested more than {_DEEPEST_GROUP} deep")
        elif wire == END_GROUP:
            if inside.pop() != number:
                raise ProtobufError(f"the group {number} ends without having started")
        else:
            at = _after_fixed(data, at, _FIXED[wire])
    return at
