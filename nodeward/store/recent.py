"""The most recent events of a store, kept in memory so that a watch resumed soon need not read the disk.

In: committed events, in order, without gaps. Out: those after a revision. What must stay true: the events
kept have the revisions `base + 1`, `base + 2`, ... without a gap, and their number and bytes are bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from nodeward.store.interface import Event, Revision

_EVENTS: Final = 4096
_BYTES: Final = 8 << 20


class RecentEvents:
    """A bounded, contiguous tail of the log. `base` is the revision before the first event kept."""

    def __init__(self, base: int, *, max_events: int = _EVENTS, max_bytes: int = _BYTES) -> None:
        self.base = base
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def extend(self, events: Sequence[Event]) -> None:
        kept = self._events
        kept.extend(events)
        self._bytes += sum([len(event.value) for event in events if event.value is not None])
        while len(kept) > self._max_events or self._bytes > self._max_bytes:
            dropped = kept.popleft()
            self.base = dropped.revision
            if dropped.value is not None:
                self._bytes -= len(dropped.value)

    def after(self, revision: int, step: int) -> tuple[list[Event], Revision]:
        """At most `step` events that follow a revision not older than `base`, and how far they reach."""
        first = revision - self.base
        events = list(islice(self._events, first, first + step))
        return events, Revision(revision + len(events))
