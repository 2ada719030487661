"""Times: what is taken, how it is kept, and what is said of what is no time."""

from __future__ import annotations

import pytest

from nodeward.api.times import TimeError, canonical_micro_time, canonical_time

MICRO = '"2006-01-02T15:04:05.000000Z07:00"'
WHOLE = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-01T23:04:05-02:00", "2026-01-02T01:04:05Z"),
        ("2026-01-02T00:30:00+01:00", "2026-01-01T23:30:00Z"),
    ],
)
def test_a_time_is_kept_in_utc_to_the_second(sent: str, kept: str) -> None:
    assert canonical_time(sent) == kept


def test_a_micro_time_keeps_its_six_digits() -> None:
    assert canonical_micro_time("2026-01-02T03:04:05.000120+01:00") == "2026-01-02T02:04:05.000120Z"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("", f'parsing time "" as {MICRO}: cannot parse "" as "2006"'),
        ("2026-01-02", f'parsing time "2026-01-02" as {MICRO}: cannot parse "" as "T"'),
        (
            "2026-01-02T03:04:05.1Z",
            f'parsing time "2026-01-02T03:04:05.1Z" as {MICRO}: cannot parse ".1Z" as ".000000"',
        ),
        (
            "2026-01-02T03:04:05.1234567Z",
            f'parsing time "2026-01-02T03:04:05.1234567Z" as {MICRO}: cannot parse "7Z" as "Z07:00"',
        ),
        (
            "2026-13-02T03:04:05.000000Z",
            'parsing time "2026-13-02T03:04:05.000000Z": month out of range',
        ),
        ("2026-02-30T03:04:05.000000Z", 'parsing time "2026-02-30T03:04:05.000000Z": day out of range'),
        (
            "2026-01-02T03:04:05.000000Zx",
            'parsing time "2026-01-02T03:04:05.000000Zx": extra text: "x"',
        ),
    ],
)
def test_what_is_no_time_is_refused_where_reading_stopped(sent: str, why: str) -> None:
    with pytest.raises(TimeError) as caught:
        canonical_micro_time(sent)
    assert str(caught.value) == why


def test_a_plain_time_is_refused_with_its_own_layout() -> None:
    with pytest.raises(TimeError, match="cannot parse") as caught:
        canonical_time("now")
    assert str(caught.value) == f'parsing time "now" as {WHOLE}: cannot parse "now" as "2006"'
