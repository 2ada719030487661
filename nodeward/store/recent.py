"""The most recent events of a store, kept in memory so that a watch resumed soon need not read the disk.

In: committed events, in revision order, without gaps. Out: those of a prefix after a revision. What must stay
true: no event with a revision in (`base`, `newest`] is missing, and the number and bytes of those kept are
bounded.

Called by `etcd` and `sqlite`; calls `interface`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from nodeward.store.interface import Revision, StoreEvent

_EVENTS: Final = 1024
_BYTES: Final = 2 << 20


class RecentEvents:
    """The end of the log: all events after revision `base` up to revision `newest`."""

    def __init__(self, revision: int, *, max_events: int = _EVENTS, max_bytes: int = _BYTES) -> None:
        self.base = revision
        self.newest = Revision(revision)
        self._events: deque[StoreEvent] = deque()
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def extend(self, events: Sequence[StoreEvent], newest: Revision) -> None:
        """Add all events up to revision `newest`."""
        kept = self._events
        kept.extend(events)
        self.newest = newest
        self._bytes += sum([len(event.value) for event in events if event.value is not None])
        while len(kept) > self._max_events or self._bytes > self._max_bytes:
            dropped = kept.popleft()
            self.base = dropped.revision
            if dropped.value is not None:
                self._bytes -= len(dropped.value)

    def after(self, prefix: str, revision: int) -> list[StoreEvent]:
        """Return the events of a prefix that are newer than a revision, which must not be older than `base`."""
        found: list[StoreEvent] = []
        for event in reversed(self._events):
            if event.revision <= revision:
                break
            if event.key.startswith(prefix):
                found.append(event)
        found.reverse()
        return found
