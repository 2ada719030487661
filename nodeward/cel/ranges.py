"""Ranges of sizes and costs: from at least to at most, in unsigned 64 bit numbers that stop at their end.

Used by the cost estimate. `UNKNOWN` is a size nobody can bound.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

LARGEST: Final = 2**64 - 1
_TWO_TO_64: Final = 2.0**64


def scale(amount: int, factor: float) -> int:
    """Multiply by a factor and round up."""
    number = float(amount)
    if number > 0 and factor > 0 and number > _TWO_TO_64 / factor:
        return LARGEST
    product = math.ceil(number * factor)
    return LARGEST if product >= 2**64 else product


class Range(NamedTuple):
    """A size or a cost: at least `low`, at most `high`."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, LARGEST), min(self.high + other.high, LARGEST))

    def times(self, other: Range) -> Range:
        return Range(min(self.low * other.low, LARGEST), min(self.high * other.high, LARGEST))

    def scaled(self, factor: float) -> Range:
        return Range(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def exactly(amount: int) -> Range:
    return Range(amount, amount)


ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, LARGEST)

#: What reading a character costs, and what a character of a regular expression does.
TRAVERSAL: Final = 0.1
REGEX: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40
