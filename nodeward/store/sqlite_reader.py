"""Reading the SQLite store's file: single rows, pieces of a range at a revision, pieces of the log.

In: keys and revisions, both already checked by the store. Out: `KeyValue`s and `Event`s. Used on the event
loop's thread only; every call is one statement over a bounded number of rows, so that the loop is never away
for long.

What must stay true: nothing newer than the revision asked for is seen, though the file may hold newer rows
already.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from nodeward.store.interface import Event, KeyValue, Revision
from nodeward.store.keys import prefix_end
from nodeward.store.sqlite_file import close_quietly, explain

#: one piece of a long read
PIECE_ROWS: Final = 512
_PIECE_BYTES: Final = 4 << 20

#: the newest row of each live key of a range as of a revision; only touches the index
_LIVE: Final = """
    SELECT key, MAX(rv) AS rv, create_rv FROM kv INDEXED BY kv_key
    WHERE key >= ? AND key < ? AND rv <= ? GROUP BY key HAVING create_rv > 0
"""
_PIECE: Final = f"""
    SELECT live.key, kv.value, live.create_rv, live.rv
    FROM ({_LIVE} ORDER BY key LIMIT ?) AS live CROSS JOIN kv ON kv.rv = live.rv
"""
_COUNT: Final = f"SELECT COUNT(*) FROM ({_LIVE})"
_NEWEST: Final = "SELECT key, value, create_rv, rv FROM kv WHERE key = ? AND rv <= ? ORDER BY rv DESC LIMIT 1"
#: `+key` keeps SQLite from walking the index of keys instead of the revisions
_LOG: Final = """
    SELECT rv, key, value, create_rv FROM kv
    WHERE rv > ? AND rv <= ? AND +key >= ? AND +key < ? ORDER BY rv
"""

#: a text or, greater than every text, the empty blob
_Bound = str | bytes


def end_bound(prefix: str) -> _Bound:
    """The exclusive end of a prefix, as SQLite is given it."""
    end = prefix_end(prefix)
    return b"" if end is None else end


class Reader:
    """The reading connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def value(self, revision: int) -> bytes:
        """The value written at a revision; the row must be there."""
        try:
            row = self._connection.execute("SELECT value FROM kv WHERE rv = ?", (revision,)).fetchone()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        value: bytes = row[0]
        return value

    def newest(self, key: str, at: int) -> KeyValue | None:
        """One key as of a revision."""
        try:
            row = self._connection.execute(_NEWEST, (key, at)).fetchone()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return KeyValue(*row) if row is not None and row[2] else None

    def piece(self, low: str, end: _Bound, at: int, limit: int) -> tuple[list[KeyValue], bool]:
        """The first keys in [low, end) as of a revision, and whether that is all there are.

        At most `limit`; fewer if they are large, but at least one.
        """
        items: list[KeyValue] = []
        size = 0
        try:
            for row in self._connection.execute(_PIECE, (low, end, at, limit)):
                item = KeyValue(*row)
                items.append(item)
                size += len(item.value)
                if size > _PIECE_BYTES:
                    return items, False
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return items, len(items) < limit

    def count(self, low: str, end: _Bound, at: int) -> int:
        """How many keys there are in [low, end) as of a revision."""
        try:
            (count,) = self._connection.execute(_COUNT, (low, end, at)).fetchone()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return int(count)

    def log(self, prefix: str, after: int, until: int) -> tuple[list[Event], Revision]:
        """Events of a prefix with revisions in (after, until], and how far they reach (less if they are large)."""
        events: list[Event] = []
        size = 0
        try:
            for rv, key, value, created in self._connection.execute(
                _LOG, (after, until, prefix, end_bound(prefix))
            ):
                events.append(Event(rv, key, value if created else None, created == rv))
                size += len(value) if created else 0
                if size > _PIECE_BYTES:
                    return events, Revision(rv)
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return events, Revision(until)

    def close(self) -> None:
        close_quietly(self._connection)
