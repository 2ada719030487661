"""A sorted set of keys that stays fast when there are a million of them.

In: keys to add and remove. Out: the keys of a range, and how many there are. The keys lie in sorted blocks of
bounded length, so that adding one moves a few kilobytes rather than all of them.

What must stay true: every key of block i is >= `_starts[i]` and < `_starts[i + 1]`; no block is empty but a
single first one.

Called by `memory` and `sqlite_index`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Final

_BLOCK: Final = 1024


class SortedKeys:
    """Keys in order. An `end` of None means: no end."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        ordered = sorted(keys)
        self._blocks = [ordered[start : start + _BLOCK] for start in range(0, len(ordered), _BLOCK)] or [[]]
        self._starts = ["", *(block[0] for block in self._blocks[1:])]

    def add(self, key: str) -> None:
        """Add a key that is not there yet."""
        position = bisect_right(self._starts, key) - 1
        block = self._blocks[position]
        insort(block, key)
        if len(block) >= 2 * _BLOCK:
            upper = block[_BLOCK:]
            del block[_BLOCK:]
            self._blocks.insert(position + 1, upper)
            self._starts.insert(position + 1, upper[0])

    def remove(self, key: str) -> None:
        """Remove a key that is there."""
        position = bisect_right(self._starts, key) - 1
        block = self._blocks[position]
        del block[bisect_left(block, key)]
        if not block and position:
            del self._blocks[position]
            del self._starts[position]

    def between(self, low: str, end: str | None, limit: int = 0) -> list[str]:
        """Return the keys in [low, end), at most `limit` (0: all)."""
        position, offset = self._locate(low)
        found: list[str] = []
        while position < len(self._blocks):
            block = self._blocks[position]
            stop = len(block) if end is None else bisect_left(block, end)
            if limit:
                stop = min(stop, offset + limit - len(found))
            found.extend(block[offset:stop])
            if stop < len(block):
                break
            position, offset = position + 1, 0
        return found

    def count(self, low: str, end: str | None) -> int:
        """Return how many keys there are in [low, end)."""
        first = self._rank(*self._locate(low))
        last = self._rank(len(self._blocks), 0) if end is None else self._rank(*self._locate(end))
        return max(last - first, 0)

    def _locate(self, key: str) -> tuple[int, int]:
        position = bisect_right(self._starts, key) - 1
        return position, bisect_left(self._blocks[position], key)

    def _rank(self, position: int, offset: int) -> int:
        return sum(map(len, self._blocks[:position])) + offset
