"""Times in objects: what a client may write, and the one form in which they are kept.

A `Time` is any RFC 3339 moment and is kept in UTC to the second; a `MicroTime` has exactly six digits of a second.
`settle_times` brings the times of a decoded object into that form, in place, and raises `TimeError`, with Go's text,
for what is no time. A search over the bytes, in C, tells first whether there is anything to do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import msgspec

from nodeward.api.schema import Schema, Shape, schema_of
from nodeward.base.fielderror import quote

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_ANY_TIME: Final = re.compile(rb'"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d')
_KEPT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_KEPT_MICRO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_ODD_TIME: Final = re.compile(rb'"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?!Z")')

Settle = Callable[[Any], None]


class TimeError(ValueError):
    """Not a time of the wanted form; the text says where reading stopped."""


def canonical_time(text: str) -> str:
    """Return a `Time` in its stored form."""
    if _KEPT.fullmatch(text) and _is_date(text):
        return text
    return _moment(text, _LAYOUT).strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(text: str) -> str:
    """Return a `MicroTime` in its stored form."""
    if _KEPT_MICRO.fullmatch(text) and _is_date(text):
        return text
    return _moment(text, _MICRO_LAYOUT).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _is_date(text: str) -> bool:
    """Tell whether the numbers of a time are in range: heartbeats and events send thousands of right ones a second."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False  # the slow way says what is wrong
    return True


def settle_times(obj: msgspec.Struct, body: bytes) -> None:
    """Convert the times of an object decoded from `body` to their stored form, in place."""
    settle, has_micro = _settler(type(obj)), _holds_micro_times(type(obj))
    if settle is not None and (_ANY_TIME if has_micro else _ODD_TIME).search(body):
        settle(obj)


_NOT_A_TIME: Final = re.compile(r"Expected `str` matching regex .* - at `\$\.(.*)`")


def time_fault(error: str, tree: Any, schema: Schema) -> str:
    """Return Go's text for a decoder's `error` about a string that is no time; "" for other errors."""
    match = _NOT_A_TIME.match(error)
    if match is None:
        return ""
    at: Schema | None = schema
    for step in re.findall(r"[^.\[\]]+|\[\.\.\.\]", match[1]):
        if at is None or step == "[...]":  # the decoder does not say which key of a map
            return ""
        at = at.item if at.shape is Shape.LIST else at.fields.get(step)
        tree = tree[int(step)] if isinstance(tree, list) else tree.get(step)
    try:
        (canonical_micro_time if at is not None and at.format == "micro-time" else canonical_time)(tree)
    except TimeError as fault:
        return str(fault)
    return ""


# -- reading one time, as Go's time.Parse does

_STEPS: Final = (
    (r"\d{4}", "2006"), ("-", "-"), (r"\d\d", "01"), ("-", "-"), (r"\d\d", "02"), ("T", "T"),
    (r"\d\d", "15"), (":", ":"), (r"\d\d", "04"), (":", ":"), (r"\d\d", "05"),
)  # fmt: skip
_FRACTION: Final = re.compile(r"[.,]\d+")
_ZONE: Final = re.compile(r"Z|[+-]\d\d:\d\d")


def _moment(text: str, layout: str) -> datetime:
    at, numbers = 0, []
    for pattern, element in _STEPS:
        match = re.compile(pattern, re.ASCII).match(text, at)
        if match is None:
            raise _stopped(text, layout, at, element)
        at = match.end()
        if pattern.startswith(r"\d"):
            numbers.append(int(match[0]))
    fraction = ""
    if layout == _MICRO_LAYOUT:
        if not re.compile(r"[.,]\d{6}", re.ASCII).match(text, at):
            raise _stopped(text, layout, at, ".000000")
        fraction, at = text[at + 1 : at + 7], at + 7
    elif match := _FRACTION.match(text, at):
        at = match.end()
    zone = _ZONE.match(text, at)
    if zone is None:
        raise _stopped(text, layout, at, "Z07:00")
    if zone.end() != len(text):
        raise TimeError(f"parsing time {quote(text)}: extra text: {quote(text[zone.end() :])}")
    return _checked(text, numbers, int(fraction or 0), zone[0])


def _checked(text: str, numbers: list[int], micro: int, zone: str) -> datetime:
    year, month, day, hour, minute, second = numbers
    for name, is_right in (
        ("month", 1 <= month <= 12),
        ("hour", hour < 24),
        ("minute", minute < 60),
        ("second", second < 60),
    ):
        if not is_right:
            raise TimeError(f"parsing time {quote(text)}: {name} out of range")
    away = timedelta() if zone == "Z" else timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    try:
        where = timezone(-away if zone[0] == "-" else away)
        return datetime(year, month, day, hour, minute, second, micro, where).astimezone(UTC)
    except (ValueError, OverflowError):
        raise TimeError(f"parsing time {quote(text)}: day out of range") from None


def _stopped(text: str, layout: str, at: int, element: str) -> TimeError:
    return TimeError(
        f'parsing time {quote(text)} as "{layout}": cannot parse {quote(text[at:])} as "{element}"'
    )


# -- finding the times of an object


@functools.cache
def _settler(struct: type[msgspec.Struct]) -> Settle | None:
    """Return the function that converts the times of one struct; None if it has none."""
    schema = schema_of(struct)
    steps: list[tuple[str, Callable[[Any], Any] | None, Settle | None]] = []
    for info in msgspec.structs.fields(struct):
        read, settle = _of(schema.fields[info.encode_name])
        if read is not None or settle is not None:
            steps.append((info.name, read, settle))
    if not steps:
        return None

    def settle_all(holder: Any) -> None:
        for name, read, settle in steps:
            value = getattr(holder, name)
            if not value:
                continue
            if read is not None:
                setattr(holder, name, read(value))
            elif settle is not None:
                settle(value)

    return settle_all


def _of(schema: Schema) -> tuple[Callable[[Any], Any] | None, Settle | None]:
    """Return how a field is converted: by replacing its value, or in place."""
    match schema.shape, schema.format:
        case Shape.SCALAR, "date-time":
            return canonical_time, None
        case Shape.SCALAR, "micro-time":
            return canonical_micro_time, None
        case Shape.STRUCT, _:
            return None, _settler(schema.python_type)
        case ((Shape.LIST | Shape.MAP), _) if schema.item is not None:
            read, settle = _of(schema.item)
            if read is not None:
                return functools.partial(_each, read), None
            return None, None if settle is None else functools.partial(_every, settle)
    return None, None


def _each(read: Callable[[Any], Any], values: Any) -> Any:
    if isinstance(values, dict):
        return {key: read(value) for key, value in values.items()}
    return [read(value) for value in values]


def _every(settle: Settle, values: Any) -> None:
    for value in values.values() if isinstance(values, dict) else values:
        settle(value)


@functools.cache
def _holds_micro_times(struct: type[msgspec.Struct]) -> bool:
    """Asked for every write: found once for a kind."""
    return _has_micro(schema_of(struct), set())


def _has_micro(schema: Schema, seen: set[type]) -> bool:
    if schema.shape in (Shape.LIST, Shape.MAP):
        return schema.item is not None and _has_micro(schema.item, seen)
    if schema.shape is not Shape.STRUCT or schema.python_type in seen:
        return schema.format == "micro-time"
    seen.add(schema.python_type)
    return any(_has_micro(inner, seen) for inner in schema.fields.values())
