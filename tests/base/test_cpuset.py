"""CPU sets behave as sets of numbers and are written as Linux writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.cpuset import LARGEST_CPU, CPUSet, CPUSetError

numbers = st.frozensets(st.integers(0, 200) | st.integers(0, LARGEST_CPU), max_size=60)
neighbours = st.frozensets(st.integers(0, 24))


@pytest.mark.parametrize(
    ("text", "cpus", "printed"),
    [
        ("", [], ""),
        ("5", [5], "5"),
        ("1,2,3,4,5", [1, 2, 3, 4, 5], "1-5"),
        ("0-3,8,10-11", [0, 1, 2, 3, 8, 10, 11], "0-3,8,10-11"),
        ("5-5", [5], "5"),
        ("3,1,1-2", [1, 2, 3], "1-3"),
        ("+1,007", [1, 7], "1,7"),
        ("0" * 5000, [0], "0"),
        ("65535", [65535], "65535"),
    ],
)
def test_list_texts_are_read_and_printed_in_order(text: str, cpus: list[int], printed: str) -> None:
    parsed = CPUSet.parse(text)
    assert list(parsed) == cpus
    assert str(parsed) == printed
    assert parsed == CPUSet(cpus) == CPUSet.of(*cpus)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonnumeric", 'strconv.Atoi: parsing "nonnumeric": invalid syntax'),
        ("non-numeric", 'strconv.Atoi: parsing "non": invalid syntax'),
        ("1,", 'strconv.Atoi: parsing "": invalid syntax'),
        ("-5", 'strconv.Atoi: parsing "": invalid syntax'),
        ("1-", 'strconv.Atoi: parsing "": invalid syntax'),
        ("1-2-3", 'strconv.Atoi: parsing "2-3": invalid syntax'),
        (" 1", 'strconv.Atoi: parsing " 1": invalid syntax'),
        ("1\n", 'strconv.Atoi: parsing "1\\x0a": invalid syntax'),
        ("99999999999999999999", 'strconv.Atoi: parsing "99999999999999999999": value out of range'),
        ("5-1", 'invalid range "5-1" (5 > 1)'),
        ("1--5", 'invalid range "1--5" (1 > -5)'),
        ("0-99999999", "CPU numbers go from 0 to 65535, not 99999999"),
    ],
)
def test_what_is_no_list_of_cpus_is_refused(text: str, message: str) -> None:
    with pytest.raises(CPUSetError) as caught:
        CPUSet.parse(text)
    assert str(caught.value) == message


def test_numbers_that_are_no_cpus_are_refused() -> None:
    for bad in (-1, LARGEST_CPU + 1):
        with pytest.raises(CPUSetError):
            CPUSet.of(bad)
    for bits in (-1, 1 << (LARGEST_CPU + 1)):
        with pytest.raises(CPUSetError):
            CPUSet.from_bits(bits)


@given(numbers | neighbours, numbers | neighbours)
def test_cpu_sets_agree_with_pythons_sets(left: frozenset[int], right: frozenset[int]) -> None:
    a, b = CPUSet(left), CPUSet(right)
    assert list(a) == sorted(left)
    assert len(a) == len(left)
    assert bool(a) == bool(left)
    assert (a == b, a < b, a <= b, a > b, a >= b) == (
        left == right, left < right, left <= right, left > right, left >= right,
    )  # fmt: skip
    for made, expected in (
        (a | b, left | right),
        (a & b, left & right),
        (a - b, left - right),
        (a ^ b, left ^ right),
    ):
        assert made == CPUSet(expected)
        assert hash(made) == hash(CPUSet(expected))
    assert a.isdisjoint(b) == left.isdisjoint(right)
    assert all((cpu in a) == (cpu in left) for cpu in range(-1, 30))
    assert CPUSet.EMPTY.union(a, b) == a | b


@given(numbers | neighbours)
def test_printing_and_parsing_again_gives_the_same_set(cpus: frozenset[int]) -> None:
    made = CPUSet(cpus)
    assert CPUSet.parse(str(made)) == made
    assert str(CPUSet.parse(str(made))) == str(made)
    assert CPUSet.from_bits(made.bits) == made
