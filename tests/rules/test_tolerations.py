"""Tolerations match taints as the rules say, for any text anybody may write."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.resource_v1 import DeviceTaint, DeviceToleration
from nodeward.rules.tolerations import canonical_int64, first_tolerating, has_unreadable_value, tolerates
from tests.keps.ledger import statement

_KEYS = st.sampled_from(["", "sla", "example.com/cost"])
_EFFECTS = st.sampled_from(["", "NoSchedule", "PreferNoSchedule", "NoExecute"])
_OPERATORS = st.sampled_from(["", "Equal", "Exists", "Lt", "Gt", "Ge", "lt"])
_AROUND = [-(2**63) - 1, -(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1, 2**63, 10**30]
_NUMBERS = st.one_of(st.integers(-(2**64), 2**64), st.integers(-3, 3), st.sampled_from(_AROUND)).map(str)
_ODD = st.sampled_from(
    [
        "",
        "-",
        "+",
        "-0",
        "+5",
        "00",
        "0950",
        "-01",
        " 5",
        "5 ",
        "5\n",
        "95.5",
        "1e5",
        "0x1",
        "1_000",
        "٣",
        "²",
        "high",
    ]
)
VALUES = st.one_of(_NUMBERS, _ODD, st.text(max_size=6))


def transcribed(toleration: Toleration, taint: Taint, *, numeric: bool) -> bool:
    """The rules once more, as plainly as they can be put: no shortcuts, no shared code."""
    same_effect = toleration.effect in ("", taint.effect)
    same_key = toleration.key in ("", taint.key)
    answers = {
        "": toleration.value == taint.value,
        "Equal": toleration.value == taint.value,
        "Exists": True,
        "Lt": False,
        "Gt": False,
    }
    mine, theirs = number(toleration.value), number(taint.value)
    if numeric and mine is not None and theirs is not None:
        answers["Lt"] = theirs < mine
        answers["Gt"] = theirs > mine
    return same_effect and same_key and answers.get(toleration.operator, False)


def number(text: str) -> int | None:
    """A text is a number only if it is exactly what writing that number gives, and it fits into 64 bits."""
    digits = text[1:] if text.startswith("-") else text
    if not digits or not all(digit in "0123456789" for digit in digits) or str(int(text)) != text:
        return None
    return int(text) if -9223372036854775808 <= int(text) <= 9223372036854775807 else None


@given(VALUES)
@example("9223372036854775807")
@example("-9223372036854775808")
@example("9223372036854775808")
@example("-9223372036854775809")
@example("-0")
def test_a_number_is_read_only_in_its_one_canonical_form(text: str) -> None:
    assert canonical_int64(text) == number(text)


@statement("5471-T37", part="library")
@given(
    st.builds(Toleration, key=_KEYS, operator=_OPERATORS, value=VALUES, effect=_EFFECTS),
    st.builds(Taint, key=_KEYS, value=VALUES, effect=_EFFECTS),
    st.booleans(),
)
def test_matching_agrees_with_a_direct_transcription_of_the_rules(
    toleration: Toleration, taint: Taint, numeric: bool
) -> None:
    assert tolerates(toleration, taint, numeric=numeric) is transcribed(toleration, taint, numeric=numeric)


@given(st.sampled_from(["Lt", "Gt"]), VALUES, VALUES)
def test_less_and_greater_and_equal_exclude_each_other(operator: str, mine: str, theirs: str) -> None:
    taint = Taint(key="sla", value=theirs, effect="NoSchedule")
    answers = [
        tolerates(Toleration(key="sla", operator=each, value=mine), taint, numeric=True)
        for each in ("Lt", "Gt", "Equal")
    ]
    both_are_numbers = number(mine) is not None and number(theirs) is not None
    assert sum(answers) == (1 if both_are_numbers else mine == theirs)
    assert not tolerates(Toleration(key="sla", operator=operator, value=mine), taint, numeric=False)


@given(
    st.lists(st.builds(Toleration, key=_KEYS, operator=_OPERATORS, value=VALUES, effect=_EFFECTS), max_size=4)
)
def test_the_first_toleration_that_covers_a_taint_decides(tolerations: list[Toleration]) -> None:
    taint = Taint(key="sla", value="5", effect="NoExecute")
    covering = [each for each in tolerations if tolerates(each, taint, numeric=True)]
    found = first_tolerating(tolerations, taint, numeric=True)
    assert found is (covering[0] if covering else None)


def test_devices_are_judged_by_the_same_rules() -> None:
    taint = DeviceTaint(key="example.com/wear", value="80", effect="NoExecute")
    worn = DeviceToleration(key="example.com/wear", operator="Lt", value="90")
    assert tolerates(worn, taint, numeric=True)
    assert not tolerates(worn, taint, numeric=False)
    assert not tolerates(DeviceToleration(operator="Exists", effect="NoSchedule"), taint, numeric=True)


@pytest.mark.parametrize("value", ["high", "0950", "95.5", "", "9223372036854775808"])
def test_a_value_is_unreadable_where_a_number_is_compared_with_it_and_only_there(value: str) -> None:
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    numeric = Toleration(key="sla", operator="Gt", value="900")
    assert has_unreadable_value(taint, [numeric])
    assert not has_unreadable_value(Taint(key="sla", value="950", effect="NoSchedule"), [numeric])
    others = [
        Toleration(key="sla", operator="Equal", value="x"),
        Toleration(key="cost", operator="Gt", value="x"),
        Toleration(key="sla", operator="Gt", value="x", effect="NoExecute"),
    ]
    assert not has_unreadable_value(taint, others)
