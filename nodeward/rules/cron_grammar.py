"""The text of a cron schedule: the five-field syntax of cron, its shorthands, and names of time zones. Pure.

Called by validation (`schedule_fault`, `time_zone_fault`) and by `cron`, which computes moments from what is read here.
Fields are minute, hour, day of month, month, day of week; each is a list of numbers, ranges and steps. The first fault
found is the one told, in the words of the parser Kubernetes uses.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from typing import Final

from nodeward.base.duration import parse_duration
from nodeward.base.errors import NodewardError
from nodeward.base.fielderror import quote

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class CronError(NodewardError, ValueError):
    """The schedule cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: tuple[str, ...] = ()
    first: int = 0


_FIELDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, _MONTHS, 1),
    _Bounds(0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class CronField:
    """The numbers that one field allows, and whether it stands for all of them (`*`)."""

    numbers: frozenset[int]
    is_any: bool


@dataclass(frozen=True, slots=True)
class Every:
    """The shorthand `@every DURATION`, in nanoseconds."""

    duration_ns: int


def schedule_fault(schedule: str) -> str | None:
    """Return what is wrong with a cron schedule; None if nothing is."""
    try:
        read_schedule(schedule)
    except CronError as fault:
        return str(fault)
    return None


def read_schedule(schedule: str) -> tuple[CronField, ...] | Every:
    """Return the five fields of a schedule, or its `@every`. Raises `CronError`."""
    if not schedule:
        raise CronError("empty spec string")
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        setting, blank, schedule = schedule.partition(" ")
        if not blank:
            raise CronError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone = setting.partition("=")[2]
        if zone not in ("", "UTC", "Local") and not is_known_time_zone(zone):
            raise CronError(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith(_EVERY):
        return Every(_duration_ns(schedule))
    if schedule.startswith("@"):
        if schedule not in _SHORTHANDS:
            raise CronError(f"unrecognized descriptor: {schedule}")
        schedule = _SHORTHANDS[schedule]
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        found = f"[{' '.join(fields)}]"
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: {found}")
    return tuple(_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True))


def _duration_ns(schedule: str) -> int:
    duration = schedule.removeprefix(_EVERY)
    if not _DURATION.fullmatch(duration):
        why = f"time: invalid duration {quote(duration)}"
        raise CronError(f"failed to parse duration {schedule}: {why}")
    return parse_duration(duration)


def _field(text: str, bounds: _Bounds) -> CronField:
    numbers: set[int] = set()
    is_any = False
    for expression in filter(None, text.split(",")):
        allowed, is_all = _range(expression, bounds)
        numbers.update(allowed)
        is_any = is_any or is_all
    return CronField(frozenset(numbers), is_any)


def _range(expression: str, bounds: _Bounds) -> tuple[range, bool]:
    """Return the numbers of one part of a field, and whether it is a plain `*`."""
    span, *steps = expression.split("/")
    low, *high = span.split("-")
    is_star = low in ("*", "?")
    if is_star:
        start, end = bounds.low, bounds.high
    else:
        start = end = _number_or_name(low, bounds)
        if len(high) == 1:
            end = _number_or_name(high[0], bounds)
        elif high:
            raise CronError(f"too many hyphens: {expression}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0])
        if not high:
            end = bounds.high
    elif steps:
        raise CronError(f"too many slashes: {expression}")
    if start < bounds.low:
        raise CronError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise CronError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step), is_star and step == 1


def _number_or_name(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.first if name in bounds.names else _number(text)


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        why = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
        raise CronError(f"failed to parse int from {text}: {why}")
    if len(text) > 19:
        why = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise CronError(f"failed to parse int from {text}: {why}")
    number = int(text)
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number


def is_known_time_zone(name: str) -> bool:
    """Is it in the time zone database? On a machine without one every well-formed name is taken."""
    return _is_in_database(name) or not _is_in_database("Etc/UTC")


def _is_in_database(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def time_zone_fault(name: str) -> str | None:
    """Return what is wrong with the `timeZone` of a cron job; None if nothing."""
    if not name:
        return "timeZone must be nil or non-empty string"
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return None if name == "UTC" or is_known_time_zone(name) else f"unknown time zone {name}"
