"""Single protobuf values converted to JSON values. Called by `reading.py`.

Takes a VARINT's number or the bytes of one field; returns the JSON value; `None` means absent (a time that is not set).
Kubernetes wraps some values in small messages of their own (quantities, times, int-or-string, raw JSON): those are
unwrapped here, so that `reading` sees plain values only.

What must stay true: the empty value of a leaf (0 or no bytes) can be read, since map entries may leave it out.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.codec import parse_tree
from nodeward.api.protobuf.wire import FIXED64, LENGTH, VARINT, ProtobufError, values
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import TimestampError, rfc3339, rfc3339_micro


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is not a message with fields of its own."""

    wire: int
    read: Callable[[Any], Any]
    #: what stands for a value that is left out
    zero: int | bytes = b""


def text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtobufError("a string is not UTF-8") from None


def _signed(bits: int) -> Callable[[int], int]:
    sign, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda value: ((value & mask) ^ sign) - sign


_int32: Final = _signed(32)
_int64: Final = _signed(64)


def _double(data: bytes) -> float:
    (value,) = struct.unpack("<d", data)
    if not math.isfinite(value):
        raise ProtobufError(f"{value} cannot be written in JSON")
    return float(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def small(data: bytes, leaves: dict[int, Leaf]) -> dict[int, Any]:
    """Read a message of a few plain values, by their numbers."""
    read: dict[int, Any] = {}
    for number, wire, value in values(data):
        leaf = leaves.get(number)
        if leaf is None:
            continue
        if leaf.wire != wire:
            raise ProtobufError(f"field {number} of a wrapped value has wire type {wire}, not {leaf.wire}")
        read[number] = leaf.read(value)
    return read


def _quantity(data: bytes) -> str:
    return str(small(data, {1: STRING}).get(1, "0"))


def _int_or_string(data: bytes) -> int | str:
    read = small(data, {1: INT32, 2: INT32, 3: STRING})
    match read.get(1, 0):
        case 0:
            return int(read.get(2, 0))
        case 1:
            return str(read.get(3, ""))
        case other:
            raise ProtobufError(f"a number or string is of type {other}, which does not exist")


def _moment(data: bytes) -> tuple[int, int]:
    read = small(data, {1: INT64, 2: INT32})
    return read.get(1, 0), read.get(2, 0)


def _time(data: bytes) -> str | None:
    """Read a time in whole seconds, the resolution of JSON clients."""
    if not data:
        return None
    seconds, _ = _moment(data)
    try:
        return rfc3339(seconds * SECOND_NS)
    except TimestampError as error:
        raise ProtobufError(f"a time cannot be written: {error}") from None


def _micro_time(data: bytes) -> str | None:
    if not data:
        return None
    seconds, nanos = _moment(data)
    try:
        return rfc3339_micro(seconds * SECOND_NS + nanos)
    except TimestampError as error:
        raise ProtobufError(f"a time cannot be written: {error}") from None


def _json(data: bytes) -> msgspec.Raw | None:
    """Read raw JSON: checked, but not rewritten."""
    raw = small(data, {1: BYTES}).get(1, b"")
    if not raw:
        return None
    text(raw)
    try:
        parse_tree(raw)
    except msgspec.DecodeError as error:
        raise ProtobufError(f"JSON inside the object cannot be read: {error}") from None
    return msgspec.Raw(raw)


def strings(data: bytes) -> list[str]:
    """Read a list of strings in a message of its own, as maps of lists have it."""
    found = []
    for number, wire, value in values(data):
        if number == 1:
            if wire != LENGTH:
                raise ProtobufError(f"field 1 of a list has wire type {wire}, not {LENGTH}")
            found.append(text(value))
    return found


STRING: Final = Leaf(LENGTH, text)
STRINGS: Final = Leaf(LENGTH, strings)
INT32: Final = Leaf(VARINT, _int32, 0)
INT64: Final = Leaf(VARINT, _int64, 0)
JSON: Final = Leaf(LENGTH, _json)
#: Bytes that are looked into later.
BYTES: Final = Leaf(LENGTH, bytes)

#: By the format of a scalar in the schema; without a format, by its type.
BY_FORMAT: Final[dict[str, Leaf]] = {
    "int32": INT32,
    "int64": INT64,
    "double": Leaf(FIXED64, _double, bytes(8)),
    "byte": Leaf(LENGTH, _base64),
    "quantity": Leaf(LENGTH, _quantity),
    "date-time": Leaf(LENGTH, _time),
    "micro-time": Leaf(LENGTH, _micro_time),
    "int-or-string": Leaf(LENGTH, _int_or_string),
}
BY_TYPE: Final[dict[Any, Leaf]] = {str: STRING, bool: Leaf(VARINT, bool, 0)}
