"""Conditions follow from findings, and repeats change nothing."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.cluster import NamespaceCondition, NamespaceStatus
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.namespace_conditions import DeletionFindings, apply

_NOW = 1_767_225_600 * SECOND_NS
_LATER = _NOW + 60 * SECOND_NS
_words = st.text("abc./", min_size=1, max_size=4)
_counts = st.dictionaries(_words, st.integers(1, 3), max_size=3).map(Counter)
_findings = st.builds(
    DeletionFindings,
    discovery_error=st.just("") | _words,
    content_errors=st.lists(_words, max_size=3),
    remaining=_counts,
    finalizers=_counts,
)


@given(_findings, _findings)
def test_the_last_findings_decide_and_a_repeat_changes_nothing(
    first: DeletionFindings, last: DeletionFindings
) -> None:
    status, fresh = NamespaceStatus(), NamespaceStatus()
    assert apply(status, first, _NOW)
    apply(status, last, _LATER)
    apply(fresh, last, _LATER)
    assert [(c.type, c.status, c.reason, c.message) for c in status.conditions] == [
        (c.type, c.status, c.reason, c.message) for c in fresh.conditions
    ]
    assert not apply(status, last, _LATER + 1)


@given(_findings, _findings)
def test_a_transition_is_a_change_of_the_status_alone(
    first: DeletionFindings, last: DeletionFindings
) -> None:
    status = NamespaceStatus()
    apply(status, first, _NOW)
    before = {c.type: c.status for c in status.conditions}
    apply(status, last, _LATER)
    for condition in status.conditions:
        has_moved = condition.last_transition_time == "2026-01-01T00:01:00Z"
        assert has_moved == (condition.status != before[condition.type])


def test_the_order_in_which_errors_came_does_not_show() -> None:
    status = NamespaceStatus()
    apply(status, DeletionFindings(content_errors=["b", "a"], discovery_error="no answer"), _NOW)
    assert not apply(status, DeletionFindings(content_errors=["a", "b"], discovery_error="no answer"), _LATER)
    said = {c.type: c.message for c in status.conditions if c.status == "True"}
    assert said == {
        "NamespaceDeletionDiscoveryFailure": "no answer",
        "NamespaceDeletionContentFailure": "Failed to delete all resource types, 2 remaining: a, b",
    }


def test_conditions_of_others_are_left_alone() -> None:
    status = NamespaceStatus(conditions=[NamespaceCondition(type="Mine", status="Unknown", message="m")])
    apply(status, DeletionFindings(), _NOW)
    assert status.conditions[0] == NamespaceCondition(type="Mine", status="Unknown", message="m")
    assert len(status.conditions) == 6
