"""Sets of indexes behave like sets, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.controllers.job.indexes import Indexes
from nodeward.validation.batch.indexes import count_indexes

NUMBERS = st.frozensets(st.integers(0, 40), max_size=30)


@given(NUMBERS)
def test_what_is_written_is_read_back_and_is_what_the_api_accepts(numbers: frozenset[int]) -> None:
    made = Indexes.of(numbers)
    assert Indexes.parse(str(made), 100) == made
    assert count_indexes(str(made), 100) == len(made) == len(numbers)
    assert [number for number in range(50) if number in made] == sorted(numbers)


@given(NUMBERS, NUMBERS)
def test_union_and_intersection_are_those_of_sets(one: frozenset[int], two: frozenset[int]) -> None:
    assert Indexes.of(one) | Indexes.of(two) == Indexes.of(one | two)
    assert Indexes.of(one) & Indexes.of(two) == Indexes.of(one & two)


@given(NUMBERS, st.integers(0, 45))
def test_absent_numbers_come_in_order(numbers: frozenset[int], completions: int) -> None:
    expected = [number for number in range(completions) if number not in numbers]
    assert list(Indexes.of(numbers).absent(completions)) == expected


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ""),
        ("0-2,4", "0-2,4"),
        ("0,1,2", "0-2"),
        ("1,x,3", "1,3"),
        ("2-9", "2-4"),
        ("7", ""),
        ("3-1", ""),
    ],
)
def test_what_cannot_be_read_or_is_too_large_is_passed_over(text: str, read: str) -> None:
    assert str(Indexes.parse(text, 5)) == read


def test_two_neighbours_are_written_as_two_numbers() -> None:
    assert str(Indexes.of([1, 2, 5, 6, 7, 9])) == "1,2,5-7,9"
