"""Nothing is asked for twice, and nothing is waited for for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.duration import SECOND_NS
from nodeward.controllers.pods.expectations import TIMEOUT_SECONDS, Expectations
from nodeward.machinery.clock import VirtualClock


def expectations() -> tuple[Expectations[str], VirtualClock]:
    clock = VirtualClock()
    return Expectations(clock), clock


def test_who_expects_nothing_may_act() -> None:
    assert expectations()[0].are_met("a")


def test_creations_are_waited_for_one_by_one_and_the_last_says_so() -> None:
    each, _ = expectations()
    each.expect("a", creations=2)
    assert not each.creation_seen("a")
    assert not each.are_met("a")
    assert each.creation_seen("a")
    assert each.are_met("a")
    assert not each.creation_seen("a")


def test_a_pod_that_is_seen_dying_twice_counts_once() -> None:
    each, _ = expectations()
    each.expect("a", deletions=("1", "2"))
    assert not each.deletion_seen("a", "1")
    assert not each.deletion_seen("a", "1")
    assert not each.deletion_seen("a", "9")
    assert not each.are_met("a")
    assert each.deletion_seen("a", "2")


def test_after_five_minutes_the_wait_is_over() -> None:
    each, clock = expectations()
    each.expect("a", creations=1)
    clock.elapsed_ns = int((TIMEOUT_SECONDS - 1) * SECOND_NS)
    assert each.seconds_left("a") == 1.0
    clock.elapsed_ns = int(TIMEOUT_SECONDS * SECOND_NS)
    assert each.are_met("a")


def test_owners_do_not_wait_for_each_other_and_can_be_forgotten() -> None:
    each, _ = expectations()
    each.expect("a", creations=1)
    assert each.are_met("b")
    each.forget("a")
    assert each.are_met("a")


@given(st.integers(0, 5), st.sets(st.sampled_from("abcde")), st.data())
def test_they_are_met_exactly_when_everything_was_seen(
    creations: int, deletions: set[str], data: st.DataObject
) -> None:
    each, _ = expectations()
    each.expect("k", creations=creations, deletions=sorted(deletions))
    news = data.draw(st.permutations([*["+"] * creations, *sorted(deletions)]))
    for number, one in enumerate(news):
        assert not each.are_met("k")
        is_last = each.creation_seen("k") if one == "+" else each.deletion_seen("k", one)
        assert is_last == (number == len(news) - 1)
    assert each.are_met("k")
