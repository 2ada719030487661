"""Durations read and print as Go's, ages as kubectl's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.duration import (
    HOUR_NS,
    MILLISECOND_NS,
    MINUTE_NS,
    SECOND_NS,
    DurationError,
    format_duration,
    human_duration,
    parse_duration,
    short_human_duration,
)

DAY = 24 * HOUR_NS
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * SECOND_NS),
        ("+5s", 5 * SECOND_NS),
        ("1478s", 1478 * SECOND_NS),
        ("5.s", 5 * SECOND_NS),
        (".5s", SECOND_NS // 2),
        ("5.6s", 5600 * MILLISECOND_NS),
        ("100.00100s", 100 * SECOND_NS + MILLISECOND_NS),
        ("-1.5h", -90 * MINUTE_NS),
        ("300ms", 300 * MILLISECOND_NS),
        ("10ns", 10),
        ("11us", 11000),
        ("12µs", 12000),
        ("12μs10ns", 12010),
        ("1h2m3.5s", HOUR_NS + 2 * MINUTE_NS + 3500 * MILLISECOND_NS),
        ("10.5s4m", 4 * MINUTE_NS + 10500 * MILLISECOND_NS),
        ("39h9m14.425s", 39 * HOUR_NS + 9 * MINUTE_NS + 14425 * MILLISECOND_NS),
        ("52763797000ns", 52763797000),
        ("0.3333333333333333333h", 20 * MINUTE_NS),
        ("9007199254740993ns", 9007199254740993),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.100000000000000000000h", 6 * MINUTE_NS),
        ("0.830103483285477580700h", 49 * MINUTE_NS + 48 * SECOND_NS + 372539827),
        ("000000000000000000000000001s", SECOND_NS),
    ],
)
def test_durations_mean_what_go_says(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("+.s", 'time: invalid duration "+.s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 h", 'time: unknown unit " h" in duration "1 h"'),
        ('1"x', 'time: unknown unit "\\"x" in duration "1\\"x"'),
        ("1ß", 'time: unknown unit "\\xc3\\x9f" in duration "1\\xc3\\x9f"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("-9223372036854775809ns", 'time: invalid duration "-9223372036854775809ns"'),
        ("9223372036854775.808us", 'time: invalid duration "9223372036854775.808us"'),
        ("9223372036854ms775us808ns", 'time: invalid duration "9223372036854ms775us808ns"'),
        ("99999999999999999999x", 'time: invalid duration "99999999999999999999x"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (4 * MINUTE_NS + 5 * SECOND_NS, "4m5s"),
        (4 * MINUTE_NS + 5001 * MILLISECOND_NS, "4m5.001s"),
        (5 * HOUR_NS + 6 * MINUTE_NS + 7001 * MILLISECOND_NS, "5h6m7.001s"),
        (8 * MINUTE_NS + 1, "8m0.000000001s"),
        (HOUR_NS, "1h0m0s"),
        (-MINUTE_NS, "-1m0s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_durations_print_as_gos(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@given(st.integers(-(2**52), 2**52))
def test_printing_and_parsing_again_gives_the_same_duration(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.text(alphabet='0123456789.+-hmsnuµ x"\\', max_size=12) | st.text(max_size=8))
def test_any_text_gives_a_duration_or_a_duration_error(text: str) -> None:
    try:
        outcome = format_duration(parse_duration(text))
    except DurationError as error:
        outcome = str(error)
    assert outcome


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (-2 * SECOND_NS, "<invalid>"),
        (-2 * SECOND_NS + 1, "0s"),
        (-1, "0s"),
        (0, "0s"),
        (SECOND_NS - 1, "0s"),
        (70 * SECOND_NS, "70s"),
        (2 * MINUTE_NS - 1, "119s"),
        (2 * MINUTE_NS, "2m"),
        (2 * MINUTE_NS + 3 * SECOND_NS, "2m3s"),
        (10 * MINUTE_NS - 1, "9m59s"),
        (10 * MINUTE_NS + 5 * SECOND_NS, "10m"),
        (3 * HOUR_NS - 1, "179m"),
        (3 * HOUR_NS, "3h"),
        (3 * HOUR_NS + 20 * MINUTE_NS, "3h20m"),
        (8 * HOUR_NS - 1, "7h59m"),
        (8 * HOUR_NS + 59 * MINUTE_NS, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (5 * DAY + 3 * HOUR_NS, "5d3h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY + 23 * HOUR_NS, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 30 * DAY, "2y30d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + 364 * DAY, "8y"),
    ],
)
def test_ages_are_shown_as_kubectl_does(nanoseconds: int, text: str) -> None:
    assert human_duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (-2 * SECOND_NS, "<invalid>"),
        (-SECOND_NS, "0s"),
        (59 * SECOND_NS, "59s"),
        (MINUTE_NS, "1m"),
        (HOUR_NS - 1, "59m"),
        (HOUR_NS, "1h"),
        (DAY - 1, "23h"),
        (DAY, "1d"),
        (YEAR - 1, "364d"),
        (YEAR, "1y"),
        (2 * YEAR - 1, "1y"),
    ],
)
def test_short_ages_keep_only_the_largest_unit(nanoseconds: int, text: str) -> None:
    assert short_human_duration(nanoseconds) == text
