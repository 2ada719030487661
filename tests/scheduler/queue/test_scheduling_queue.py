"""The scheduling queue behaves as Kubernetes' does: order, wake-ups, updates, and nothing lost in a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from nodeward.api.storage_v1 import CSINode
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
    WaitingPodIndex,
)
from nodeward.scheduler.framework.plugin import EnqueueExtensions
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.queue.hints import hint_map
from nodeward.scheduler.queue.queued_pod import Place, sort_key_of
from nodeward.scheduler.queue.scheduling_queue import SchedulingQueue
from tests.scheduler.queue.pods import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    PROFILE,
    Fit,
    Gate,
    Passing,
    make_queue,
    names,
    reject,
    take,
    view,
    where,
)


def test_higher_priority_comes_first_then_who_came_first() -> None:
    queue = make_queue()
    for at, (name, priority) in enumerate([("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)]):
        queue.add(view(name, priority=priority), at)
    assert names(queue, SECOND_NS) == ["b", "d", "a", "c", "e"]


def test_pods_that_came_in_the_same_instant_keep_their_order() -> None:
    queue = make_queue()
    expected = [f"pod-{number * 7919 % 1000}" for number in range(1000)]
    for name in expected:
        queue.add(view(name), 5)
    assert names(queue, SECOND_NS) == expected


def test_the_order_can_be_a_comparison_of_a_plugin() -> None:
    sort = sort_key_of(lambda one, other: one.pod.name > other.pod.name)
    queue = SchedulingQueue({PROFILE: hint_map([Fit()])}, {}, sort)
    for name in ("b", "c", "a"):
        queue.add(view(name), 0)
    assert names(queue, SECOND_NS) == ["c", "b", "a"]


def test_an_empty_queue_gives_nothing() -> None:
    queue = make_queue()
    assert not queue.can_pop()
    assert queue.pop(0) is None


def test_a_rejected_pod_waits_until_a_plugin_that_rejected_it_says_queue() -> None:
    queue = make_queue()
    queued = reject(queue, "a", "Fit")
    assert where(queued) is Place.UNSCHEDULABLE
    assert queue.move_all(NODE_ADD, None, ["Taint"], 200 * SECOND_NS) == 0
    assert where(queued) is Place.UNSCHEDULABLE
    assert queue.move_all(NODE_ADD, None, ["Fit"], 200 * SECOND_NS) == 1
    assert where(queued) is Place.ACTIVE


@pytest.mark.parametrize(
    ("by", "event", "is_woken"),
    [
        ("Taint", NODE_TAINT, True),
        ("Taint", NODE_ADD, True),
        ("Taint", NODE_LABEL, False),
        ("Fit", NODE_TAINT, False),
        ("Fit", CLAIM_ADD, False),
        ("Unhinted", CLAIM_ADD, True),
        ("Unhinted", NODE_ADD, False),
        ("Deaf", NODE_ADD, False),
        ("Deaf", CLAIM_ADD, False),
        ("Everything", NODE_LABEL, True),
        ("Everything", ClusterEvent(CSINode, Action.DELETE), True),
        ("Deaf", ClusterEvent(Resource.WILDCARD, Action.ALL), True),
    ],
)
def test_only_events_a_plugin_registered_wake_its_pods(by: str, event: ClusterEvent, is_woken: bool) -> None:
    queue = make_queue()
    queued = reject(queue, "a", by)
    assert queue.move_all(event, None, [by], 200 * SECOND_NS) == int(is_woken)
    assert queued.place is (Place.ACTIVE if is_woken else Place.UNSCHEDULABLE)


def test_pods_of_a_profile_without_hints_are_woken_by_any_event_somebody_wants() -> None:
    queue = make_queue()
    queue.add(view("a", profile="other"), 0)
    queued = take(queue, 0)
    queue.add_unschedulable(queued, ["Fit"], (), 0)
    assert queue.move_all(NODE_LABEL, None, [], 100 * SECOND_NS) == 1
    assert where(queued) is Place.ACTIVE


def test_an_event_during_the_cycle_is_not_lost() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queued = take(queue, 0)
    queue.move_all(NODE_ADD, None, ["Taint"], 1)
    queue.move_all(NODE_ADD, None, ["Fit"], 2)
    assert queue.in_flight_events() == 2
    assert queue.add_unschedulable(queued, ["Fit"], (), 3) is Place.BACKOFF
    assert queue.in_flight_events() == 0


def test_events_before_the_cycle_and_events_for_others_do_not_wake_it() -> None:
    queue = make_queue()
    queue.add(view("first"), 0)
    queue.add(view("second"), 1)
    first = take(queue, 2)
    queue.move_all(NODE_ADD, None, ["Fit"], 3)
    second = take(queue, 4)
    queue.move_all(NODE_ADD, None, ["Taint"], 5)
    assert queue.add_unschedulable(second, ["Fit"], (), 6) is Place.UNSCHEDULABLE
    assert queue.add_unschedulable(first, ["Fit"], (), 6) is Place.BACKOFF


def test_events_are_forgotten_when_no_pod_in_flight_needs_them() -> None:
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(view(name), 0)
    first = take(queue, 0)
    queue.move_all(NODE_ADD, None, [], 1)
    second = take(queue, 1)
    queue.move_all(NODE_ADD, None, [], 2)
    queue.move_all(NODE_LABEL, None, [], 2)
    assert queue.in_flight_events() == 3
    queue.done(first.uid)
    assert queue.in_flight_events() == 2
    queue.done(second.uid)
    queue.done(second.uid)
    queue.move_all(NODE_ADD, None, [], 3)
    assert queue.in_flight_events() == 0
    assert len(queue) == 0


def test_a_change_of_the_pod_during_its_cycle_counts_and_the_new_version_comes_back() -> None:
    queue = make_queue()
    old, new = view("a"), view("a", labels={"x": "y"})
    queue.add(old, 0)
    queued = take(queue, 0)
    assert queue.update(old, new, 1) is Place.IN_FLIGHT
    assert queued.pod is old
    assert queue.add_unschedulable(queued, ["Taint"], (), 2) is Place.BACKOFF
    assert queued.pod is new


def test_a_change_of_one_pod_in_flight_does_not_concern_another() -> None:
    queue = make_queue()
    old, new = view("a"), view("a", labels={"x": "y"})
    queue.add(old, 0)
    queue.add(view("b"), 1)
    take(queue, 2)
    other = take(queue, 2)
    queue.update(old, new, 3)
    assert queue.add_unschedulable(other, ["Taint"], (), 4) is Place.UNSCHEDULABLE


def test_a_pod_deleted_during_its_cycle_does_not_come_back() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queued = take(queue, 0)
    queue.delete(view("a"))
    assert queue.place_of("uid-a") is Place.IN_FLIGHT
    queue.nominate(queued, "node-1")
    assert queue.nominator.node_of("uid-a") == ""
    assert queue.add_unschedulable(queued, ["Fit"], (), 1) is Place.GONE
    assert len(queue) == 0


def test_a_pod_deleted_and_created_again_during_its_cycle_is_another_pod() -> None:
    queue = make_queue()
    queue.add(view("a", uid="one"), 0)
    queued = take(queue, 0)
    queue.update(view("a", uid="one"), view("a", uid="two"), 1)
    assert queue.add_unschedulable(queued, ["Fit"], (), 2) is Place.GONE
    assert queue.place_of("two") is Place.ACTIVE


def test_a_pod_that_was_taken_for_deleted_during_its_cycle_and_shows_up_again_is_kept() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queued = take(queue, 0)
    queue.delete(view("a"))
    queue.add(view("a", nominated="node-1"), 1)
    assert queue.nominator.node_of("uid-a") == "node-1"
    assert queue.add_unschedulable(queued, ["Fit"], (), 2) is Place.UNSCHEDULABLE


def test_a_pod_that_was_not_in_a_cycle_cannot_come_back_from_one() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queued = take(queue, 0)
    queue.done(queued.uid)
    with pytest.raises(InvariantBroken):
        queue.add_unschedulable(queued, ["Fit"], (), 1)


def test_an_update_of_a_waiting_pod_wakes_it_only_if_a_rejector_cares() -> None:
    queue = make_queue()
    fit, taint = reject(queue, "fit", "Fit"), reject(queue, "taint", "Taint")
    for name in ("fit", "taint"):
        queue.update(view(name), view(name, labels={"x": "y"}), 200 * SECOND_NS)
    assert where(fit) is Place.UNSCHEDULABLE
    assert fit.pod.labels == {"x": "y"}
    assert where(taint) is Place.ACTIVE
    assert queue.incoming["TargetPodUpdatePodLabel", "active"] == 1


def test_an_update_of_a_queued_pod_sorts_it_anew_and_one_of_an_unknown_pod_adds_it() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queue.add(view("b"), 1)
    queue.update(view("b"), view("b", priority=3), 2)
    queue.update(view("c"), view("c", priority=1), 3)
    assert names(queue, SECOND_NS) == ["b", "c", "a"]


def test_adding_a_pod_twice_is_an_update() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queue.add(view("b"), 1)
    queue.add(view("a", labels={"x": "y"}), 2)
    assert len(queue) == 2
    assert take(queue, 3).pod.labels == {"x": "y"}


def test_only_wanted_pods_are_moved() -> None:
    queue = make_queue()
    one, other = reject(queue, "one", "Fit"), reject(queue, "other", "Fit")
    assert queue.move_all(NODE_ADD, None, ["Fit"], 200 * SECOND_NS, lambda pod: pod.name == "other") == 1
    assert (one.place, other.place) == (Place.UNSCHEDULABLE, Place.ACTIVE)


def test_pods_on_nodes_wake_those_that_wait_for_them() -> None:
    queue = make_queue()
    for step in ("added", "updated", "deleted"):
        queued = reject(queue, step, "Everything")
        pod = view("other")
        if step == "added":
            queue.assigned_pod_added(pod, 200 * SECOND_NS)
        elif step == "updated":
            queue.assigned_pod_updated(pod, view("other", labels={"x": "y"}), 200 * SECOND_NS)
        else:
            queue.assigned_pod_deleted(pod, 200 * SECOND_NS)
        assert where(queued) is Place.ACTIVE
        queue.delete(queued.pod)


@pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED])
def test_a_deleted_pod_is_gone_from_wherever_it_was(place: Place) -> None:
    gate = Gate()
    queue = make_queue(gate)
    if place is Place.GATED:
        gate.closed["uid-a"] = None
    if place in (Place.ACTIVE, Place.GATED):
        queue.add(view("a", nominated="node-1"), 0)
    else:
        reject(queue, "a", *(["Fit"] if place is Place.UNSCHEDULABLE else []))
    assert [queued.uid for queued in queue.pods_in(place)] == ["uid-a"]
    queue.delete(view("a"))
    assert queue.place_of("uid-a") is Place.GONE
    assert queue.pods_in(place) == []
    assert not +queue.unschedulable_reasons
    assert len(queue.nominator) == 0
    assert queue.next_deadline_ns(0) is None
    assert queue.pop(1000 * SECOND_NS) is None


def test_incoming_pods_are_counted_by_why_and_where() -> None:
    queue = make_queue()
    reject(queue, "a", "Fit")
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    queue.flush_backoff(200 * SECOND_NS)
    assert dict(queue.incoming) == {
        ("UnscheduledPodAdd", "active"): 1,
        ("ScheduleAttemptFailure", "unschedulable"): 1,
        ("NodeAdd", "backoff"): 1,
        ("BackoffComplete", "active"): 1,
    }


def test_plugins_are_blamed_from_rejection_to_the_next_attempt() -> None:
    queue = make_queue()
    reject(queue, "a", "Fit", pending=("Taint", "Fit"))
    assert +queue.unschedulable_reasons == {("Fit", PROFILE): 1, ("Taint", PROFILE): 1}
    queue.move_all(NODE_ADD, None, ["Fit", "Taint"], 200 * SECOND_NS)
    take(queue, 200 * SECOND_NS)
    assert not +queue.unschedulable_reasons
    assert not -queue.unschedulable_reasons


def test_a_nomination_survives_the_cycle_and_updates_that_do_not_know_it() -> None:
    queue = make_queue()
    queue.add(view("a"), 0)
    queued = take(queue, 0)
    queue.add_unschedulable(queued, ["Fit"], (), 1)
    queue.nominate(queued, "node-1")
    newer = view("a", labels={"x": "y"})
    queue.update(view("a"), newer, 2)
    assert queue.nominator.for_node("node-1") == [newer]


def test_the_best_of_all_events_during_the_cycle_counts() -> None:
    queue = make_queue()
    queue.add(view("a"), 100 * SECOND_NS)
    queued = take(queue, 100 * SECOND_NS)
    queue.move_all(NODE_ADD, None, ["Fit"], 100 * SECOND_NS)
    queue.move_all(NODE_ADD, None, ["Taint"], 100 * SECOND_NS)
    assert queue.add_unschedulable(queued, ["Fit"], ["Taint"], 100 * SECOND_NS) is Place.ACTIVE


class Indexed(Passing, EnqueueExtensions):
    """Finds pods by the label `key`; objects are texts, and "all" concerns every pod."""

    name: ClassVar[str] = "Indexed"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        index = WaitingPodIndex(
            lambda pod: [pod.labels["key"]] if "key" in pod.labels else [],
            lambda old, new: None if new == "all" else [new],
        )
        return (ClusterEventWithHint(NODE_ADD, self._hint, index),)

    def _hint(self, pod: PodView, old: Any, new: Any) -> QueueingHint:
        self.asked.append(pod.name)
        return QueueingHint.QUEUE


def test_an_event_with_keys_asks_only_about_the_pods_that_have_them() -> None:
    plugin = Indexed()
    queue = SchedulingQueue({PROFILE: hint_map([plugin, Fit()])}, {})
    for name, key in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "")):
        queue.add(view(name, labels={"key": key} if key else {}), 0)
    for by in (("Indexed",), ("Indexed",), ("Indexed", "Fit"), ("Indexed",)):
        queue.add_unschedulable(take(queue, 0), by, (), 0)
    queue.move_all(NODE_ADD, None, "y", 10**12)
    # A pod that another plugin rejected too, which has no index, is asked about whatever its keys are.
    assert plugin.asked == ["b", "c"]
    plugin.asked.clear()
    queue.move_all(NODE_ADD, None, "z", 10**12)
    assert plugin.asked == []
    # A changed pod is found under its new key.
    queue.update(view("a", labels={"key": "x"}), view("a", labels={"key": "z"}), 10**12)
    queue.move_all(NODE_ADD, None, "x", 10**12)
    assert plugin.asked == []
    queue.move_all(NODE_ADD, None, "z", 10**12)
    assert plugin.asked == ["a"]
    queue.move_all(NODE_ADD, None, "all", 10**12)
    assert plugin.asked == ["a", "d"]
