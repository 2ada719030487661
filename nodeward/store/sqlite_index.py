"""What the SQLite store remembers in memory: the newest version of each key, and which ones it replaced.

In: the writes, in revision order, including those not on the disk yet. Out: the entry (create revision, mod
revision) of a key now or at any revision since the last compaction; never a value. The past is an undo log of
24 bytes a revision.

What must stay true: entry `i` of the undo log belongs to revision `_base + 1 + i` and `newest` is the last of
them; the keys in `_entries` are the keys in `_keys`.

Called by `sqlite` and `sqlite_file`; calls `feed`, `interface` and `sortedkeys`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from nodeward.store.feed import let_others_run
from nodeward.store.interface import EMPTY
from nodeward.store.sortedkeys import SortedKeys

#: create revision, mod revision
Entry = tuple[int, int]

#: revision, key, create revision (0: delete), revision replaced (0: none)
LogRow = tuple[int, str, int, int]

#: revisions undone before the loop gets its turn
_UNDO_STEP: Final = 16384


class LogBroken(Exception):
    """A row of the log does not follow from those before it; says which revision."""


class KeyIndex:
    """The newest entry of every key, and the way back."""

    def __init__(self, entries: dict[str, Entry], base: int, log: Iterable[LogRow] = ()) -> None:
        """`entries` is the state at revision `base`, `log` what was written since. There is no way back beyond it.

        Raises `LogBroken` if the log does not fit.
        """
        self._base = max(base, EMPTY)
        self._touched: list[str] = []
        self._created = array("q")
        self._modified = array("q")
        self._entries = entries
        self.newest = self._base
        self._replay(log)
        self._keys = SortedKeys(entries)

    def _replay(self, log: Iterable[LogRow]) -> None:
        """`put` and `delete` for many rows at once, but for the sorting."""
        entries = self._entries
        absent = (0, 0)
        newest = self._base
        for revision, key, created, previous in log:
            newest += 1
            replaced = entries.get(key, absent)
            if replaced[1] != previous or revision != newest or not (created or previous):
                raise LogBroken(revision)
            self._touched.append(key)
            self._created.append(replaced[0])
            self._modified.append(previous)
            if created:
                entries[key] = (created, revision)
            else:
                del entries[key]
        self.newest = newest

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def put(self, key: str, replaced: Entry | None) -> Entry:
        """Record that the next revision writes `key`, whose entry is `replaced`; return the new entry."""
        self.newest = revision = self.newest + 1
        self._touched.append(key)
        if replaced is None:
            entry = (revision, revision)
            self._created.append(0)
            self._modified.append(0)
            self._keys.add(key)
        else:
            entry = (replaced[0], revision)
            self._created.append(replaced[0])
            self._modified.append(replaced[1])
        self._entries[key] = entry
        return entry

    def delete(self, key: str, replaced: Entry) -> int:
        """Record that the next revision removes `key`, whose entry is `replaced`; return that revision."""
        self.newest += 1
        self._touched.append(key)
        self._created.append(replaced[0])
        self._modified.append(replaced[1])
        self._keys.remove(key)
        del self._entries[key]
        return self.newest

    def undo_to(self, revision: int) -> None:
        """Take back every write newer than `revision`: they did not happen."""
        while self.newest > revision:
            key = self._touched.pop()
            created, modified = self._created.pop(), self._modified.pop()
            if modified:
                if key not in self._entries:
                    self._keys.add(key)
                self._entries[key] = (created, modified)
            else:
                del self._entries[key]
                self._keys.remove(key)
            self.newest -= 1

    def forget_before(self, revision: int) -> None:
        """Drop what is only needed for the state before `revision`."""
        forgotten = revision - self._base
        if forgotten > 0:
            del self._touched[:forgotten]
            del self._created[:forgotten]
            del self._modified[:forgotten]
            self._base = revision

    def entry_at(self, key: str, at: int) -> Entry | None:
        """Return the entry of one key as of a recent revision (it walks back from the newest)."""
        entry = self._entries.get(key)
        for position in range(len(self._touched) - 1, at - self._base - 1, -1):
            if self._touched[position] == key:
                modified = self._modified[position]
                entry = (self._created[position], modified) if modified else None
        return entry

    async def range_at(
        self, low: str, end: str | None, at: int, limit: int
    ) -> tuple[list[tuple[str, Entry]], int]:
        """Return keys in [low, end) as of a revision, in order, at most `limit` (0: all), and how many follow."""
        replaced: dict[str, Entry | None] = {}
        looked_at = at
        while looked_at < self.newest:
            if looked_at > at:
                await let_others_run()
            step = min(_UNDO_STEP, self.newest - looked_at)
            for key, created, modified in self._undone(looked_at, step):
                if low <= key and (end is None or key < end) and key not in replaced:
                    replaced[key] = (created, modified) if modified else None
            looked_at += step
        # No await from here on: `replaced` reaches up to the newest revision.
        entries = self._entries
        if not replaced:
            found = [(key, entries[key]) for key in self._keys.between(low, end, limit)]
            following = self._keys.count(low, end) - len(found) if limit else 0
            return found, following
        found = [(key, entries[key]) for key in self._keys.between(low, end) if key not in replaced]
        found.extend([(key, entry) for key, entry in replaced.items() if entry is not None])
        found.sort()
        if limit:
            return found[:limit], max(len(found) - limit, 0)
        return found, 0

    def _undone(self, after: int, step: int) -> Iterable[tuple[str, int, int]]:
        first = after - self._base
        last = first + step
        return zip(
            self._touched[first:last], self._created[first:last], self._modified[first:last], strict=True
        )
