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


_NOTHING: Final = np.zeros(0, np.int64)


class ChangeLog:
    """The rows of one table that changed, in order."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._first = 0

    @property
    def version(self) -> int:
        return self._first + len(self._rows)

    def add(self, row: int, rows: int) -> None:
        """`row` changed, in a table of `rows`."""
        self._rows.append(row)
        if len(self._rows) > max(SHORTEST, 2 * rows):
            cut = len(self._rows) // 2
            del self._rows[:cut]
            self._first += cut

    def since(self, version: int) -> NDArray[np.int64] | None:
        """The rows that changed after `version`, each once; None: take all rows for changed."""
        if version < self._first:
            return None
        if version == self.version:
            return _NOTHING
        rows = self._rows[version - self._first :]
        return np.array(rows if len(rows) < 2 else list(dict.fromkeys(rows)), np.int64)
