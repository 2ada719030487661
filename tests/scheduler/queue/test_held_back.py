"""Pods are held back as in Kubernetes: by backoff, by gates, and for five minutes at most by anything else."""

from __future__ import annotations

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.scheduler.queue.backoff import BackoffRule
from nodeward.scheduler.queue.queued_pod import Place
from tests.scheduler.queue.pods import (
    CLAIM_ADD,
    NODE_ADD,
    PROFILE,
    Gate,
    make_queue,
    names,
    reject,
    take,
    view,
    was_flushed,
    where,
)


def test_a_pod_woken_soon_after_it_failed_waits_for_its_backoff() -> None:
    queue = make_queue(backoff=BackoffRule(is_windowed=False))
    queued = reject(queue, "a", "Fit", now_ns=100 * SECOND_NS)
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS + 1)
    assert where(queued) is Place.BACKOFF
    assert not queue.can_pop()
    assert queue.next_deadline_ns(100 * SECOND_NS) == 101 * SECOND_NS + 1
    assert queue.flush_backoff(101 * SECOND_NS) == 0
    assert queue.flush_backoff(101 * SECOND_NS + 1) == 1
    assert take(queue, 102 * SECOND_NS) is queued


def test_with_windows_backoff_ends_on_the_second_after() -> None:
    queue = make_queue()
    queued = reject(queue, "a", "Fit", now_ns=100 * SECOND_NS + 300)
    queue.move_all(NODE_ADD, None, ["Fit"], 101 * SECOND_NS)
    assert where(queued) is Place.BACKOFF
    assert queue.next_deadline_ns(101 * SECOND_NS) == 102 * SECOND_NS
    assert queue.flush_backoff(102 * SECOND_NS - 1) == 0
    assert queue.flush_backoff(102 * SECOND_NS) == 1
    assert where(queued) is Place.ACTIVE


def test_an_idle_scheduler_takes_rejected_pods_from_backoff_by_priority_but_not_failed_ones() -> None:
    queue = make_queue()
    for name, priority, by in (("low", 1, ["Fit"]), ("failed", 9, []), ("high", 2, ["Fit"])):
        queue.add(view(name, priority=priority), 100 * SECOND_NS)
        queue.add_unschedulable(take(queue, 100 * SECOND_NS), by, (), 100 * SECOND_NS)
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    assert queue.counts() == {"active": 0, "backoff": 3, "unschedulable": 0, "gated": 0}
    assert queue.can_pop()
    assert names(queue, 100 * SECOND_NS) == ["high", "low"]
    assert not queue.can_pop()
    assert queue.incoming["PopFromBackoffQ", "active"] == 2
    assert queue.flush_backoff(102 * SECOND_NS) == 1
    assert names(queue, 102 * SECOND_NS) == ["failed"]


def test_an_error_backs_off_and_is_retried_without_any_event() -> None:
    queue = make_queue()
    queued = reject(queue, "a", now_ns=100 * SECOND_NS)
    assert where(queued) is Place.BACKOFF
    assert (queued.consecutive_errors, queued.unschedulable_count) == (1, 0)
    assert queue.flush_backoff(102 * SECOND_NS) == 1
    assert take(queue, 102 * SECOND_NS) is queued
    queue.add_unschedulable(queued, (), (), 102 * SECOND_NS)
    assert (queued.consecutive_errors, queued.backoff_expiration_ns) == (2, 104 * SECOND_NS)
    queue.flush_backoff(105 * SECOND_NS)
    queue.add_unschedulable(take(queue, 105 * SECOND_NS), ["Fit"], (), 105 * SECOND_NS)
    assert (queued.consecutive_errors, queued.unschedulable_count) == (0, 1)


def test_a_pending_pod_skips_backoff_when_the_plugin_it_waits_for_says_queue() -> None:
    queue = make_queue()
    queued = reject(queue, "a", "Fit", pending=("Taint",))
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    assert where(queued) is Place.BACKOFF
    other = make_queue()
    queued = reject(other, "a", "Fit", pending=("Taint",))
    other.move_all(NODE_ADD, None, ["Fit", "Taint"], 100 * SECOND_NS)
    assert where(queued) is Place.ACTIVE


def test_no_backoff_at_all_if_its_maximum_is_zero() -> None:
    queue = make_queue(backoff=BackoffRule(max_ns=0))
    assert reject(queue, "a").place is Place.ACTIVE


