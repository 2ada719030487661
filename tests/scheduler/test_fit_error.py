"""The words for pods that fit nowhere."""

from __future__ import annotations

from nodeward.scheduler.fit_error import fit_error_message


def test_reasons_are_counted_and_sorted_as_text() -> None:
    counts = {"Insufficient cpu": 2, "node(s) had untolerated taint(s)": 10, "Too many pods": 3}
    assert fit_error_message(15, counts) == (
        "0/15 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu, 3 Too many pods."
    )


def test_what_preemption_says_comes_after_it() -> None:
    assert fit_error_message(1, {"Insufficient cpu": 1}, post_filter="preemption: no.") == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: no."
    )


def test_a_pod_rejected_as_such_is_told_that_alone() -> None:
    assert fit_error_message(3, {"x": 3}, pre_filter="pod affinity terms conflict") == (
        "0/3 nodes are available: pod affinity terms conflict."
    )


def test_without_nodes_there_is_nothing_to_count() -> None:
    assert fit_error_message(0, {}) == "no nodes available to schedule pods"


def test_notes_follow_all_that_upstream_says_the_most_frequent_first() -> None:
    counts = {"node(s) had untolerated taint(s)": 30}
    notes = {"a few {d}": 2, "most {c}": 20, "as many {b}": 2, "fewest {e}": 1, "some {a}": 5}
    assert fit_error_message(30, counts, post_filter="preemption: no.", notes=notes) == (
        "0/30 nodes are available: 30 node(s) had untolerated taint(s). preemption: no. "
        "In detail: 20 most {c}, 5 some {a}, 2 a few {d}, and 2 more."
    )
