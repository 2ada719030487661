"""Moments are written in the API's two forms and read in any zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import (
    TimestampError,
    parse_rfc3339,
    parse_rfc3339_micro,
    rfc3339,
    rfc3339_micro,
)

LAYOUT = '"2006-01-02T15:04:05Z07:00"'
MICRO_LAYOUT = '"2006-01-02T15:04:05.000000Z07:00"'
SOME_NS = 1_794_725_267_123_456_789
FIRST_NS = -62_135_596_800 * SECOND_NS
LAST_NS = 253_402_300_800 * SECOND_NS - 1


def test_times_are_cut_to_the_second_and_micro_times_have_six_digits() -> None:
    assert rfc3339(SOME_NS) == "2026-11-15T06:47:47Z"
    assert rfc3339_micro(SOME_NS) == "2026-11-15T06:47:47.123456Z"
    assert rfc3339_micro(SOME_NS // SECOND_NS * SECOND_NS) == "2026-11-15T06:47:47.000000Z"
    assert rfc3339(-1) == "1969-12-31T23:59:59Z"
    assert rfc3339(FIRST_NS) == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T14:30:00-09:30", 0),
        ("1970-01-01T00:00:00.5Z", 5 * 10**8),
        ("1970-01-01T00:00:00,5Z", 5 * 10**8),
        ("1970-01-01T00:00:00.1234567899Z", 123456789),
        ("1970-01-01T1:00:00Z", 3600 * SECOND_NS),
        ("0000-03-01T00:00:00Z", FIRST_NS - 306 * 86400 * SECOND_NS),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND_NS),
    ],
)
def test_moments_are_read_in_every_accepted_shape(text: str, ns: int) -> None:
    assert parse_rfc3339(text) == ns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f'parsing time "" as {LAYOUT}: cannot parse "" as "2006"'),
        ("foo", f'parsing time "foo" as {LAYOUT}: cannot parse "foo" as "2006"'),
        ("2026-11-15", f'parsing time "2026-11-15" as {LAYOUT}: cannot parse "" as "T"'),
        (
            "2026-11-15 06:47:47Z",
            f'parsing time "2026-11-15 06:47:47Z" as {LAYOUT}: cannot parse " 06:47:47Z" as "T"',
        ),
        (
            "2026-11-15T06:47:47",
            f'parsing time "2026-11-15T06:47:47" as {LAYOUT}: cannot parse "" as "Z07:00"',
        ),
        (
            "2026-11-15T06:47:47.Z",
            f'parsing time "2026-11-15T06:47:47.Z" as {LAYOUT}: cannot parse ".Z" as "Z07:00"',
        ),
        ("2026-13-15T06:47:47Z", 'parsing time "2026-13-15T06:47:47Z": month out of range'),
        ("2026-13", 'parsing time "2026-13": month out of range'),
        ("2026-02-29T06:47:47Z", 'parsing time "2026-02-29T06:47:47Z": day out of range'),
        ("2026-11-15T24:47:47Z", 'parsing time "2026-11-15T24:47:47Z": hour out of range'),
        ("2026-11-15T24", 'parsing time "2026-11-15T24": hour out of range'),
        ("2026-11-15T06:60:47Z", 'parsing time "2026-11-15T06:60:47Z": minute out of range'),
        ("2026-11-15T06:47:60Z", 'parsing time "2026-11-15T06:47:60Z": second out of range'),
        ("2026-11-15T06:47:60", 'parsing time "2026-11-15T06:47:60": second out of range'),
        (
            "2026-11-15T06:47:47+25:00",
            'parsing time "2026-11-15T06:47:47+25:00": time zone offset hour out of range',
        ),
        (
            "2026-11-15T06:47:47+00:61",
            'parsing time "2026-11-15T06:47:47+00:61": time zone offset minute out of range',
        ),
        ("2026-11-15T06:47:47Zulu", 'parsing time "2026-11-15T06:47:47Zulu": extra text: "ulu"'),
        ("2026-11-15T06:47:47Z\n", 'parsing time "2026-11-15T06:47:47Z\\x0a": extra text: "\\x0a"'),
    ],
)
def test_what_is_no_moment_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(TimestampError) as caught:
        parse_rfc3339(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "rest", "part"),
    [
        ("2026-11-15T06:47:47Z", "Z", ".000000"),
        ("2026-11-15T06:47:47.123Z", ".123Z", ".000000"),
        ("2026-11-15T06:47:47.1234567Z", "7Z", "Z07:00"),
    ],
)
def test_micro_times_need_exactly_six_digits(text: str, rest: str, part: str) -> None:
    with pytest.raises(TimestampError) as caught:
        parse_rfc3339_micro(text)
    assert str(caught.value) == f'parsing time "{text}" as {MICRO_LAYOUT}: cannot parse "{rest}" as "{part}"'


@pytest.mark.parametrize("ns", [FIRST_NS - 1, LAST_NS + 1, 10**40])
def test_moments_without_a_four_digit_year_have_no_text(ns: int) -> None:
    with pytest.raises(TimestampError, match="outside the years"):
        rfc3339(ns)


@given(st.integers(FIRST_NS, LAST_NS))
def test_writing_and_reading_again_loses_only_what_was_cut(ns: int) -> None:
    assert parse_rfc3339(rfc3339(ns)) == ns // SECOND_NS * SECOND_NS
    assert parse_rfc3339_micro(rfc3339_micro(ns)) == parse_rfc3339(rfc3339_micro(ns)) == ns // 1000 * 1000


@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),  # noqa: DTZ001
        max_value=datetime(9998, 1, 1),  # noqa: DTZ001
        timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    )
)
def test_reading_agrees_with_pythons_calendar(moment: datetime) -> None:
    passed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    expected = (passed.days * 86400 + passed.seconds) * SECOND_NS + passed.microseconds * 1000
    assert parse_rfc3339(moment.isoformat()) == expected
