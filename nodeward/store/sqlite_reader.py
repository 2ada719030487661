"""Reading the SQLite store's file: values by their revision, and pieces of the log.

In: revisions, already checked by the store. Out: values and `StoreEvent`s. Used on the event loop's thread only;
every call is one statement over a bounded number of rows and bytes, so that the loop is never away for long.

What must stay true: nothing newer than the revision asked for is seen, though the file may hold newer rows
already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeward.store.interface import Revision, StoreCorrupt, StoreEvent
from nodeward.store.keys import prefix_end
from nodeward.store.sqlite_file import close_quietly, explain

#: one piece of a long read
PIECE_ROWS: Final = 512
_PIECE_BYTES: Final = 4 << 20

_LOG: Final = """
    SELECT rv, key, create_rv, bytes FROM written WHERE rv > ? AND rv <= ? AND key >= ? AND key < ? ORDER BY rv
"""
#: CROSS JOIN: SQLite keeps the order of the revisions it is given
_VALUES: Final = "SELECT rv, bytes FROM json_each(?) AS wanted CROSS JOIN value ON value.rv = wanted.value"


class SqliteReader:
    """The reading connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def value(self, revision: int) -> bytes:
        """Return the value written at a revision."""
        try:
            row = self._connection.execute("SELECT bytes FROM value WHERE rv = ?", (revision,)).fetchone()
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        if row is None:
            raise self._missing(revision)
        value: bytes = row[0]
        return value

    def values(self, revisions: Sequence[int]) -> list[bytes]:
        """Return the values written at some revisions, in that order: fewer if they are large, but at least one."""
        values: list[bytes] = []
        size = 0
        try:
            rows = self._connection.execute(_VALUES, (str(list(revisions)),))
            for wanted, (revision, value) in zip(revisions, rows, strict=False):
                if revision != wanted:
                    raise self._missing(wanted)
                values.append(value)
                size += len(value)
                if size > _PIECE_BYTES:
                    return values
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        if len(values) < len(revisions):
            raise self._missing(revisions[len(values)])
        return values

    def log(self, prefix: str, after: int, until: int) -> tuple[list[StoreEvent], Revision]:
        """Events of a prefix with revisions in (after, until], and how far they reach (less if they are large)."""
        events: list[StoreEvent] = []
        size = 0
        end = prefix_end(prefix)
        # The empty blob is greater than every text.
        parameters = (after, until, prefix, b"" if end is None else end)
        try:
            for revision, key, created, value in self._connection.execute(_LOG, parameters):
                events.append(StoreEvent(revision, key, value, created == revision))
                size += len(value or b"")
                if size > _PIECE_BYTES:
                    return events, Revision(revision)
        except sqlite3.Error as error:
            raise explain(error, self._path) from error
        return events, Revision(until)

    def _missing(self, revision: int) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self._path} is damaged (the value of revision {revision} is missing); restore a backup"
        )

    def close(self) -> None:
        close_quietly(self._connection)
