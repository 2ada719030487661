"""The next time of a schedule: later than now, fitting, and the earliest there is; also when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.rules.cron import IntervalSchedule, WallClockSchedule, parse, zone_of
from nodeward.rules.cron_grammar import CronError

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Havana",
)


def at(text: str, zone: str = "UTC", fold: int = 0) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


def shown(moment: int | None, zone: str = "UTC") -> str:
    assert moment is not None
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M %a")


def fields(text: str, zone: str = "UTC") -> WallClockSchedule:
    found = parse(text, ZoneInfo(zone))
    assert isinstance(found, WallClockSchedule)
    return found


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-01-01 00:00", "2026-01-01 00:01 Thu"),
        ("0 * * * *", "2026-01-01 00:00", "2026-01-01 01:00 Thu"),
        ("@hourly", "2026-01-01 00:59", "2026-01-01 01:00 Thu"),
        ("@daily", "2026-01-01 00:00", "2026-01-02 00:00 Fri"),
        ("@midnight", "2026-01-01 00:00", "2026-01-02 00:00 Fri"),
        ("@weekly", "2026-01-01 00:00", "2026-01-04 00:00 Sun"),
        ("@monthly", "2026-01-01 00:00", "2026-02-01 00:00 Sun"),
        ("@yearly", "2026-01-01 00:00", "2027-01-01 00:00 Fri"),
        ("@annually", "2026-01-01 00:00", "2027-01-01 00:00 Fri"),
        ("*/15 * * * *", "2026-01-01 00:01", "2026-01-01 00:15 Thu"),
        ("5/20 * * * *", "2026-01-01 00:06", "2026-01-01 00:25 Thu"),
        ("0 9-17/4 * * *", "2026-01-01 09:00", "2026-01-01 13:00 Thu"),
        ("30 6 * * MON-fri", "2026-01-02 07:00", "2026-01-05 06:30 Mon"),
        ("0 0 1 JAN,jul *", "2026-01-01 00:00", "2026-07-01 00:00 Wed"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00 Tue"),
        # One of the two is enough when neither is a star.
        ("0 0 13 * 5", "2026-01-03 00:00", "2026-01-09 00:00 Fri"),
        ("0 0 13 * 5", "2026-01-10 00:00", "2026-01-13 00:00 Tue"),
        # Both must fit when one of them is.
        ("0 0 13 * *", "2026-01-03 00:00", "2026-01-13 00:00 Tue"),
        ("0 0 ? * 5", "2026-01-03 00:00", "2026-01-09 00:00 Fri"),
        ("0 0 */2 * 5", "2026-01-03 00:00", "2026-01-05 00:00 Mon"),
    ],
)
def test_the_next_time_is_what_the_documentation_says(schedule: str, after: str, expected: str) -> None:
    assert shown(fields(schedule).next_after(at(after))) == expected


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_what_never_comes_is_said_to(schedule: str) -> None:
    assert fields(schedule).next_after(at("2026-01-01 00:00")) is None


def test_an_hour_that_is_skipped_does_not_come_that_day() -> None:
    found = fields("30 2 * * *", "Europe/Berlin").next_after(at("2026-03-28 12:00", "Europe/Berlin"))
    assert shown(found, "Europe/Berlin") == "2026-03-30 02:30 Mon"


def test_an_hour_that_is_repeated_comes_twice() -> None:
    schedule = fields("30 2 * * *", "Europe/Berlin")
    first = schedule.next_after(at("2026-10-25 00:00", "Europe/Berlin"))
    assert first == at("2026-10-25 02:30", "Europe/Berlin")
    second = schedule.next_after(first)
    assert second == at("2026-10-25 02:30", "Europe/Berlin", fold=1) == first + 3600


def test_an_hourly_schedule_does_not_notice_a_change_of_clocks() -> None:
    schedule = fields("0 * * * *", "America/New_York")
    moment = at("2026-03-07 22:00", "America/New_York")
    for _ in range(12):
        following = schedule.next_after(moment)
        assert following == moment + 3600
        moment = following


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("@often", "unrecognized descriptor: @often"),
        ("TZ=Europe/Berlin 0 0 * * *", "use timeZone field instead"),
        ("CRON_TZ=UTC 0 0 * * *", "use timeZone field instead"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(CronError) as error:
        parse(text)
    assert why in str(error.value)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    step = st.tuples(st.one_of(st.just("*"), span), st.integers(1, 20)).map(lambda two: f"{two[0]}/{two[1]}")
    one = st.one_of(number.map(str), span, step)
    return st.one_of(st.just("*"), st.lists(one, min_size=1, max_size=3).map(",".join))


SCHEDULES = st.tuples(
    _field(0, 59), _field(0, 23), st.one_of(st.just("*"), _field(1, 31)), _field(1, 12), _field(0, 6)
).map(" ".join)
#: Around changes of clocks, and anywhere.
MOMENTS = st.one_of(
    st.integers(at("2026-03-28 00:00"), at("2026-03-30 00:00")),
    st.integers(at("2026-10-24 00:00"), at("2026-10-26 00:00")),
    st.integers(at("2000-01-01 00:00"), at("2050-01-01 00:00")),
)


def _fits(schedule: WallClockSchedule, moment: int) -> bool:
    wall = datetime.fromtimestamp(moment, schedule.zone)
    if wall.second or wall.minute not in schedule.minutes or wall.hour not in schedule.hours:
        return False
    day, week = wall.day in schedule.days, wall.isoweekday() % 7 in schedule.weekdays
    return wall.month in schedule.months and ((day or week) if schedule.either_day else (day and week))


@settings(max_examples=100, deadline=None)
@given(SCHEDULES, MOMENTS, st.sampled_from(ZONES))
def test_the_next_time_is_later_and_fits_and_nothing_in_between_does(
    text: str, moment: int, zone: str
) -> None:
    schedule = fields(text, zone)
    following = schedule.next_after(moment)
    if following is None:
        return
    assert following > moment
    assert _fits(schedule, following)
    first = moment - moment % 60 + 60
    # All of a day before and after, where changes of clocks are.
    early = range(first, min(following, first + 1500 * 60), 60)
    late = range(max(first, following - following % 60 - 1500 * 60), following, 60)
    assert not [one for one in (*early, *late) if _fits(schedule, one)]


@settings(max_examples=100, deadline=None)
@given(SCHEDULES, MOMENTS, st.integers(0, 10**6), st.sampled_from(ZONES))
def test_the_latest_time_is_the_last_before_the_next(text: str, moment: int, span: int, zone: str) -> None:
    schedule = fields(text, zone)
    now = moment + span
    latest = schedule.latest(moment, now)
    following = schedule.next_after(moment)
    if latest is None:
        assert following is None or following > now
        return
    assert moment < latest <= now
    assert _fits(schedule, latest)
    assert schedule.next_after(latest) == schedule.following(moment, now)
    assert schedule.count(moment, now, 3) >= 1


@given(st.integers(1, 10**5), st.integers(0, 10**9), st.integers(0, 10**7))
def test_equal_distances_are_counted_from_where_they_began(seconds: int, after: int, span: int) -> None:
    schedule = parse(f"@every {seconds}s")
    assert schedule == IntervalSchedule(seconds)
    now = after + span
    latest, following = schedule.latest(after, now), schedule.following(after, now)
    assert following is not None
    assert following > now
    assert (following - after) % seconds == 0
    assert (following - seconds if following - seconds > after else None) == latest


def test_names_of_time_zones_are_looked_up() -> None:
    assert zone_of(None) is UTC
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    assert zone_of("Middle/Earth") is None
    assert zone_of("../etc/passwd") is None
