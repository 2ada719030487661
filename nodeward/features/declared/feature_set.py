"""Sets of features as bitmaps: one Python integer each, and a table that says which bit is which name.

A table numbers the names of a registry in their order; a set holds bits of one table. One match is one `&`, however
many features there are; for a column of nodes see `columns`.

What must stay true: bits of different tables never meet (that is an error, not a wrong answer); a set is immutable.

Called by `declared`, `columns` and `framework`; calls `errors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from nodeward.features.declared.errors import FeatureError

WORD_BITS: Final = 64
_WORD: Final = (1 << WORD_BITS) - 1


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """Names and their bits. Equal tables have the same names, and their sets can be compared."""

    names: tuple[str, ...]
    _bits: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if list(self.names) != sorted({*self.names}):
            raise FeatureError("the names of a table of features must be sorted, each once")
        object.__setattr__(self, "_bits", {name: 1 << number for number, name in enumerate(self.names)})

    @property
    def words(self) -> int:
        """How many 64-bit words a set of this table takes; at least one."""
        return max(1, -(-len(self.names) // WORD_BITS))

    def bit(self, name: str) -> int:
        """Return the bit of a name; 0 for one that is not known."""
        return self._bits.get(name, 0)

    def set_of(self, names: Iterable[str]) -> FeatureSet:
        """Return the set of these names, in any order. Unknown names are ignored: a newer node has some."""
        get = self._bits.get
        bits = 0
        for name in names:
            bits |= get(name, 0)
        return FeatureSet(self, bits)


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """Some of the features of a table."""

    table: FeatureTable
    bits: int = 0

    def __bool__(self) -> bool:
        return self.bits != 0

    def __contains__(self, name: str) -> bool:
        return self.bits & self.table.bit(name) != 0

    def __len__(self) -> int:
        return self.bits.bit_count()

    @property
    def is_empty(self) -> bool:
        return not self.bits

    def names(self) -> tuple[str, ...]:
        """Return the names in the set, sorted."""
        found = []
        bits = self.bits
        while bits:
            lowest = bits & -bits
            found.append(self.table.names[lowest.bit_length() - 1])
            bits ^= lowest
        return tuple(found)

    def is_subset_of(self, other: FeatureSet) -> bool:
        if self.table is not other.table:  # asked here first, because this is asked once per node
            self._check(other)
        return not self.bits & ~other.bits

    def __sub__(self, other: FeatureSet) -> FeatureSet:
        self._check(other)
        return FeatureSet(self.table, self.bits & ~other.bits)

    def __or__(self, other: FeatureSet) -> FeatureSet:
        self._check(other)
        return FeatureSet(self.table, self.bits | other.bits)

    def as_words(self) -> tuple[int, ...]:
        """Return the bits as unsigned 64-bit words, the lowest first: as many as the table takes."""
        return tuple(self.bits >> (number * WORD_BITS) & _WORD for number in range(self.table.words))

    def __str__(self) -> str:
        """One character per feature of the table, the first feature first."""
        return "".join("1" if self.bits >> number & 1 else "0" for number in range(len(self.table.names)))

    def _check(self, other: FeatureSet) -> None:
        if self.table != other.table:
            raise FeatureError("feature sets of different registries cannot be compared")
