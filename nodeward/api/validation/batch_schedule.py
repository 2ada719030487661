"""When a cron job runs: the five-field syntax of cron, its shorthands, and time zones.

In goes the text, out comes what is wrong with it, or nothing. Fields are minute, hour, day of month, month, day of
week; each is a list of numbers, ranges and steps. The first fault found is the one told.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from typing import Final

from nodeward.base.fielderror import quote

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SHORTHANDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY: Final = "@every "
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class _Fault(ValueError):
    """The schedule is wrong; the text says how."""


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


def schedule_fault(schedule: str) -> str | None:
    """What is wrong with a cron schedule, in the words of the parser Kubernetes uses; None if nothing."""
    try:
        _check(schedule)
    except _Fault as fault:
        return str(fault)
    return None


def _check(schedule: str) -> None:
    if not schedule:
        raise _Fault("empty spec string")
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        setting, blank, schedule = schedule.partition(" ")
        if not blank:
            raise _Fault("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone = setting.partition("=")[2]
        if zone not in ("", "UTC", "Local") and not is_known_time_zone(zone):
            raise _Fault(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _check_shorthand(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        found = f"[{' '.join(fields)}]"
        raise _Fault(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: {found}")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in field.split(","):
            if expression:
                _check_range(expression, bounds)


def _check_shorthand(schedule: str) -> None:
    if schedule in _SHORTHANDS:
        return
    if not schedule.startswith(_EVERY):
        raise _Fault(f"unrecognized descriptor: {schedule}")
    duration = schedule.removeprefix(_EVERY)
    if not _DURATION.fullmatch(duration):
        why = f"time: invalid duration {quote(duration)}"
        raise _Fault(f"failed to parse duration {schedule}: {why}")


def _check_range(expression: str, bounds: _Bounds) -> None:
    span, *steps = expression.split("/")
    low, *high = span.split("-")
    if low in ("*", "?"):
        start, end = bounds.low, bounds.high
    else:
        start = end = _number_or_name(low, bounds)
        if len(high) == 1:
            end = _number_or_name(high[0], bounds)
        elif high:
            raise _Fault(f"too many hyphens: {expression}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0])
        if not high:
            end = bounds.high
    elif steps:
        raise _Fault(f"too many slashes: {expression}")
    if start < bounds.low:
        raise _Fault(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise _Fault(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise _Fault(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise _Fault(f"step of range should be a positive number: {expression}")


def _number_or_name(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.first if name in bounds.names else _number(text)


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        why = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
        raise _Fault(f"failed to parse int from {text}: {why}")
    if len(text) > 19:
        why = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise _Fault(f"failed to parse int from {text}: {why}")
    number = int(text)
    if number < 0:
        raise _Fault(f"negative number ({number}) not allowed: {text}")
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
    """What is wrong with the `timeZone` of a cron job; None if nothing."""
    if not name:
        return "timeZone must be nil or non-empty string"
    for part in name.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return None if name == "UTC" or is_known_time_zone(name) else f"unknown time zone {name}"
