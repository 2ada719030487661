"""Timers of readiness gates: they start when they should, end when they should, and only then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.node import NodeCondition, NodeReadinessGate
from nodeward.base.duration import SECOND_NS
from nodeward.rules.readiness_timers import Timers, advance, unsettled_by_reboot
from tests.rules.test_readiness import CNI, DISK, READY, condition, gate

OVER = condition(CNI, "Unknown", "TimeoutExceeded")


def _play(
    gates: list[NodeReadinessGate], story: list[tuple[int, list[NodeCondition]]], timers: Timers | None = None
) -> list[list[str]]:
    """What is to be written at each moment of a story, told in seconds."""
    timers = timers or Timers()
    told = []
    for second, conditions in story:
        timers, expired = advance(timers, gates, conditions, second * SECOND_NS)
        told.append(expired)
    return told


def test_the_timer_starts_when_ready_is_true_and_not_before() -> None:
    story = [(0, []), (60, [READY]), (239, [READY]), (240, [READY])]
    assert _play([gate(CNI)], story) == [[], [], [], [CNI]]


def test_ready_that_goes_away_and_comes_back_does_not_start_timers_anew() -> None:
    story = [(0, [READY]), (100, [condition("Ready", "False")]), (150, [READY]), (180, [READY])]
    assert _play([gate(CNI)], story)[-1] == [CNI]


def test_each_gate_has_its_own_time() -> None:
    gates = [gate(CNI, seconds=180), gate(DISK, seconds=300)]
    timers, _ = advance(Timers(), gates, [READY], 0)
    assert timers.next_expiry_ns(gates) == 180 * SECOND_NS
    assert _play(gates, [(180, [READY]), (299, [READY, OVER]), (300, [READY, OVER])], timers) == [
        [CNI],
        [],
        [DISK],
    ]


def test_a_gate_that_holds_in_time_is_never_given_up_not_even_when_it_fails_later() -> None:
    story = [
        (0, [READY]),
        (100, [READY, condition(CNI, "True")]),
        (200, [READY, condition(CNI, "False")]),
        (9999, [READY, condition(CNI, "False")]),
    ]
    assert _play([gate(CNI)], story) == [[], [], [], []]


def test_an_expiry_is_told_until_the_condition_says_so() -> None:
    story = [(0, [READY]), (180, [READY]), (200, [READY]), (210, [READY, OVER]), (900, [READY, OVER])]
    assert _play([gate(CNI)], story) == [[], [CNI], [CNI], [], []]


def test_failing_after_it_was_given_up_starts_a_new_full_timer() -> None:
    failing = [READY, condition(CNI, "False")]
    story = [
        (0, [READY]),
        (180, [READY]),
        (181, [READY, OVER]),
        (500, failing),
        (679, failing),
        (680, failing),
    ]
    assert _play([gate(CNI)], story) == [[], [CNI], [], [], [], [CNI]]


def test_a_gate_added_later_counts_from_its_addition_and_a_removed_one_is_forgotten() -> None:
    timers, _ = advance(Timers(), [], [READY], 0)
    timers, expired = advance(timers, [gate(CNI)], [READY], 500 * SECOND_NS)
    assert expired == []
    timers, _ = advance(timers, [], [READY], 600 * SECOND_NS)
    timers, expired = advance(timers, [gate(CNI)], [READY], 700 * SECOND_NS)
    assert (expired, timers.next_expiry_ns([gate(CNI)])) == ([], 880 * SECOND_NS)


def test_a_restart_starts_all_timers_anew_and_leaves_what_was_given_up() -> None:
    assert _play([gate(CNI)], [(0, [READY]), (100, [READY])]) == [[], []]
    assert _play([gate(CNI)], [(100, [READY]), (279, [READY]), (280, [READY])]) == [[], [], [CNI]]
    assert _play([gate(CNI)], [(0, [READY, OVER]), (9999, [READY, OVER])]) == [[], []]


def test_a_changed_timeout_counts_from_the_same_start() -> None:
    timers, _ = advance(Timers(), [gate(CNI, seconds=180)], [READY], 0)
    _, expired = advance(timers, [gate(CNI, seconds=50)], [READY], 60 * SECOND_NS)
    assert expired == [CNI]
    _, expired = advance(timers, [gate(CNI, seconds=600)], [READY], 200 * SECOND_NS)
    assert expired == []


def test_no_time_at_all_means_at_once() -> None:
    assert _play([gate(CNI, seconds=0)], [(0, [READY])]) == [[CNI]]


@given(st.integers(0, 100), st.integers(0, 50), st.lists(st.integers(0, 400), min_size=1, max_size=20))
def test_no_gate_gives_up_before_its_whole_time_has_passed(
    timeout: int, ready_at: int, looks: list[int]
) -> None:
    timers = Timers()
    first_ready: int | None = None
    for second in sorted(looks):
        conditions = [READY] if second >= ready_at else []
        if conditions and first_ready is None:
            first_ready = second
        timers, expired = advance(timers, [gate(CNI, seconds=timeout)], conditions, second * SECOND_NS)
        assert bool(expired) is (first_ready is not None and second - first_ready >= timeout)


def test_after_a_reboot_only_conditions_that_are_there_become_unknown() -> None:
    gates = [gate(CNI), gate(DISK), gate("example.com/Gone")]
    seen = [
        READY,
        condition(CNI, "True"),
        condition(DISK, "Unknown", "NodeRestarted"),
        condition("example.com/NoGate", "True"),
    ]
    assert unsettled_by_reboot(gates, seen) == [CNI]
