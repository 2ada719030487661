"""When a cron schedule comes round: five fields, shorthands, time zones. Pure.

In goes a schedule as the API accepts it and a time zone; out come moments, as whole seconds since 1970. A moment is one
of the schedule if the clock on the wall shows a minute that all fields allow. So a time that a change of clocks skips
does not come that day, and one that it repeats comes twice. Of day of month and day of week both must fit if one of
them is `*`, else one is enough.

What must stay true: the next moment is later than the one asked from, fits, and none before it does; a schedule that
never comes (the 30th of February) says so instead of searching for ever.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.rules.cron_grammar import CronError, Every, read_schedule

_DAY: Final = timedelta(days=1)
#: A schedule that does not come for so long never does: the 29th of February is at most eight years away.
_SEARCHED_DAYS: Final = 366 * 9


@dataclass(frozen=True, slots=True)
class WallClockSchedule:
    """Times by the clock on the wall."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    #: Sunday is 0.
    weekdays: frozenset[int]
    #: Neither kind of day is `*`, so either is enough.
    either_day: bool
    zone: tzinfo

    def next_after(self, moment: int) -> int | None:
        """Return the first moment later than this one; None: it never comes."""
        day = datetime.fromtimestamp(moment, self.zone).date()
        for _ in range(_SEARCHED_DAYS):
            if self._has(day):
                found = self._first_on(day, moment)
                if found is not None:
                    return found
            if day.month not in self.months:
                # On to the last day before the next month.
                day = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - _DAY
            day += _DAY
        return None

    def latest(self, after: int, now: int) -> int | None:
        """Return the last moment later than `after` and not later than `now`."""
        low, high = after, now
        first = self.next_after(low)
        if first is None or first > now:
            return None
        # From `low` one is still to come, from `high` none is.
        while high - low > 1:
            middle = (low + high) // 2
            following = self.next_after(middle)
            if following is not None and following <= now:
                low = middle
            else:
                high = middle
        return self.next_after(low)

    def following(self, after: int, now: int) -> int | None:
        """Return the first moment later than `now`."""
        return self.next_after(now)

    def count(self, after: int, now: int, limit: int) -> int:
        """Return how many moments there are later than `after` and not later than `now`; counted up to `limit`."""
        number, moment = 0, self.next_after(after)
        while moment is not None and moment <= now and number < limit:
            number, moment = number + 1, self.next_after(moment)
        return number

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        fits_month, fits_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (fits_month or fits_week) if self.either_day else (fits_month and fits_week)

    def _first_on(self, day: date, moment: int) -> int | None:
        start, noon, end = (self._at(day, 0), self._at(day, 12), self._at(day + _DAY, 0))
        if start.utcoffset() != noon.utcoffset() or noon.utcoffset() != end.utcoffset():
            return min((each for each in self._around_a_change(day) if each > moment), default=None)
        midnight = round(start.timestamp())
        for hour in self.hours:
            if midnight + hour * 3600 + 3540 > moment:
                for minute in self.minutes:
                    found = midnight + hour * 3600 + minute * 60
                    if found > moment:
                        return found
        return None

    def _around_a_change(self, day: date) -> Iterator[int]:
        """Return all moments of a day on which the clocks are changed, in no order."""
        for hour in self.hours:
            for minute in self.minutes:
                for fold in (0, 1):
                    shown = self._at(day, hour).replace(minute=minute, fold=fold)
                    found = round(shown.timestamp())
                    back = datetime.fromtimestamp(found, self.zone)
                    if (back.date(), back.hour, back.minute) == (day, hour, minute):
                        yield found

    def _at(self, day: date, hour: int) -> datetime:
        return datetime(day.year, day.month, day.day, hour, tzinfo=self.zone)


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """At equal distances from where it is counted from."""

    seconds: int

    def latest(self, after: int, now: int) -> int | None:
        times = (now - after) // self.seconds
        return after + times * self.seconds if times > 0 else None

    def following(self, after: int, now: int) -> int | None:
        return after + (max(0, now - after) // self.seconds + 1) * self.seconds

    def count(self, after: int, now: int, limit: int) -> int:
        return min(limit, max(0, now - after) // self.seconds)


def parse(text: str, zone: tzinfo = UTC) -> WallClockSchedule | IntervalSchedule:
    """Return the schedule; `CronError` if it is none. A time zone in the text itself is refused."""
    if "TZ" in text:
        raise CronError("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    read = read_schedule(text)
    if isinstance(read, Every):
        return IntervalSchedule(max(1, read.duration_ns // SECOND_NS))
    minutes, hours, days, months, weekdays = read
    return WallClockSchedule(
        minutes=tuple(sorted(minutes.numbers)),
        hours=tuple(sorted(hours.numbers)),
        days=days.numbers,
        months=months.numbers,
        weekdays=weekdays.numbers,
        either_day=not days.is_any and not weekdays.is_any,
        zone=zone,
    )


def zone_of(name: str | None) -> tzinfo | None:
    """Return the time zone by this name, UTC for no name; None if nobody knows it."""
    if name is None or name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
