"""The scheduling queue: every pod that wants a node, from its arrival until it is bound or deleted.

In come pods, their changes, the outcome of scheduling cycles and events of the cluster; out come pods to schedule, one
at a time, best first. A pod starts in the active queue (or gated, if a PreEnqueue plugin says so); `pop` sends it into
a cycle; if no node is found it waits until an event that one of its rejectors says QUEUE to, or for five minutes, and
goes back through backoff if it failed recently. The caller owns the clock: it passes `now_ns`, always from the same
clock, and calls `flush_backoff` and `flush_unschedulable` at `next_deadline_ns`.

What must stay true: a pod is in exactly one place (`Place`) and is never lost; an event during a pod's cycle counts as
if it had come just after; the same calls give the same order whatever the hash seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.scheduler.framework.events import Action, ClusterEvent, Resource
from nodeward.scheduler.framework.plugin import PreEnqueuePlugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.queue.backoff import BackoffQueue, BackoffRule
from nodeward.scheduler.queue.gates import PreEnqueueGates
from nodeward.scheduler.queue.heap import PodHeap
from nodeward.scheduler.queue.hints import HintMap, Hints, QueueingStrategy, verdict
from nodeward.scheduler.queue.in_flight import Flight, Happened, InFlight
from nodeward.scheduler.queue.nominator import Nominator, written_node
from nodeward.scheduler.queue.pod_changes import pod_changes
from nodeward.scheduler.queue.queued_pod import NEVER, Place, QueuedPod, SortKey, priority_sort
from nodeward.scheduler.queue.waiting import UnschedulablePods

#: Labels of what is no event of the cluster.
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF: Final = "PopFromBackoffQ"
UNSCHEDULABLE_TIMEOUT: Final = "UnschedulableTimeout"
UNSCHEDULED_POD_ADD: Final = "UnscheduledPodAdd"
FORCE_ACTIVATE: Final = "ForceActivate"

ASSIGNED_POD_ADD: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE: Final = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
_FORCED: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, FORCE_ACTIVATE)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What can be set; the defaults are Kubernetes'."""

    backoff: BackoffRule = field(default_factory=BackoffRule)
    #: a pod that waited longer than this is tried again, event or not
    max_unschedulable_ns: int = 300 * SECOND_NS


