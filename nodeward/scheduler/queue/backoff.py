"""Pods that were woken but must not be tried again yet: the more often they failed, the longer they wait.

Two heaps, by when the wait ends: pods that plugins rejected, and pods that failed for a reason that says nothing about
them (the API server did not answer). With SchedulerPopFromBackoffQ a wait ends on a whole second, pods of one second
are ordered as in the active queue, and an idle scheduler takes rejected pods from here before their time; those that
failed with an error always wait, since the wait protects the API server.

What must stay true: a pod is in at most one of the heaps; its wait is at most the maximum, and zero if it never failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.scheduler.queue.heap import PodHeap
from nodeward.scheduler.queue.queued_pod import NEVER, QueuedPod, SortKey


@dataclass(frozen=True, slots=True)
class BackoffRule:
    """How long a pod waits after its n-th failure: the initial wait, doubled each time, up to the maximum."""

    initial_ns: int = SECOND_NS
    #: zero: no pod ever waits
    max_ns: int = 10 * SECOND_NS
    #: whether waits end on whole seconds (SchedulerPopFromBackoffQ)
    is_windowed: bool = True

    def __post_init__(self) -> None:
        invariant(self.initial_ns >= 0 and self.max_ns >= 0, "a backoff is not negative")

    def duration_ns(self, count: int) -> int:
        """The wait after `count` failures."""
        if count == 0:
            return 0
        shift = count - 1
        return self.max_ns if self.initial_ns > self.max_ns >> shift else self.initial_ns << shift

    def align(self, instant_ns: int) -> int:
        return instant_ns - instant_ns % SECOND_NS if self.is_windowed else instant_ns

    def expiration_ns(self, queued: QueuedPod) -> int:
        """The last moment (with windows: the last second) in which the pod waits; `NEVER` if it need not."""
        count = queued.consecutive_errors or queued.unschedulable_count
        if self.max_ns == 0 or count == 0:
            return NEVER
        if queued.backoff_expiration_ns == NEVER:
            queued.backoff_expiration_ns = self.align(queued.timestamp_ns + self.duration_ns(count))
        return queued.backoff_expiration_ns

    def is_backing_off(self, queued: QueuedPod, now_ns: int) -> bool:
        """Whether it still waits. The window in which the wait ends belongs to it."""
        return self.expiration_ns(queued) >= self.align(now_ns)

    def over_ns(self, queued: QueuedPod) -> int:
        """The first moment in which it no longer waits."""
        return self.expiration_ns(queued) + (SECOND_NS if self.is_windowed else 1)


class BackoffQueue:
    """The pods whose wait is not over."""

    def __init__(self, rule: BackoffRule, sort: SortKey) -> None:
        self.rule: Final = rule

        def by_end(queued: QueuedPod) -> int:
            return rule.expiration_ns(queued)

        def by_end_then_as_active(queued: QueuedPod) -> tuple[int, object]:
            return rule.expiration_ns(queued), sort(queued)

        self._rejected = PodHeap(by_end_then_as_active if rule.is_windowed else by_end)
        self._errors = PodHeap(by_end)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._errors)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._errors

    @property
    def has_early(self) -> bool:
        """Whether `pop_early` has something to give."""
        return self.rule.is_windowed and len(self._rejected) > 0

    def push(self, queued: QueuedPod) -> None:
        """Put it in, or sort it anew."""
        if queued.unschedulable_plugins or queued.pending_plugins:
            self._rejected.push(queued)
        else:
            self._errors.push(queued)

    def remove(self, uid: str) -> bool:
        return self._rejected.remove(uid) or self._errors.remove(uid)

    def pop_early(self) -> QueuedPod | None:
        """The rejected pod whose wait ends first, though it is not over: for a scheduler with nothing else to do."""
        return self._rejected.pop() if self.rule.is_windowed else None

    def pop_over(self, now_ns: int) -> list[QueuedPod]:
        """All pods whose wait is over, taken out; rejected ones first, each kind by when the wait ended."""
        found: list[QueuedPod] = []
        for heap in (self._rejected, self._errors):
            while (queued := heap.first()) is not None and not self.rule.is_backing_off(queued, now_ns):
                heap.pop()
                found.append(queued)
        return found

    def next_over_ns(self) -> int | None:
        """When the next wait is over."""
        ends = [
            self.rule.over_ns(queued) for heap in (self._rejected, self._errors) if (queued := heap.first())
        ]
        return min(ends, default=None)
