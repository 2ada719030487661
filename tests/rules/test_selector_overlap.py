"""Whether two selectors can select the same thing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.rules.selector_overlap import overlap
from nodeward.rules.selectors import LabelRequirements, Requirement, parse_labels

_VALUES = ("a", "b", "c", "1", "2", "3")


@pytest.mark.parametrize(
    ("one", "other", "can_meet"),
    [
        ("a=1", "a=1", True),
        ("a=1", "a=2", False),
        ("a=1", "b=2", True),
        ("a in (1,2)", "a in (2,3)", True),
        ("a in (1,2)", "a notin (1,2)", False),
        ("a", "!a", False),
        ("!a", "a notin (x)", True),
        ("!a", "a=x", False),
        ("a>5", "a<7", True),
        ("a>5", "a<6", False),
        ("a>5,a<7", "a!=6", False),
        ("a>5", "a in (5,x)", False),
        ("a>5", "a in (6)", True),
        ("", "a=1", True),
        ("a=1,a=2", "", False),
    ],
)
def test_selectors_meet_if_some_labels_match_both(one: str, other: str, can_meet: bool) -> None:
    assert overlap(parse_labels(one), parse_labels(other)) is can_meet
    assert overlap(parse_labels(other), parse_labels(one)) is can_meet


def _requirements() -> st.SearchStrategy[Requirement]:
    keys = st.sampled_from(("x", "y"))
    some = st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3).map(tuple)
    number = st.sampled_from(("1", "2", "3")).map(lambda each: (each,))
    return st.one_of(
        st.builds(Requirement, keys, st.sampled_from(("in", "notin")), some),
        st.builds(Requirement, keys, st.sampled_from(("exists", "!")), st.just(())),
        st.builds(Requirement, keys, st.sampled_from((">", "<")), number),
    )


_SELECTORS = st.lists(_requirements(), max_size=3).map(lambda each: LabelRequirements(tuple(each)))


@given(_SELECTORS, _SELECTORS)
def test_the_answer_is_that_of_trying_all_labels(one: LabelRequirements, other: LabelRequirements) -> None:
    # Values beyond those that are named stand for all others: one word, one small and one large number.
    choices = (None, *_VALUES, "z", "-9", "9")
    labels = (
        {key: value for key, value in zip(("x", "y"), pair, strict=True) if value is not None}
        for pair in itertools.product(choices, repeat=2)
    )
    expected = any(one.matches(each) and other.matches(each) for each in labels)
    assert overlap(one, other) is expected
