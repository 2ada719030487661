"""A waiting pod with its history, the places it can be in, and the order of the active queue.

The queue owns these fields; the scheduling cycle reads them (for metrics, events and log lines) and hands the pod back.
Instants are nanoseconds of whatever clock the caller uses throughout; `NEVER` is an instant that has not come.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

from nodeward.scheduler.framework.pod import PodView

#: Before every instant.
NEVER: Final = -1


class Place(Enum):
    """Where a pod is. It is in exactly one of these."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    #: popped, and neither done nor put back
    IN_FLIGHT = "in flight"
    #: not known to the queue
    GONE = "gone"

    def __init__(self, label: str) -> None:
        #: what the counter of incoming pods calls it: gated pods are unschedulable to it
        self.incoming_label = "unschedulable" if label == "gated" else label


class QueuedPod:
    """One pod on its way through the queue."""

    __slots__ = (
        "attempts",
        "backoff_expiration_ns",
        "consecutive_errors",
        "flushed_ns",
        "gating_plugin",
        "initial_attempt_ns",
        "pending_plugins",
        "place",
        "pod",
        "popped_ns",
        "profile",
        "timestamp_ns",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, pod: PodView, now_ns: int) -> None:
        self.pod = pod
        #: the scheduler it asks for; a pod never changes that
        self.profile = pod.pod.spec.scheduler_name
        self.place = Place.GONE
        #: when it came, or came back after an attempt
        self.timestamp_ns = now_ns
        #: how often it was popped
        self.attempts = 0
        #: when it first entered the active queue
        self.initial_attempt_ns = NEVER
        #: when it was last popped
        self.popped_ns = NEVER
        #: attempts that ended with plugins rejecting it: what its backoff grows with
        self.unschedulable_count = 0
        #: failures in a row that were nobody's verdict: a backoff of their own, to spare the API server
        self.consecutive_errors = 0
        #: cached; worked out when first asked for after an attempt
        self.backoff_expiration_ns = NEVER
        #: who rejected it last time, and who said "wait for something outside"; sorted
        self.unschedulable_plugins: tuple[str, ...] = ()
        self.pending_plugins: tuple[str, ...] = ()
        #: who keeps it out of the active queue; empty when nobody does
        self.gating_plugin = ""
        #: woken because it waited too long, not by an event: a sign of a hint that is wrong if it now fits
        self.was_flushed = False
        self.flushed_ns = NEVER

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def is_gated(self) -> bool:
        return bool(self.gating_plugin)

    @property
    def rejectors(self) -> tuple[str, ...]:
        """Every plugin that stands in its way, each once, sorted."""
        if not self.pending_plugins:
            return self.unschedulable_plugins
        return tuple(sorted({*self.unschedulable_plugins, *self.pending_plugins}))

    @property
    def waiting_since_ns(self) -> int:
        """When it was last looked at: by a cycle, or by the flush of pods that waited too long."""
        return max(self.timestamp_ns, self.flushed_ns)

    def __repr__(self) -> str:
        return f"QueuedPod({self.pod.key}, {self.place.value}, attempts={self.attempts})"


#: What the active queue is ordered by: smaller comes first. Equal keys come in the order they were put in.
SortKey: TypeAlias = Callable[[QueuedPod], Any]


def priority_sort(queued: QueuedPod) -> int:
    """Kubernetes' PrioritySort: the higher priority first, then who has waited longer.

    One number instead of a pair, because a heap of 100,000 pods does little but compare. No instant reaches 2**64 ns.
    """
    return queued.timestamp_ns - (queued.pod.priority << 64)


def sort_key_of(less: Callable[[QueuedPod, QueuedPod], bool]) -> SortKey:
    """A sort key from a comparison, for queue-sort plugins that only have one."""

    def compare(one: QueuedPod, other: QueuedPod) -> int:
        if less(one, other):
            return -1
        return 1 if less(other, one) else 0

    return functools.cmp_to_key(compare)
