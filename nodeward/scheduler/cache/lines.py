"""Some lines of a table at some rows: one small matrix, a line per resource.

Most pods ask for pods, CPU and memory, whose lines lie together; then a slice does, which is twice as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Lines: TypeAlias = slice | Ints


def lines(numbers: Sequence[int]) -> Lines:
    """The lines with these numbers, in this order."""
    if numbers and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return slice(numbers[0], numbers[-1] + 1)
    return np.array(numbers, np.int64)[:, None]


def gather(array: Ints, which: Lines, rows: Ints) -> Ints:
    """The cells of `array` in these lines and rows."""
    return array[which].take(rows, axis=1) if isinstance(which, slice) else array[which, rows]
