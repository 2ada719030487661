"""Sets of CPU numbers, written as Linux writes them: `0-3,8,10-11`.

In goes a list text (from sysfs, a cgroup file, a flag, a checkpoint) or CPU numbers, out come sets that can be joined,
cut and printed. Inside, a set is one integer with a bit for each CPU, so that set arithmetic costs nothing.

What must stay true: immutable; iteration and text are in ascending order; printing and parsing again gives an
equal set.

Called by the kubelet; calls `duration`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from nodeward.base.duration import quote
from nodeward.base.errors import NodewardError

#: Unlike upstream: larger CPU numbers are refused (Linux stops at 8192), so that no text can ask for gigabytes.
LARGEST_CPU: Final = 65535

_NUMBER: Final = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)")


class CPUSetError(NodewardError, ValueError):
    """The text is not a list of CPUs."""


class CPUSet:
    """Some CPUs. Make one with `of`, `parse` or `from_bits`."""

    __slots__ = ("bits",)

    #: Bit n is set if CPU n is in.
    bits: Final[int]
    EMPTY: ClassVar[CPUSet]

    def __init__(self, cpus: Iterable[int] = ()) -> None:
        bits = 0
        for cpu in cpus:
            bits |= 1 << _checked(cpu)
        self.bits = bits

    @staticmethod
    def of(*cpus: int) -> CPUSet:
        return CPUSet(cpus)

    @staticmethod
    def from_bits(bits: int) -> CPUSet:
        if bits < 0 or bits.bit_length() > LARGEST_CPU + 1:
            raise CPUSetError(f"a bitmap of CPUs is neither negative nor larger than CPU {LARGEST_CPU}")
        made = CPUSet.__new__(CPUSet)
        made.bits = bits  # type: ignore[misc]  # nobody has seen it yet
        return made

    @staticmethod
    def parse(text: str) -> CPUSet:
        """Return the set that `text` lists, for example `0-3,8`; the empty text is the empty set."""
        bits = 0
        for item in text.split(",") if text else ():
            first, dash, last = item.partition("-")
            low = _number(first)
            high = _number(last) if dash else low
            if low > high:
                raise CPUSetError(f"invalid range {quote(item)} ({low} > {high})")
            bits |= (1 << (_checked(high) + 1)) - (1 << _checked(low))
        return CPUSet.from_bits(bits)

    def union(self, *others: CPUSet) -> CPUSet:
        bits = self.bits
        for other in others:
            bits |= other.bits
        return CPUSet.from_bits(bits)

    def intersection(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_bits(self.bits & other.bits)

    def difference(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_bits(self.bits & ~other.bits)

    def symmetric_difference(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_bits(self.bits ^ other.bits)

    def issubset(self, other: CPUSet) -> bool:
        return not self.bits & ~other.bits

    def isdisjoint(self, other: CPUSet) -> bool:
        return not self.bits & other.bits

    __or__ = union
    __and__ = intersection
    __sub__ = difference
    __xor__ = symmetric_difference
    __le__ = issubset

    def __ge__(self, other: CPUSet) -> bool:
        return other.issubset(self)

    def __lt__(self, other: CPUSet) -> bool:
        return self.bits != other.bits and self.issubset(other)

    def __gt__(self, other: CPUSet) -> bool:
        return other < self

    def __eq__(self, other: object) -> bool:
        return self.bits == other.bits if isinstance(other, CPUSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.bits)

    def __contains__(self, cpu: int) -> bool:
        return cpu >= 0 and bool(self.bits >> cpu & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __iter__(self) -> Iterator[int]:
        """From the lowest CPU to the highest."""
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest

    def __str__(self) -> str:
        runs: list[str] = []
        bits, base = self.bits, 0
        while bits:
            gap = (bits & -bits).bit_length() - 1
            bits >>= gap
            base += gap
            # Adding one to a run of ones turns it into a single higher one.
            length = (~bits & (bits + 1)).bit_length() - 1
            runs.append(str(base) if length == 1 else f"{base}-{base + length - 1}")
            bits >>= length
            base += length
        return ",".join(runs)

    def __repr__(self) -> str:
        return f"CPUSet({str(self)!r})"


CPUSet.EMPTY = CPUSet()


def _number(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise CPUSetError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    sign, digits = match.groups()
    if len(digits) > 18:
        raise CPUSetError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return int(f"{sign}{digits or 0}")


def _checked(cpu: int) -> int:
    if not 0 <= cpu <= LARGEST_CPU:
        raise CPUSetError(f"CPU numbers go from 0 to {LARGEST_CPU}, not {cpu}")
    return cpu
