"""Which rows changed since somebody last looked: a log with a version, of bounded length.

A reader remembers the version it has seen and asks for the rows that changed after it. When the log has been cut
since then, or holds more than is worth looking at one by one, the answer is None: everything may have changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Entries kept at least; more with more rows.
SHORTEST: Final = 1024


#: As many entries are looked through for repeated ones.
WORTH_SORTING: Final = 64


class ChangeLog:
    """The rows of one table that changed, in order."""

    __slots__ = ("_first", "_rows", "version")

    def __init__(self) -> None:
        # A list: what is asked for is nearly always the last few.
        self._rows: list[int] = []
        #: the version before the first entry that is kept
        self._first = 0
        self.version = 0

    def add(self, row: int, rows: int) -> None:
        """`row` changed, in a table of `rows`."""
        self._rows.append(row)
        self.version += 1
        keep = max(SHORTEST, rows)
        if len(self._rows) > 2 * keep:
            del self._rows[:-keep]
            self._first = self.version - keep

    def recent(self, version: int) -> list[int] | None:
        """The rows that changed after `version`, some perhaps twice; None: take all rows for changed."""
        return self._rows[version - self._first :] if version >= self._first else None

    def since(self, version: int) -> NDArray[np.int64] | None:
        """The same as an array, in which rows are told once if there are many."""
        rows = self.recent(version)
        if rows is None:
            return None
        found = np.array(rows, np.int64)
        return found if len(rows) < WORTH_SORTING else np.unique(found)
