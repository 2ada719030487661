"""The store that forgets everything when the process ends: for tests and rehearsals.

In: conditional writes. Out: pages, watches. The current state is a dictionary and its keys in order;
the past is a log of (event, what it replaced), one entry per revision; older states are rebuilt by undoing
it.

What must stay true: entry `i` of the log has revision `_base + 1 + i`; nothing awaits inside a write, so a
write is atomic and the order of revisions is the order of calls (rehearsals depend on it).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from nodeward.store.feed import Feed
from nodeward.store.interface import (
    EMPTY,
    Compacted,
    FutureRevision,
    KeyValue,
    Page,
    Revision,
    StoreEvent,
    StoreWatch,
    WriteResult,
)
from nodeward.store.keys import check_key, prefix_end
from nodeward.store.sortedkeys import SortedKeys


class MemoryStore:
    """A `Store` in this process. What is in it outlives `close` and a new `open`, not the object."""

    def __init__(self) -> None:
        self._live: dict[str, KeyValue] = {}
        self._keys = SortedKeys()
        self._log: list[tuple[StoreEvent, KeyValue | None]] = []
        self._base = int(EMPTY)  # the revision just before the log's first entry
        self._compacted = 0
        self._bytes = 0
        self._feed = Feed(self)

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        self._feed = Feed(self, self._feed.revision)

    async def close(self) -> None:
        self._feed.close()

    async def get(self, key: str) -> KeyValue | None:
        self._feed.check_open()
        return self._live.get(key)

    async def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        self._feed.check_open()
        current = self._feed.revision
        if revision > current:
            raise FutureRevision(revision, current)
        if revision and revision < self._compacted:
            raise Compacted(revision, self._compacted)
        at = Revision(revision or current)
        low, end = max(prefix, start), prefix_end(prefix)
        if at == current:
            items = [self._live[key] for key in self._keys.between(low, end, limit)]
            return Page(items, at, self._keys.count(low, end) - len(items) if limit else 0)
        items = self._as_of(at, low, end)
        if limit and len(items) > limit:
            return Page(items[:limit], at, len(items) - limit)
        return Page(items, at, 0)

    def _as_of(self, at: Revision, low: str, end: str | None) -> list[KeyValue]:
        """Return the keys in [low, end) as of revision `at`: untouched ones, and others with changes undone."""
        before: dict[str, KeyValue | None] = {}
        for event, replaced in self._log[max(at - self._base, 0) :]:
            if low <= event.key and (end is None or event.key < end):
                before.setdefault(event.key, replaced)
        items = [self._live[key] for key in self._keys.between(low, end) if key not in before]
        undone = [replaced for replaced in before.values() if replaced is not None]
        if undone:
            items.extend(undone)
            items.sort(key=lambda item: item.key)
        return items

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        self._feed.check_open()
        current = self._live.get(key)
        if (current.mod_revision if current is not None else 0) != expected:
            return WriteResult(False, self._feed.revision, current)
        revision = Revision(self._feed.revision + 1)
        if current is None:
            check_key(key)
            self._keys.add(key)
        created = revision if current is None else current.create_revision
        self._live[key] = KeyValue(key, value, created, revision)
        self._bytes += len(key) + len(value)
        self._commit(StoreEvent(revision, key, value, current is None), current)
        return WriteResult(True, revision, None)

    async def delete(self, key: str, *, expected: int) -> WriteResult:
        self._feed.check_open()
        current = self._live.get(key)
        if current is None or current.mod_revision != expected:
            return WriteResult(False, self._feed.revision, current)
        revision = Revision(self._feed.revision + 1)
        del self._live[key]
        self._keys.remove(key)
        self._commit(StoreEvent(revision, key, None, False), current)
        return WriteResult(True, revision, current)

    def _commit(self, event: StoreEvent, replaced: KeyValue | None) -> None:
        self._log.append((event, replaced))
        self._feed.publish((event,), event.revision)

    def watch(self, prefix: str, *, after: int) -> StoreWatch:
        return self._feed.watch(prefix, after)

    async def events_after(self, prefix: str, after: int, step: int) -> tuple[Sequence[StoreEvent], Revision]:
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        first = after - self._base
        looked_at = self._log[first : first + step]
        events = [event for event, _ in looked_at if event.key.startswith(prefix)]
        return events, Revision(after + len(looked_at))

    async def revision(self) -> Revision:
        self._feed.check_open()
        return self._feed.revision

    async def compact(self, revision: int) -> None:
        self._feed.check_open()
        if revision > self._feed.revision:
            raise FutureRevision(revision, self._feed.revision)
        if revision <= self._compacted:
            return
        self._compacted = revision
        forgotten = revision - self._base
        for _, replaced in islice(self._log, forgotten):
            if replaced is not None:
                self._bytes -= len(replaced.key) + len(replaced.value)
        del self._log[:forgotten]
        self._base += forgotten

    async def size(self) -> int:
        """Bytes of keys and values, current and remembered."""
        return self._bytes