class SchedulingQueue:
    """All pods waiting for a node."""

    def __init__(
        self,
        hints: Mapping[str, HintMap],
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]],
        sort: SortKey = priority_sort,
        settings: QueueSettings | None = None,
        nominator: Nominator | None = None,
    ) -> None:
        """`hints` and `pre_enqueue` are by profile (scheduler name); `nominator`: if plugins know it already."""
        self.settings: Final = settings or QueueSettings()
        self.nominator: Final = nominator if nominator is not None else Nominator()
        #: pods that entered a queue, by (why, queue): scheduler_queue_incoming_pods_total
        self.incoming: Final[Counter[tuple[str, str]]] = Counter()
        #: pods rejected by a plugin and not tried since, by (plugin, profile): scheduler_unschedulable_pods
        self.unschedulable_reasons: Final[Counter[tuple[str, str]]] = Counter()
        self._hints = Hints(hints)
        self._gates = PreEnqueueGates(pre_enqueue, self.unschedulable_reasons)
        self._backoff_rule = self.settings.backoff
        self._pods: dict[str, QueuedPod] = {}
        self._active = PodHeap(sort)
        self._backoff = BackoffQueue(self._backoff_rule, sort)
        self._waiting = UnschedulablePods(self._hints.indexes)
        self._in_flight = InFlight()

    # Looking in

    def __len__(self) -> int:
        """Every pod known, in flight or not."""
        return len(self._pods)

    def can_pop(self) -> bool:
        """Whether `pop` would give a pod."""
        return len(self._active) > 0 or self._backoff.has_early

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    def place_of(self, uid: str) -> Place:
        queued = self._pods.get(uid)
        return Place.GONE if queued is None else queued.place

    def pods_in(self, place: Place) -> list[QueuedPod]:
        """For people and tests: in the order they came there."""
        if place is Place.ACTIVE:
            return list(self._active)
        if place is Place.BACKOFF:
            return list(self._backoff)
        if place is Place.IN_FLIGHT:
            return self._in_flight.queued()
        return [queued for queued in self._waiting if queued.place is place]

    def counts(self) -> dict[str, int]:
        """scheduler_pending_pods, by queue. Pods in flight are in none."""
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": self._waiting.unschedulable,
            "gated": self._waiting.gated,
        }

    def in_flight_events(self) -> int:
        """scheduler_inflight_events: remembered for pods in a cycle."""
        return self._in_flight.events

    def next_deadline_ns(self, now_ns: int) -> int | None:
        """When to call the two flushes next (`now_ns`: now); None while nothing waits for time to pass."""
        ends = []
        over = self._backoff.next_over_ns()
        if over is not None:
            ends.append(over)
        oldest = self._waiting.oldest()
        if oldest is not None:
            # Unlike upstream, which looks every 30 s: to the second, so that a burst of pods is one wake-up.
            end = oldest.waiting_since_ns + self.settings.max_unschedulable_ns
            ends.append((end // SECOND_NS + 1) * SECOND_NS)
        return max(min(ends), now_ns) if ends else None

    # Pods come, change and go

    def add(self, pod: PodView, now_ns: int) -> Place:
        """A pod without a node. One that is known already is taken as changed."""
        known = self._pods.get(pod.uid)
        if known is not None:
            return self.update(self._newest(known), pod, now_ns)
        queued = QueuedPod(pod, now_ns)
        self._pods[pod.uid] = queued
        if written_node(pod):
            self.nominator.add(pod)
        return self._to_active(queued, UNSCHEDULED_POD_ADD, now_ns)

    def update(self, old: PodView, new: PodView, now_ns: int) -> Place:
        """A pod changed that has no node. A waiting one is woken if that may help it; an unknown one is added.

        The caller keeps back changes of pods it has placed but not yet seen bound.
        """
        if old.uid != new.uid:
            self.delete(old)
        queued = self._pods.get(new.uid)
        if queued is None:
            return self.add(new, now_ns)
        self.nominator.update(old, new)
        if queued.place is Place.IN_FLIGHT:
            self._update_in_flight(old, new)
        elif queued.place is Place.ACTIVE:
            queued.pod = new
            self._active.push(queued)
        elif queued.place is Place.BACKOFF:
            queued.pod = new
            self._backoff.push(queued)
        else:
            self._update_waiting(queued, old, new, now_ns)
        return queued.place

    def delete(self, pod: PodView) -> None:
        """The pod is gone, or has a node. If it is in a cycle, it will not come back from it."""
        self.nominator.delete(pod.uid)
        queued = self._pods.get(pod.uid)
        if queued is None:
            return
        flight = self._in_flight.get(pod.uid)
        if flight is not None:
            flight.is_gone = True
            return
        self._leave(queued)
        self._blame(queued, -1)
        self._forget(queued)

    # Scheduling cycles

    def pop(self, now_ns: int) -> QueuedPod | None:
        """The next pod to schedule, if there is one. Whoever gets it calls `done` or `add_unschedulable` with it."""
        queued = self._active.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self.incoming[POP_FROM_BACKOFF, "active"] += 1
        queued.place = Place.IN_FLIGHT
        queued.attempts += 1
        queued.popped_ns = now_ns
        self._blame(queued, -1)
        self._in_flight.take_off(queued)
        return queued

    def done(self, uid: str) -> None:
        """The pod is bound, or given up for good. Nothing happens if it is not in flight."""
        flight = self._in_flight.land(uid)
        if flight is not None:
            self._forget(flight.queued)

    def add_unschedulable(
        self, queued: QueuedPod, rejected_by: Iterable[str], pending_for: Iterable[str], now_ns: int
    ) -> Place:
        """Its cycle found no node, because of these plugins; none at all means an error that says nothing about it.

        What happened during the cycle decides where it goes. `GONE` if it was deleted meanwhile.
        """
        uid = queued.pod.uid
        flight = self._in_flight.need(uid)
        invariant(
            flight.queued is queued, f"pod {queued.pod.key} ({uid}) comes back from a cycle it was not in"
        )
        if flight.is_gone:
            self.done(uid)
            return Place.GONE
        queued.pod = flight.newest
        queued.unschedulable_plugins = tuple(sorted(set(rejected_by)))
        queued.pending_plugins = tuple(sorted(set(pending_for)))
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp_ns = now_ns
        queued.backoff_expiration_ns = NEVER
        queued.was_flushed = False
        queued.flushed_ns = NEVER
        self._blame(queued, 1)
        strategy = self._replay(queued, flight)
        self._in_flight.land(uid)
        return self._requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE, now_ns)

    def nominate(self, queued: QueuedPod, node: str) -> None:
        """Room is being made for the pod on `node` ("": no longer). Not for pods that are gone."""
        uid = queued.pod.uid
        flight = self._in_flight.get(uid)
        if uid in self._pods and not (flight is not None and flight.is_gone):
            self.nominator.add(self._newest(queued), node)

    # What happens in the cluster

    def move_all(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now_ns: int,
        wanted: Callable[[PodView], bool] | None = None,
    ) -> int:
        """Wake every waiting pod that the event may help; only `wanted` ones, if given. How many were woken."""
        if (not self._waiting and not self._in_flight) or not self._hints.is_of_interest(event):
            return 0
        woken = self._wake(event, old, new, now_ns, wanted) if self._waiting else 0
        self._in_flight.record(Happened(event, old, new))
        return woken

    def assigned_pod_added(self, pod: PodView, now_ns: int) -> int:
        """A pod has a node: others may want to be near it."""
        return self.move_all(ASSIGNED_POD_ADD, None, pod.pod, now_ns)

    def assigned_pod_updated(self, old: PodView, new: PodView, now_ns: int) -> int:
        """A pod on a node changed: it may need less, or have other labels."""
        if not self._waiting and not self._in_flight:
            return 0
        return sum(self.move_all(event, old.pod, new.pod, now_ns) for event in pod_changes(old, new))

    def assigned_pod_deleted(self, pod: PodView, now_ns: int) -> int:
        """A pod has left its node: there is room."""
        return self.move_all(ASSIGNED_POD_DELETE, pod.pod, None, now_ns)

    def activate(self, pods: Iterable[PodView], now_ns: int) -> None:
        """A plugin wants these tried now, backoff or not. One in a cycle will be tried again after it."""
        for pod in pods:
            queued = self._pods.get(pod.uid)
            if queued is None or queued.place is Place.ACTIVE:
                continue
            if queued.place is Place.IN_FLIGHT:
                self._in_flight.record(Happened(_FORCED, None, pod.pod, only=pod.uid))
                continue
            skips_gates = queued.place is Place.BACKOFF and self._backoff_rule.is_windowed
            self._leave(queued)
            self._to_active(queued, FORCE_ACTIVATE, now_ns, skips_gates=skips_gates)

    # Time passes

    def flush_backoff(self, now_ns: int) -> int:
        """Pods whose backoff is over become active. How many did."""
        over = self._backoff.pop_over(now_ns)
        skips_gates = self._backoff_rule.is_windowed
        places = [
            self._to_active(queued, BACKOFF_COMPLETE, now_ns, skips_gates=skips_gates) for queued in over
        ]
        return sum(place is Place.ACTIVE for place in places)

    def flush_unschedulable(self, now_ns: int) -> int:
        """Pods that waited too long are tried again, in case a hint was wrong. How many are.

        Unlike upstream, pods in flight are not told: that others waited too long says nothing about them.
        """
        woken = 0
        limit = self.settings.max_unschedulable_ns
        while (queued := self._waiting.oldest()) is not None and now_ns - queued.waiting_since_ns > limit:
            self._waiting.remove(queued)
            queued.was_flushed = True
            queued.flushed_ns = now_ns
            place = self._requeue(queued, QueueingStrategy.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT, now_ns)
            woken += place is Place.ACTIVE or place is Place.BACKOFF
        return woken

    # Inside: a pod that `_leave`s, or lands, is put somewhere by exactly one of `_requeue`, `_to_active`, `_put`.

    def _wake(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        now_ns: int,
        wanted: Callable[[PodView], bool] | None,
    ) -> int:
        label = self._hints.label(event)
        woken = 0
        for group, pods in self._waiting.groups():
            if group.gating_plugin and not self._hints.may_ungate(event, group.gating_plugin):
                continue
            asked = self._hints.asked(group.profile, group.rejected_by, group.pending_for, event)
            if asked is QueueingStrategy.SKIP:
                continue
            for queued in self._waiting.helped_by(pods, asked, old, new):
                if wanted is not None and not wanted(queued.pod):
                    continue
                strategy = verdict(asked, queued.pod, old, new)
                if strategy is not QueueingStrategy.SKIP:
                    self._waiting.remove(queued)
                    place = self._requeue(queued, strategy, label, now_ns)
                    woken += place is Place.ACTIVE or place is Place.BACKOFF
        return woken

    def _newest(self, queued: QueuedPod) -> PodView:
        flight = self._in_flight.get(queued.pod.uid)
        return queued.pod if flight is None else flight.newest

    def _update_in_flight(self, old: PodView, new: PodView) -> None:
        flight = self._in_flight.need(new.uid)
        flight.newest = new
        flight.is_gone = False
        for event in pod_changes(old, new):
            self._in_flight.record(Happened(event, old.pod, new.pod, only=new.uid))

    def _update_waiting(self, queued: QueuedPod, old: PodView, new: PodView, now_ns: int) -> None:
        self._waiting.remove(queued)
        queued.pod = new
        best, label = QueueingStrategy.SKIP, ""
        for event in pod_changes(old, new):
            strategy = self._judge(queued, event, old.pod, new.pod)
            if strategy > best:
                best, label = strategy, self._hints.label(event)
        self._requeue(queued, best, label, now_ns)

    def _judge(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        asked = self._hints.asked(queued.profile, queued.unschedulable_plugins, queued.pending_plugins, event)
        return verdict(asked, queued.pod, old, new)

    def _replay(self, queued: QueuedPod, flight: Flight) -> QueueingStrategy:
        """What the events of its cycle mean to a pod that comes back."""
        if not queued.unschedulable_plugins and not queued.pending_plugins:
            return QueueingStrategy.AFTER_BACKOFF
        best = QueueingStrategy.SKIP
        # Only a plugin that said "pending" can do better than this.
        enough = QueueingStrategy.IMMEDIATELY if queued.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        for happened in self._in_flight.seen_by(flight):
            best = max(best, self._judge(queued, happened.event, happened.old, happened.new))
            if best is enough:
                break
        return best

    def _requeue(self, queued: QueuedPod, strategy: QueueingStrategy, label: str, now_ns: int) -> Place:
        if strategy is QueueingStrategy.SKIP:
            return self._put(queued, Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE, label)
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff_rule.is_backing_off(queued, now_ns):
            # With early pops the next stop may be a cycle, so the gates are asked here.
            if self._backoff_rule.is_windowed and not self._gates.let_in(queued):
                return self._gate(queued, label)
            return self._put(queued, Place.BACKOFF, label)
        return self._to_active(queued, label, now_ns)

    def _to_active(self, queued: QueuedPod, label: str, now_ns: int, *, skips_gates: bool = False) -> Place:
        if not skips_gates and not self._gates.let_in(queued):
            return self._gate(queued, label)
        if queued.initial_attempt_ns == NEVER:
            queued.initial_attempt_ns = now_ns
        return self._put(queued, Place.ACTIVE, label)

    def _gate(self, queued: QueuedPod, label: str) -> Place:
        # If it is let in later, that is because of what happens then, not because it was flushed now.
        queued.was_flushed = False
        return self._put(queued, Place.GATED, label)

    def _put(self, queued: QueuedPod, place: Place, label: str) -> Place:
        came_from = queued.place.incoming_label
        queued.place = place
        if place is Place.ACTIVE:
            self._active.push(queued)
        elif place is Place.BACKOFF:
            self._backoff.push(queued)
        else:
            self._waiting.add(queued)
        if place.incoming_label != came_from:
            self.incoming[label, place.incoming_label] += 1
        return place

    def _leave(self, queued: QueuedPod) -> None:
        if queued.place is Place.ACTIVE:
            self._active.remove(queued.pod.uid)
        elif queued.place is Place.BACKOFF:
            self._backoff.remove(queued.pod.uid)
        else:
            self._waiting.remove(queued)

    def _forget(self, queued: QueuedPod) -> None:
        del self._pods[queued.pod.uid]
        queued.place = Place.GONE

    def _blame(self, queued: QueuedPod, change: int) -> None:
        if queued.unschedulable_plugins or queued.pending_plugins:
            for plugin in queued.rejectors:
                self.unschedulable_reasons[plugin, queued.profile] += change