def test_a_gated_pod_stays_out_until_its_gate_opens_and_an_event_asks_it() -> None:
    gate = Gate()
    gate.closed["uid-a"] = None
    queue = make_queue(gate)
    assert queue.add(view("a"), 0) is Place.GATED
    assert queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert queue.unschedulable_reasons["Gate", PROFILE] == 1
    gate.asked.clear()
    queue.move_all(NODE_ADD, None, ["Fit", "Gate"], 1)
    assert gate.asked == []
    queue.move_all(CLAIM_ADD, None, [], 2)
    assert gate.asked == ["uid-a"]
    assert queue.place_of("uid-a") is Place.GATED
    gate.closed.clear()
    assert queue.move_all(CLAIM_ADD, None, [], 3) == 1
    queued = take(queue, 4)
    assert (queued.initial_attempt_ns, queued.is_gated) == (3, False)
    assert queue.unschedulable_reasons["Gate", PROFILE] == 0


def test_a_gated_pod_is_let_in_by_a_change_of_its_own() -> None:
    gate = Gate()
    gate.closed["uid-a"] = None
    queue = make_queue(gate)
    queue.add(view("a"), 0)
    gate.closed.clear()
    assert queue.update(view("a"), view("a"), 1) is Place.GATED
    assert queue.update(view("a"), view("a", labels={"x": "y"}), 2) is Place.ACTIVE


def test_a_gate_that_closes_keeps_a_woken_pod_out() -> None:
    gate = Gate()
    queue = make_queue(gate)
    queued = reject(queue, "a", "Fit")
    gate.closed["uid-a"] = None
    assert queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS) == 0
    assert where(queued) is Place.GATED
    assert queued.unschedulable_plugins == ("Fit", "Gate")


def test_without_windows_the_gate_is_asked_when_backoff_is_over() -> None:
    gate = Gate()
    queue = make_queue(gate, backoff=BackoffRule(is_windowed=False))
    queued = reject(queue, "a", "Fit")
    gate.closed["uid-a"] = None
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    assert where(queued) is Place.BACKOFF
    assert queue.flush_backoff(200 * SECOND_NS) == 0
    assert where(queued) is Place.GATED


def test_a_pod_that_waited_five_minutes_is_tried_again() -> None:
    queue = make_queue()
    queued = reject(queue, "a", "Deaf", now_ns=100 * SECOND_NS)
    assert queue.next_deadline_ns(100 * SECOND_NS) == 401 * SECOND_NS
    assert queue.flush_unschedulable(400 * SECOND_NS) == 0
    assert queue.flush_unschedulable(401 * SECOND_NS) == 1
    assert where(queued) is Place.ACTIVE
    assert was_flushed(queued)
    queue.add_unschedulable(take(queue, 401 * SECOND_NS), ["Deaf"], (), 402 * SECOND_NS)
    assert not was_flushed(queued)
    assert queue.next_deadline_ns(402 * SECOND_NS) == 703 * SECOND_NS


def test_a_gated_pod_is_asked_again_every_five_minutes() -> None:
    gate = Gate()
    gate.closed["uid-a"] = None
    queue = make_queue(gate)
    queue.add(view("a"), 0)
    gate.asked.clear()
    assert queue.flush_unschedulable(301 * SECOND_NS) == 0
    assert gate.asked == ["uid-a"]
    assert queue.next_deadline_ns(301 * SECOND_NS) == 602 * SECOND_NS
    queued = queue.get("uid-a")
    assert queued is not None
    assert not was_flushed(queued)


def test_a_flush_does_not_wake_pods_in_flight() -> None:
    queue = make_queue()
    reject(queue, "old", "Deaf", now_ns=0)
    queue.add(view("new"), 0)
    queued = take(queue, 0)
    queue.flush_unschedulable(400 * SECOND_NS)
    assert queue.add_unschedulable(queued, ["Deaf"], (), 400 * SECOND_NS) is Place.UNSCHEDULABLE


def test_activated_pods_skip_backoff_and_one_in_flight_is_tried_again() -> None:
    queue = make_queue()
    waiting = reject(queue, "waiting", "Deaf")
    backing_off = reject(queue, "backing-off")
    queue.add(view("flying"), 0)
    flying = take(queue, 100 * SECOND_NS)
    queue.activate([view("flying"), view("backing-off"), view("unknown"), view("waiting")], 100 * SECOND_NS)
    assert where(waiting) is Place.ACTIVE
    assert where(backing_off) is Place.ACTIVE
    assert queue.incoming["ForceActivate", "active"] == 2
    assert queue.add_unschedulable(flying, ["Deaf"], (), 100 * SECOND_NS) is Place.BACKOFF
    assert queue.place_of("uid-unknown") is Place.GONE


@pytest.mark.parametrize(("is_windowed", "place"), [(True, Place.ACTIVE), (False, Place.GATED)])
def test_activation_asks_the_gate_unless_backoff_has_asked_it(is_windowed: bool, place: Place) -> None:
    gate = Gate()
    queue = make_queue(gate, backoff=BackoffRule(is_windowed=is_windowed))
    queued = reject(queue, "a", "Fit")
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    assert where(queued) is Place.BACKOFF
    gate.closed["uid-a"] = None
    queue.activate([view("a")], 100 * SECOND_NS)
    assert where(queued) is place
