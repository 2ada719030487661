"""Selectors mean what kubectl users think they mean, and say in kubectl's words what they do not understand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.meta import LabelSelector, LabelSelectorRequirement
from nodeward.rules.selectors import (
    EVERYTHING,
    LabelRequirements,
    Requirement,
    SelectorError,
    from_label_selector,
    parse_fields,
    parse_labels,
)

_LABELS = {"app": "web", "tier": "front", "rank": "10", "odd": "1_000", "empty": ""}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("gone!=x", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("gone notin (web)", True),
        ("app", True),
        ("gone", False),
        ("!gone", True),
        ("!app", False),
        ("empty=", True),
        ("empty in ()", True),
        ("rank>9", True),
        ("rank>10", False),
        ("rank<11", True),
        ("rank>09", True),
        ("app>1", False),
        ("odd>1", False),
        ("app=web,tier=front,!gone", True),
        ("app=web,tier=back", False),
    ],
)
def test_text_selects_by_label(text: str, answer: bool) -> None:
    assert parse_labels(text).matches(_LABELS) is answer


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,", "expected: identifier after ','"),
        ("a in b", "found 'b' expected: '('"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a>b", "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>9223372036854775808", "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a/b/c=d", "Invalid value"),
        ("a=b%", "Invalid value"),
    ],
)
def test_what_is_no_selector_is_told(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert complaint in str(caught.value)


_WORDS = st.text("abcXYZ019", min_size=1, max_size=5)
_REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)),
        _WORDS,
        st.sampled_from(["=", "!="]),
        _WORDS,
    ),
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        _WORDS,
        st.sampled_from(["in", "notin"]),
        st.sets(_WORDS, min_size=1, max_size=3),
    ),
    st.builds(lambda key, operator: Requirement(key, operator), _WORDS, st.sampled_from(["exists", "!"])),
    st.builds(
        lambda key, operator, value: Requirement(key, operator, (str(value),)),
        _WORDS,
        st.sampled_from(["<", ">"]),
        st.integers(0, 99),
    ),
).filter(lambda each: each.key not in ("in", "notin"))


@given(st.lists(_REQUIREMENTS, max_size=4))
def test_a_selector_can_be_written_and_read_again(requirements: list[Requirement]) -> None:
    selector = LabelRequirements(tuple(requirements))
    assert parse_labels(str(selector)) == selector
    assert selector.is_everything is (not requirements)


def test_the_struct_form_selects_nothing_when_absent_and_everything_when_empty() -> None:
    assert from_label_selector(None) is None
    assert from_label_selector(LabelSelector()) == EVERYTHING
    wanted = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=[
            LabelSelectorRequirement(key="tier", operator="In", values=["front", "back"]),
            LabelSelectorRequirement(key="gone", operator="DoesNotExist"),
        ],
    )
    compiled = from_label_selector(wanted)
    assert compiled is not None
    assert compiled.matches(_LABELS)
    assert not compiled.matches({**_LABELS, "gone": ""})
    unknown = LabelSelector(match_expressions=[LabelSelectorRequirement(key="a", operator="Near")])
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        from_label_selector(unknown)


def test_fields_are_selected_by_value_and_unknown_ones_are_told() -> None:
    known = ("spec.nodeName", "status.phase")
    selector = parse_fields("spec.nodeName=n1,status.phase!=Failed", known)
    values = {"spec.nodeName": "n1", "status.phase": "Running"}
    assert selector.matches(values.__getitem__)
    assert not selector.matches({**values, "status.phase": "Failed"}.__getitem__)
    assert selector.exact("spec.nodeName") == "n1"
    assert selector.exact("status.phase") is None
    assert str(selector) == "spec.nodeName=n1,status.phase!=Failed"
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.x"):
        parse_fields("spec.x=1", known)
