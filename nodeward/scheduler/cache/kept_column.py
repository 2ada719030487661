"""One number per row that depends on the row alone, kept and brought up to date with what changed.

Plugins that look at what pods took of nodes say the same of pods that ask for the same, whatever else these differ in:
pods of many signatures share a column. `many` works numbers out as arrays, `one` does the same for a single row, which
is several times as fast for the few rows that change between two pods.

What must stay true: `one` and `many` agree; a column that was handed out is read at once, and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

Ints: TypeAlias = NDArray[np.int64]

#: As many rows are worked out one by one.
FEW: Final = 8


class KeptColumn:
    """Numbers of all rows of one table."""

    __slots__ = ("__weakref__", "_many", "_one", "_table", "_values", "_version")

    def __init__(
        self, table: NodeTable, many: Callable[[NodeTable, Ints], Ints], one: Callable[[NodeTable, int], int]
    ) -> None:
        self._table = table
        self._many, self._one = many, one
        self._values: Ints = np.zeros(0, np.int64)
        self._version = 0

    def fresh(self) -> Ints:
        """The numbers, as the table is now."""
        table, values = self._table, self._values
        changes = table.changes
        version = changes.version
        is_whole = len(values) == table.capacity
        if version == self._version and is_whole:
            return values
        rows = changes.recent(self._version) if is_whole else None
        if rows is None or 4 * len(rows) > len(values):
            values = self._values = self._many(table, np.arange(table.capacity))
        elif len(rows) <= FEW:
            for row in rows:
                values[row] = self._one(table, row)
        else:
            several = np.array(rows, np.int64)
            values[several] = self._many(table, several)
        self._version = version
        return values


class KeptColumns:
    """Columns of one table, found by what they depend on. They live as long as somebody holds them."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._columns: WeakValueDictionary[Hashable, KeptColumn] = WeakValueDictionary()

    def get(
        self,
        key: Hashable,
        many: Callable[[NodeTable, Ints], Ints],
        one: Callable[[NodeTable, int], int],
    ) -> KeptColumn:
        """The column of a key; equal keys must come with functions that do the same."""
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = KeptColumn(self._table, many, one)
        return found
