"""Parts of timestamps and durations: `getFullYear`, `getHours("+02:00")`, `getSeconds`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nodeward.base.duration import HOUR_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS
from nodeward.base.fielderror import quote
from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import Duration, EvaluationError, Timestamp

_OFFSET: Final = re.compile(r"([+-]?[0-9]{1,4}):([+-]?[0-9]{1,4})")
_BASE: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    if match := _OFFSET.fullmatch(name):
        hours, minutes = int(match[1]), int(match[2])
        offset = hours * 60 + (-minutes if name.startswith("-") else minutes)
        if abs(offset) < 24 * 60:
            return timezone(timedelta(minutes=offset))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _local(moment: Timestamp, zone: str) -> datetime:
    seconds = moment.nanoseconds // SECOND_NS
    try:
        return (_BASE + timedelta(seconds=seconds)).astimezone(_zone(zone))
    except OverflowError:
        raise EvaluationError(f"timestamp overflow in time zone {quote(zone)}") from None


def _part(read: Callable[[datetime], int]) -> Implementation:
    def run(moment: Timestamp, zone: str = "UTC") -> int:
        return read(_local(moment, zone))

    return run


def _milliseconds(moment: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return moment.nanoseconds % SECOND_NS // MILLISECOND_NS


def _truncated(unit: int) -> Implementation:
    def run(span: Duration) -> int:
        whole = abs(span.nanoseconds) // unit
        return -whole if span.nanoseconds < 0 else whole

    return run


def _function(
    name: str, word: str, run: Implementation, of_duration: Implementation | None = None
) -> Function:
    overloads = [
        Overload(f"timestamp_to_{word}", (t.TIMESTAMP,), t.INT, run, is_member=True),
        Overload(f"timestamp_to_{word}_with_tz", (t.TIMESTAMP, t.STRING), t.INT, run, is_member=True),
    ]
    if of_duration is not None:
        overloads.append(Overload(f"duration_to_{word}", (t.DURATION,), t.INT, of_duration, is_member=True))
    return Function(name, tuple(overloads))


TIMES: Final = (
    _function("getFullYear", "year", _part(lambda date: date.year)),
    _function("getMonth", "month", _part(lambda date: date.month - 1)),
    _function("getDayOfYear", "day_of_year", _part(lambda date: date.timetuple().tm_yday - 1)),
    _function("getDayOfMonth", "day_of_month", _part(lambda date: date.day - 1)),
    _function("getDate", "day_of_month_1_based", _part(lambda date: date.day)),
    _function("getDayOfWeek", "day_of_week", _part(lambda date: date.isoweekday() % 7)),
    _function("getHours", "hours", _part(lambda date: date.hour), _truncated(HOUR_NS)),
    _function("getMinutes", "minutes", _part(lambda date: date.minute), _truncated(MINUTE_NS)),
    _function("getSeconds", "seconds", _part(lambda date: date.second), _truncated(SECOND_NS)),
    _function("getMilliseconds", "milliseconds", _milliseconds, _truncated(MILLISECOND_NS)),
)
