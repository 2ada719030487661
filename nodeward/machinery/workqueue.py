"""The keys a controller still has to look at.

In go keys (from informers, timers, failures), out come keys for workers:

    while (key := await queue.get()) is not None:
        try: ...look at key, then queue.forget(key), or on failure queue.add_rate_limited(key)
        finally: queue.done(key)

What must stay true:
* a key waits at most once, however often it is added
* a key is never given to two workers at once; added while a worker has it, it comes again after `done`
* nothing added before shutdown is lost; what is added later, or still delayed at shutdown, is dropped
* higher priority first, then first come, first served; adding again can raise a priority, never lower it

All methods belong to the event loop's thread.

Called by controllers, the kubelet, the machinery and the cluster assembly; calls `backoff`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.machinery.backoff import KeyedBackoff
from nodeward.machinery.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How a queue does, for metrics."""

    #: Keys waiting for a worker.
    depth: int
    #: Keys a worker has now.
    processing: int
    #: Additions that were not repeats, so far.
    adds: int
    #: Delayed additions, so far.
    retries: int
    #: Seconds that the keys now with workers have been there, all together and at most.
    unfinished_seconds: float
    longest_running_seconds: float


class WorkQueue(Generic[K]):
    """A queue of keys with priorities, delays and retries. See the module's text for its promises."""

    def __init__(self, clock: Clock, *, name: str = "", backoff: KeyedBackoff[K] | None = None) -> None:
        self.name: Final = name
        self._clock = clock
        self._backoff: KeyedBackoff[K] = KeyedBackoff() if backoff is None else backoff
        self._sequence = 0
        #: Keys to be looked at and their priorities: those in the heap, and those to come again after `done`.
        self._dirty: dict[K, int] = {}
        #: Keys with workers, and since when.
        self._processing: dict[K, int] = {}
        #: (-priority, order, key). A key whose priority was raised has an older entry too, which is passed over.
        self._heap: list[tuple[int, int, K]] = []
        #: The order of each waiting key's valid entry.
        self._entry: dict[K, int] = {}
        #: (due, order, key), and for each delayed key its valid due time and priority.
        self._delayed_heap: list[tuple[int, int, K]] = []
        self._delayed: dict[K, tuple[int, int]] = {}
        self._timer: Timer | None = None
        self._timer_due_ns = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drainers: list[asyncio.Future[None]] = []
        self._shutting_down = False
        self._adds = 0
        self._retries = 0

    def __len__(self) -> int:
        """Keys waiting for a worker."""
        return len(self._entry)

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    def add(self, key: K, priority: int = 0) -> None:
        """Enqueue `key`."""
        if self._shutting_down:
            return
        known = self._dirty.get(key)
        if known is None:
            self._adds += 1
        elif priority <= known:
            return
        self._dirty[key] = priority
        if key not in self._processing:
            self._push(key, priority)

    def add_after(self, key: K, seconds: float, priority: int = 0) -> None:
        """Enqueue `key` after `seconds`. If it is delayed already, the earlier time counts."""
        if self._shutting_down:
            return
        self._retries += 1
        if seconds <= 0:
            self.add(key, priority)
            return
        due_ns = self._clock.monotonic_ns() + round(seconds * SECOND_NS)
        known = self._delayed.get(key)
        if known is not None:
            priority = max(priority, known[1])
            if known[0] <= due_ns:
                self._delayed[key] = (known[0], priority)
                return
        self._delayed[key] = (due_ns, priority)
        self._sequence += 1
        heapq.heappush(self._delayed_heap, (due_ns, self._sequence, key))
        self._set_timer()

    def add_rate_limited(self, key: K, priority: int = 0) -> None:
        """Enqueue `key`, which failed, after a wait that grows with each failure until `forget`."""
        if not self._shutting_down:
            self.add_after(key, self._backoff.next(key), priority)

    def forget(self, key: K) -> None:
        """Reset the failures of `key`: the next one waits as little as the first."""
        self._backoff.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return the failures of `key` since it was last forgotten."""
        return self._backoff.failures(key)

    async def get(self) -> K | None:
        """Return the next key, waiting for one if need be; `None` once the queue is shut down and empty.

        Whoever gets a key must call `done` with it.
        """
        while not self._entry:
            if self._shutting_down:
                return None
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.cancelled():
                    # It may have been passed over, and so taken out, already.
                    with suppress(ValueError):
                        self._getters.remove(getter)
                elif self._entry:
                    # This one was woken and will not come: wake another.
                    self._wake_getter()
                raise
        return self._pop()

    def get_nowait(self) -> K | None:
        """Return the next key if one is waiting now, else `None`. The same duties as after `get`."""
        return self._pop() if self._entry else None

    def done(self, key: K) -> None:
        """Mark `key` as finished by its worker."""
        invariant(key in self._processing, f"done with {key!r}, which no worker has")
        del self._processing[key]
        priority = self._dirty.get(key)
        if priority is not None:
            self._push(key, priority)
        elif not self._processing and not self._entry:
            self._wake_drainers()

    def shut_down(self) -> None:
        """Take no more keys. Workers finish what is waiting, then get `None`. Ends a `drain` under way."""
        self._take_no_more()
        self._wake_drainers()

    async def drain(self) -> None:
        """Shut down and wait until every key has been finished (or until `shut_down` is called)."""
        self._take_no_more()
        if self._entry or self._processing:
            drained = asyncio.get_running_loop().create_future()
            self._drainers.append(drained)
            await drained

    def stats(self) -> QueueStats:
        now = self._clock.monotonic_ns()
        running = [now - since for since in self._processing.values()]
        return QueueStats(
            depth=len(self._entry),
            processing=len(running),
            adds=self._adds,
            retries=self._retries,
            unfinished_seconds=sum(running) / SECOND_NS,
            longest_running_seconds=max(running, default=0) / SECOND_NS,
        )

    def _take_no_more(self) -> None:
        self._shutting_down = True
        self._delayed.clear()
        self._delayed_heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._getters:
            self._wake_getter()

    def _push(self, key: K, priority: int) -> None:
        is_new = key not in self._entry
        self._sequence += 1
        self._entry[key] = self._sequence
        heapq.heappush(self._heap, (-priority, self._sequence, key))
        if is_new:
            self._wake_getter()

    def _pop(self) -> K:
        while True:
            _, order, key = heapq.heappop(self._heap)
            if self._entry.get(key) == order:
                break
        del self._entry[key]
        del self._dirty[key]
        self._processing[key] = self._clock.monotonic_ns()
        return key

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_drainers(self) -> None:
        for drainer in self._drainers:
            if not drainer.done():
                drainer.set_result(None)
        self._drainers.clear()

    def _set_timer(self) -> None:
        """Set the one timer, for the earliest delayed key."""
        if not self._delayed_heap:
            return
        due_ns = self._delayed_heap[0][0]
        if self._timer is not None:
            if self._timer_due_ns <= due_ns:
                return
            self._timer.cancel()
        self._timer_due_ns = due_ns
        self._timer = self._clock.call_later((due_ns - self._clock.monotonic_ns()) / SECOND_NS, self._add_due)

    def _add_due(self) -> None:
        self._timer = None
        now = self._clock.monotonic_ns()
        while self._delayed_heap and self._delayed_heap[0][0] <= now:
            due_ns, _, key = heapq.heappop(self._delayed_heap)
            known = self._delayed.get(key)
            # An entry whose key was moved to an earlier time is left over: the earlier one has done its work.
            if known is not None and known[0] == due_ns:
                del self._delayed[key]
                self.add(key, known[1])
        self._set_timer()
