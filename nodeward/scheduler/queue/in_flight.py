"""Pods in a scheduling cycle, and what happened in the cluster meanwhile.

A pod is in flight from `pop` until it is bound, given up or put back. Events during that time may make schedulable what
the cycle finds unschedulable from an older view of the cluster, so they are remembered and replayed when it comes back.

What must stay true: a pod sees every event recorded after it took off, in order, and none from before; an event is
forgotten when no pod is left that took off before it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import Any, NamedTuple

from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.framework.events import ClusterEvent
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.queue.queued_pod import QueuedPod


class Happened(NamedTuple):
    """An event with the objects it is about; `only` names the one pod it concerns, if not all."""

    event: ClusterEvent
    old: Any
    new: Any
    only: str = ""


class Flight:
    """One pod in its cycle. The cycle works on `queued.pod`; what changed since is kept here."""

    __slots__ = ("first_event", "is_gone", "newest", "queued")

    def __init__(self, queued: QueuedPod, first_event: int) -> None:
        self.queued = queued
        self.newest: PodView = queued.pod
        #: deleted, or bound by somebody else
        self.is_gone = False
        #: number of the first event it has not seen
        self.first_event = first_event


class InFlight:
    """All pods in a cycle."""

    def __init__(self) -> None:
        # In the order they took off: the first one says which events are still needed. An OrderedDict, because
        # finding the first key of a plain dict gets slower with every key that was deleted before it.
        self._flights: OrderedDict[str, Flight] = OrderedDict()
        self._events: deque[Happened] = deque()
        #: number of the first event kept
        self._first = 0

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: str) -> bool:
        return uid in self._flights

    @property
    def events(self) -> int:
        """How many are remembered."""
        return len(self._events)

    def get(self, uid: str) -> Flight | None:
        return self._flights.get(uid)

    def need(self, uid: str) -> Flight:
        """The flight of a pod that must be in one."""
        flight = self._flights.get(uid)
        if flight is None:
            raise InvariantBroken(f"pod {uid} is not in flight")
        return flight

    def queued(self) -> list[QueuedPod]:
        return [flight.queued for flight in self._flights.values()]

    def take_off(self, queued: QueuedPod) -> None:
        uid = queued.pod.uid
        if uid in self._flights:
            raise InvariantBroken(f"pod {queued.pod.key} ({uid}) is in flight twice")
        self._flights[uid] = Flight(queued, self._first + len(self._events))

    def record(self, happened: Happened) -> None:
        """Remember it for every pod in flight (or for the one it concerns)."""
        is_needed = happened.only in self._flights if happened.only else bool(self._flights)
        if is_needed:
            self._events.append(happened)

    def seen_by(self, flight: Flight) -> list[Happened]:
        """What happened to it, or to everybody, since it took off."""
        uid = flight.queued.pod.uid
        since = islice(self._events, flight.first_event - self._first, None)
        return [happened for happened in since if not happened.only or happened.only == uid]

    def land(self, uid: str) -> Flight | None:
        """It is no longer in flight; events only it needed are forgotten. None if it was not."""
        flight = self._flights.pop(uid, None)
        if flight is None or not self._events:
            return flight
        end = self._first + len(self._events)
        needed = next(iter(self._flights.values())).first_event if self._flights else end
        while self._first < needed:
            self._events.popleft()
            self._first += 1
        return flight
