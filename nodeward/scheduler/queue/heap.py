"""Pods in order, found by uid: a heap from which any pod can be taken out.

In go queued pods, out comes the one with the smallest key; pods with equal keys leave in the order they came. A pod
taken out of the middle leaves its entry in the heap, which is skipped later and swept when too many pile up.

What must stay true: a pod is in here at most once; its key is worked out on `push`, so whoever changes what the key is
made of pushes the pod again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from nodeward.scheduler.queue.queued_pod import QueuedPod, SortKey

_Entry: TypeAlias = tuple[Any, int, QueuedPod]

#: Left-over entries that are not worth sweeping.
_FEW: Final = 64


class PodHeap:
    """A priority queue of pods."""

    __slots__ = ("_entries", "_heap", "_key", "_sequence")

    def __init__(self, key: SortKey) -> None:
        self._key = key
        self._heap: list[_Entry] = []
        #: by uid; an entry of the heap counts only if it is in here
        self._entries: dict[str, _Entry] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        """In the order they were put in."""
        return (queued for _, _, queued in self._entries.values())

    def push(self, queued: QueuedPod) -> None:
        """Put it in; if it is in already, sort it anew without losing its turn among equals."""
        uid = queued.pod.uid
        key = self._key(queued)
        known = self._entries.get(uid)
        if known is None:
            self._sequence += 1
            order = self._sequence
        elif known[0] == key and known[2] is queued:
            return
        else:
            order = known[1]
            self._sweep()
        entry = (key, order, queued)
        self._entries[uid] = entry
        heapq.heappush(self._heap, entry)

    def remove(self, uid: str) -> bool:
        """Take it out, wherever it is. Whether it was here."""
        if self._entries.pop(uid, None) is None:
            return False
        self._sweep()
        return True

    def first(self) -> QueuedPod | None:
        """The one `pop` would give."""
        while self._heap:
            entry = self._heap[0]
            if self._entries.get(entry[2].pod.uid) is entry:
                return entry[2]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Take out the first."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            uid = entry[2].pod.uid
            if self._entries.get(uid) is entry:
                del self._entries[uid]
                return entry[2]
        return None

    def _sweep(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _FEW:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
