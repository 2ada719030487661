"""Moments as text: RFC 3339, as the API writes it.

In go nanoseconds since 1970 (UTC), out comes `2026-11-15T06:47:47Z` (`Time`: whole seconds) or
`2026-11-15T06:47:47.123456Z` (`MicroTime`: always six digits), and back. Pure: nobody here asks what time it is.

What must stay true: what does not fit is cut off, never rounded into the future; texts in any time zone are read;
a text that is not a moment is refused in the words of Go's parser, since they reach the user.

Used by every component; calls `duration`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from nodeward.base.duration import SECOND_NS, quote
from nodeward.base.errors import NodewardError

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

_SHAPE: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)

#: The parts of a moment in order: how the layout calls them, and what they look like.
_PARTS: Final = (
    ("2006", re.compile(r"([0-9]{4})")),
    ("-", re.compile(r"-")),
    ("01", re.compile(r"([0-9]{2})")),
    ("-", re.compile(r"-")),
    ("02", re.compile(r"([0-9]{2})")),
    ("T", re.compile(r"T")),
    ("15", re.compile(r"([0-9]{1,2})")),
    (":", re.compile(r":")),
    ("04", re.compile(r"([0-9]{2})")),
    (":", re.compile(r":")),
    ("05", re.compile(r"([0-9]{2})")),
)
_ANY_FRACTION: Final = re.compile(r"(?:[.,][0-9]+)?")
_SIX_DIGITS: Final = re.compile(r"[.,][0-9]{6}")
_ZONE: Final = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")


class TimestampError(NodewardError, ValueError):
    """The text is not a moment, or the moment has no text."""


def rfc3339(ns: int) -> str:
    """`2026-11-15T06:47:47Z`."""
    return f"{_to_the_second(ns // SECOND_NS)}Z"


def rfc3339_micro(ns: int) -> str:
    """`2026-11-15T06:47:47.123456Z`."""
    seconds, below = divmod(ns, SECOND_NS)
    return f"{_to_the_second(seconds)}.{below // 1000:06d}Z"


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since 1970; any zone and any number of digits after the point (nine count)."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise _complaint(text, _LAYOUT, _ANY_FRACTION)
    return _assemble(text, match)


def parse_rfc3339_micro(text: str) -> int:
    """Like `parse_rfc3339`, but exactly six digits must follow the point, as `MicroTime` wants."""
    match = _SHAPE.fullmatch(text)
    if match is None or len(match.group(7) or "") != 6:
        raise _complaint(text, _MICRO_LAYOUT, _SIX_DIGITS)
    return _assemble(text, match)


# Thousands of objects are stamped within one second; a few more entries serve the ages being read meanwhile.
@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
    except (ValueError, OverflowError, OSError) as error:
        raise TimestampError(f"{seconds} s is outside the years 1 to 9999") from error


def _assemble(text: str, match: re.Match[str]) -> int:
    year, month, day, hour, minute, second = (int(match.group(number)) for number in range(1, 7))
    for name, value, low, high in (
        ("month", month, 1, 12),
        ("hour", hour, 0, 23),
        ("minute", minute, 0, 59),
        ("second", second, 0, 59),
    ):
        if not low <= value <= high:
            raise TimestampError(f"parsing time {quote(text)}: {name} out of range")
    offset = 0
    if match.group(8):
        # An offset of a full 24 hours or 60 minutes is let through, as Go does.
        if int(match.group(9)) > 24:
            raise TimestampError(f"parsing time {quote(text)}: time zone offset hour out of range")
        if int(match.group(10)) > 60:
            raise TimestampError(f"parsing time {quote(text)}: time zone offset minute out of range")
        offset = int(match.group(9)) * 3600 + int(match.group(10)) * 60
        if match.group(8) == "-":
            offset = -offset
    try:
        # Python's calendar starts with year 1; the year 0 is 400 years, or 146097 days, before the year 400.
        days = date(year, month, day).toordinal() if year else date(400, month, day).toordinal() - 146097
    except ValueError:
        raise TimestampError(f"parsing time {quote(text)}: day out of range") from None
    seconds = (days - _EPOCH_DAY) * 86400 + hour * 3600 + minute * 60 + second - offset
    return seconds * SECOND_NS + int((match.group(7) or "0")[:9].ljust(9, "0"))


def _complaint(text: str, layout: str, fraction: re.Pattern[str]) -> TimestampError:
    """Return which part of `text` is the first that does not fit."""
    at = 0
    for part, shape in (*_PARTS, (".000000", fraction), ("Z07:00", _ZONE)):
        match = shape.match(text, at)
        if match is None:
            return TimestampError(
                f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(text[at:])} as {quote(part)}"
            )
        if part == "01" and not 1 <= int(match.group(1)) <= 12:
            return TimestampError(f"parsing time {quote(text)}: month out of range")
        if part == "15" and int(match.group(1)) > 23:
            return TimestampError(f"parsing time {quote(text)}: hour out of range")
        if part in ("04", "05") and int(match.group(1)) > 59:
            name = "minute" if part == "04" else "second"
            return TimestampError(f"parsing time {quote(text)}: {name} out of range")
        at = match.end()
    return TimestampError(f"parsing time {quote(text)}: extra text: {quote(text[at:])}")
