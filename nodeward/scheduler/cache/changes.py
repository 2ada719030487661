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

    def __init__(self) -> None:
        self._rows = np.zeros(2 * SHORTEST, np.int64)
        #: the version before the first entry that is kept, and how many are
        self._first = 0
        self._length = 0

    @property
    def version(self) -> int:
        return self._first + self._length

    def add(self, row: int, rows: int) -> None:
        """`row` changed, in a table of `rows`."""
        if self._length == len(self._rows):
            keep = max(SHORTEST, rows)
            kept = np.zeros(2 * keep, np.int64)
            keep = min(keep, self._length)
            kept[:keep] = self._rows[self._length - keep : self._length]
            self._first += self._length - keep
            self._rows, self._length = kept, keep
        self._rows[self._length] = row
        self._length += 1

    def since(self, version: int) -> NDArray[np.int64] | None:
        """The rows that changed after `version`, some perhaps twice; None: take all rows for changed."""
        if version < self._first:
            return None
        rows = self._rows[version - self._first : self._length]
        return rows.copy() if len(rows) < WORTH_SORTING else np.unique(rows)
