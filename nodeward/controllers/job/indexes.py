"""Sets of completion indexes, kept as the runs of numbers they are written as: `0-3,5,7,8`. Pure.

A job may have a hundred thousand indexes, most of which are done in order: runs are few where numbers are many.
What cannot be read in a text is passed over, since a status may have been written by anybody.

Called by the other modules of this package.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

Run = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Indexes:
    """An ordered set. Runs are (first, last), in order, and never touch each other."""

    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Indexes:
        return cls(_joined((number, number) for number in sorted(numbers)))

    @classmethod
    def parse(cls, text: str | None, completions: int) -> Indexes:
        """Return what a text names below `completions`."""
        runs = [run for part in (text or "").split(",") if (run := _run(part, completions)) is not None]
        return cls(_joined(sorted(runs)))

    def __str__(self) -> str:
        return ",".join(_text(first, last) for first, last in self.runs)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.runs, (number, float("inf")))
        return place > 0 and self.runs[place - 1][1] >= number

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes(_joined(sorted((*self.runs, *other.runs)))) if other.runs else self

    def __and__(self, other: Indexes) -> Indexes:
        common: list[Run] = []
        mine, theirs = 0, 0
        while mine < len(self.runs) and theirs < len(other.runs):
            one, two = self.runs[mine], other.runs[theirs]
            if one[0] <= two[1] and two[0] <= one[1]:
                common.append((max(one[0], two[0]), min(one[1], two[1])))
            if one[1] < two[1]:
                mine += 1
            else:
                theirs += 1
        return Indexes(_joined(common))

    def absent(self, completions: int) -> Iterator[int]:
        """Return the numbers below `completions` that are not in the set, in order."""
        candidate = 0
        for first, last in self.runs:
            yield from range(candidate, min(first, completions))
            candidate = last + 1
        yield from range(candidate, completions)


NO_INDEXES: Final = Indexes()


def _joined(ordered: Iterable[Run]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for first, last in ordered:
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(runs[-1][1], last))
        else:
            runs.append((first, last))
    return tuple(runs)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


def _run(part: str, completions: int) -> Run | None:
    limits = part.split("-")
    if len(limits) > 2 or not all(limit.isascii() and limit.isdigit() for limit in limits):
        return None
    first, last = int(limits[0]), min(int(limits[-1]), completions - 1)
    return (first, last) if first <= last else None
