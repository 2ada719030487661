"""Labels of nodes as columns: per key one array of numbers that stand for values, made when a key is first asked for.

What must stay true: a number stands for the same value of its key for ever; `ABSENT` is a node without the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

ABSENT: Final = -1


class Labelled(Protocol):
    """A table of nodes."""

    capacity: int

    def labels_by_row(self) -> Iterable[tuple[int, Mapping[str, str]]]: ...


class LabelColumns:
    """The columns of one table."""

    def __init__(self, source: Labelled) -> None:
        self._source = source
        self._columns: dict[str, NDArray[np.int32]] = {}
        self._ids: dict[str, dict[str, int]] = {}
        self._values: dict[str, list[str]] = {}
        self._slots: dict[str, NDArray[np.int64]] = {}

    def column(self, key: str) -> NDArray[np.int32]:
        """Per row the number of the value of a label; `values` says which is which."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = np.full(self._source.capacity, ABSENT, np.int32)
            self._ids[key] = {}
            self._values[key] = []
            for row, here in self._source.labels_by_row():
                column[row] = self._number(key, here.get(key))
        return column

    def slots(self, key: str) -> tuple[NDArray[np.int64], int]:
        """As `column`, to add up by value: nodes without the label are in the last slot. And how many slots there are.

        Not to be changed; another array when a node's value changes.
        """
        slots = self._slots.get(key)
        column = self.column(key)
        last = len(self._values[key])
        if slots is None:
            slots = self._slots[key] = np.where(column == ABSENT, last, column).astype(np.int64)
        return slots, last + 1

    def values(self, key: str) -> Sequence[str]:
        """The values of a key there have been, by their number."""
        return self._values.get(key, ())

    def number(self, key: str, value: str) -> int | None:
        """The number of a value, if a node ever had it."""
        return self._ids.get(key, {}).get(value)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            number = self._number(key, labels.get(key))
            if number != column[row]:
                column[row] = number
                self._slots.pop(key, None)

    def grow(self, capacity: int) -> None:
        self._slots.clear()
        for key, column in self._columns.items():
            grown = np.full(capacity, ABSENT, np.int32)
            grown[: len(column)] = column
            self._columns[key] = grown

    def _number(self, key: str, value: str | None) -> int:
        if value is None:
            return ABSENT
        ids = self._ids[key]
        number = ids.get(value)
        if number is None:
            number = ids[value] = len(ids)
            self._values[key].append(value)
        return number


def sum_by_slot(slots: NDArray[np.int64], amounts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The amounts of rows, added up per slot (exact up to 2**53)."""
    return np.bincount(slots, amounts, size).astype(np.float64, copy=False)
