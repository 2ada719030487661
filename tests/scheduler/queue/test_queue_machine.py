"""Whatever happens in whatever order: the queue agrees with a model that keeps one obvious list of facts per pod."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodeward.base.duration import SECOND_NS
from nodeward.scheduler.queue.backoff import BackoffRule
from nodeward.scheduler.queue.queued_pod import Place, QueuedPod
from tests.scheduler.queue.pods import CLAIM_ADD, NODE_ADD, NODE_LABEL, Gate, make_queue, view

#: Each event with the plugins that want to hear of it; the last three say QUEUE whatever it is about.
EVENTS = {"node": NODE_ADD, "label": NODE_LABEL, "claim": CLAIM_ADD}
HEARD = {
    "node": ("Fit", "Taint", "Everything"),
    "label": ("Everything",),
    "claim": ("Unhinted", "Everything", "Gate"),
    "own label": ("Taint", "Gate", "Everything"),
}
ALWAYS = {
    "node": ("Everything",),
    "label": HEARD["label"],
    "claim": HEARD["claim"],
    "own label": HEARD["own label"],
}
REJECTORS = ("Fit", "Taint", "Unhinted", "Deaf", "Everything")
ALL_PLACES = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED, Place.IN_FLIGHT)


@dataclass
class Facts:
    """What the model knows of one pod."""

    priority: int
    since: int
    place: Place = Place.GONE
    looked_at: int = 0
    rejected: int = 0
    errors: int = 0
    by: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    gated: bool = False
    labels: int = 0
    deleted: bool = False
    #: while in flight: (what happened, who was named)
    seen: list[tuple[str, frozenset[str]]] = field(default_factory=list)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000 * SECOND_NS
        self.model: dict[str, Facts] = {}
        self.popped: dict[str, QueuedPod] = {}
        self.born = 0
        self.gate = Gate()
        self.windowed = True
        self.queue = make_queue(self.gate)

    @initialize(windowed=st.booleans())
    def start(self, windowed: bool) -> None:
        self.windowed = windowed
        self.queue = make_queue(self.gate, backoff=BackoffRule(is_windowed=windowed))

    # The model's rules

    def ends(self, facts: Facts) -> int:
        failures = facts.errors or facts.rejected
        end = facts.since + min(1 << failures - 1, 10) * SECOND_NS
        return end // SECOND_NS * SECOND_NS if self.windowed else end

    def backs_off(self, facts: Facts) -> bool:
        if not facts.errors and not facts.rejected:
            return False
        return self.ends(facts) >= (self.now // SECOND_NS * SECOND_NS if self.windowed else self.now)

    def enter(self, uid: str, place: Place, *, asks_gate: bool) -> None:
        """Into active or backoff, unless the gate is closed."""
        facts = self.model[uid]
        if asks_gate and uid in self.gate.closed:
            facts.place, facts.gated = Place.GATED, True
            facts.by |= {"Gate"}
            return
        facts.place = place
        if asks_gate:
            facts.gated = False

    def wake(self, uid: str, *, at_once: bool) -> None:
        if not at_once and self.backs_off(self.model[uid]):
            self.enter(uid, Place.BACKOFF, asks_gate=self.windowed)
        else:
            self.enter(uid, Place.ACTIVE, asks_gate=True)

    @staticmethod
    def says_queue(facts: Facts, what: str, named: frozenset[str]) -> tuple[bool, bool]:
        """(worth another try, at once)"""
        if what == "force":
            return True, False
        willing = {name for name in HEARD[what] if name in named or name in ALWAYS[what]}
        return bool(willing & (facts.by | facts.pending)), bool(willing & facts.pending)

    def in_place(self, *places: Place) -> list[str]:
        return [uid for uid, facts in self.model.items() if facts.place in places]

    # What can be done

    @rule(priority=st.integers(0, 2), is_closed=st.booleans())
    def add(self, priority: int, is_closed: bool) -> None:
        self.born += 1
        name = f"p{self.born}"
        pod = view(name, priority=priority)
        if is_closed:
            self.gate.closed[pod.uid] = None
        self.model[pod.uid] = Facts(priority, self.now, looked_at=self.now)
        self.queue.add(pod, self.now)
        self.enter(pod.uid, Place.ACTIVE, asks_gate=True)

    @rule(seconds=st.sampled_from([0, 0.000000001, 0.4, 1, 3, 11, 301]))
    def pass_time(self, seconds: float) -> None:
        self.now += round(seconds * SECOND_NS)

    @rule()
    def pop(self) -> None:
        queued = self.queue.pop(self.now)
        active = self.in_place(Place.ACTIVE)
        if active:
            best = min((-self.model[uid].priority, self.model[uid].since) for uid in active)
        else:
            early = [
                uid for uid in self.in_place(Place.BACKOFF) if self.model[uid].by | self.model[uid].pending
            ]
            if not early or not self.windowed:
                assert queued is None
                return
            soonest = min(self.ends(self.model[uid]) for uid in early)
            active = [uid for uid in early if self.ends(self.model[uid]) == soonest]
            best = min((-self.model[uid].priority, self.model[uid].since) for uid in active)
        assert queued is not None
        assert queued.uid in active
        facts = self.model[queued.uid]
        assert (-facts.priority, facts.since) == best
        facts.place, facts.seen = Place.IN_FLIGHT, []
        self.popped[queued.uid] = queued

    @precondition(lambda self: self.popped)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.popped)))
        del self.popped[uid]
        self.queue.done(uid)
        del self.model[uid]

    @precondition(lambda self: self.popped)
    @rule(
        data=st.data(),
        by=st.frozensets(st.sampled_from(REJECTORS), max_size=2),
        pending=st.frozensets(st.sampled_from(REJECTORS), max_size=1),
    )
    def fail(self, data: st.DataObject, by: frozenset[str], pending: frozenset[str]) -> None:
        uid = data.draw(st.sampled_from(list(self.popped)))
        queued = self.popped.pop(uid)
        place = self.queue.add_unschedulable(queued, by, pending, self.now)
        facts = self.model[uid]
        if facts.deleted:
            assert place is Place.GONE
            del self.model[uid]
            return
        facts.by, facts.pending, facts.gated = by, pending, False
        facts.since = facts.looked_at = self.now
        if not by and not pending:
            facts.errors += 1
            self.wake(uid, at_once=False)
            return
        facts.errors, facts.rejected = 0, facts.rejected + 1
        answers = [self.says_queue(facts, what, named) for what, named in facts.seen]
        if any(worth for worth, _ in answers):
            self.wake(uid, at_once=any(at_once for _, at_once in answers))
        else:
            facts.place = Place.UNSCHEDULABLE

    @rule(what=st.sampled_from(list(EVENTS)), named=st.frozensets(st.sampled_from(("Fit", "Taint"))))
    def happen(self, what: str, named: frozenset[str]) -> None:
        self.queue.move_all(EVENTS[what], None, named, self.now)
        for uid in self.in_place(Place.UNSCHEDULABLE, Place.GATED):
            facts = self.model[uid]
            worth, at_once = self.says_queue(facts, what, named)
            if worth and (facts.place is Place.UNSCHEDULABLE or "Gate" in HEARD[what]):
                self.wake(uid, at_once=at_once)
        for uid in self.in_place(Place.IN_FLIGHT):
            self.model[uid].seen.append((what, named))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """A pod gets another label."""
        uid = data.draw(st.sampled_from(list(self.model)))
        facts = self.model[uid]
        name = uid.removeprefix("uid-")
        old = view(name, priority=facts.priority, labels={"n": str(facts.labels)} if facts.labels else {})
        facts.labels += 1
        new = view(name, priority=facts.priority, labels={"n": str(facts.labels)})
        self.queue.update(old, new, self.now)
        if facts.place is Place.IN_FLIGHT:
            facts.deleted = False
            facts.seen.append(("own label", frozenset()))
        elif facts.place in (Place.UNSCHEDULABLE, Place.GATED):
            worth, at_once = self.says_queue(facts, "own label", frozenset())
            if worth:
                self.wake(uid, at_once=at_once)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.model)))
        self.queue.delete(view(uid.removeprefix("uid-")))
        if self.model[uid].place is Place.IN_FLIGHT:
            self.model[uid].deleted = True
        else:
            del self.model[uid]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.model)))
        self.queue.activate([view(uid.removeprefix("uid-"))], self.now)
        facts = self.model[uid]
        if facts.place is Place.IN_FLIGHT:
            facts.seen.append(("force", frozenset()))
        elif facts.place is not Place.ACTIVE:
            self.enter(uid, Place.ACTIVE, asks_gate=facts.place is not Place.BACKOFF or not self.windowed)

    @rule()
    def flush_backoff(self) -> None:
        self.queue.flush_backoff(self.now)
        for uid in self.in_place(Place.BACKOFF):
            if not self.backs_off(self.model[uid]):
                self.enter(uid, Place.ACTIVE, asks_gate=not self.windowed)

    @rule()
    def flush_unschedulable(self) -> None:
        self.queue.flush_unschedulable(self.now)
        for uid in self.in_place(Place.UNSCHEDULABLE, Place.GATED):
            facts = self.model[uid]
            if self.now - facts.looked_at > 300 * SECOND_NS:
                facts.looked_at = self.now
                self.wake(uid, at_once=False)

    @precondition(lambda self: self.gate.closed)
    @rule(data=st.data())
    def open_gate(self, data: st.DataObject) -> None:
        del self.gate.closed[data.draw(st.sampled_from(list(self.gate.closed)))]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def close_gate(self, data: st.DataObject) -> None:
        self.gate.closed[data.draw(st.sampled_from(list(self.model)))] = None

    # What must be true at any time

    @invariant()
    def every_pod_is_in_one_place_and_it_is_the_right_one(self) -> None:
        found = {place: sorted(queued.uid for queued in self.queue.pods_in(place)) for place in ALL_PLACES}
        assert found == {place: sorted(self.in_place(place)) for place in ALL_PLACES}
        assert len(self.queue) == len(self.model)
        assert list(self.queue.counts().values()) == [len(found[place]) for place in ALL_PLACES[:4]]
        for uid, facts in self.model.items():
            assert self.queue.place_of(uid) is facts.place

    @invariant()
    def the_next_deadline_is_when_something_can_be_flushed(self) -> None:
        ends = [
            self.ends(self.model[uid]) + (SECOND_NS if self.windowed else 1)
            for uid in self.in_place(Place.BACKOFF)
        ]
        waiting = self.in_place(Place.UNSCHEDULABLE, Place.GATED)
        ends += [
            ((self.model[uid].looked_at + 300 * SECOND_NS) // SECOND_NS + 1) * SECOND_NS for uid in waiting
        ]
        assert self.queue.next_deadline_ns(self.now) == (max(min(ends), self.now) if ends else None)

    @invariant()
    def plugins_are_blamed_for_the_pods_they_rejected(self) -> None:
        blamed: dict[str, int] = {}
        for facts in self.model.values():
            if facts.place is not Place.IN_FLIGHT:
                for name in facts.by | facts.pending:
                    blamed[name] = blamed.get(name, 0) + 1
        assert {
            name: count for (name, _), count in self.queue.unschedulable_reasons.items() if count
        } == blamed


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
