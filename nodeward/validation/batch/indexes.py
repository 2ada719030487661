"""Sets of job indexes written as text: `1,3-5,7`.

In goes the text and how many indexes there are, out comes how many the text names, or what is wrong with it.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.base.fielderror import quote

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class IndexesFault(ValueError):
    """The text is not a set of indexes; the message says why."""


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise IndexesFault(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise IndexesFault(f"too large index: {quote(text)}")
    return int(text)


def _interval(text: str, completions: int) -> tuple[int, int]:
    limits = text.split("-")
    if len(limits) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesFault(f"the fragment {quote(text)} {rule}")
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    last = _index(limits[1], completions)
    if first >= last:
        raise IndexesFault(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def count_indexes(text: str, completions: int) -> int:
    """How many indexes the text names."""
    total = 0
    previous: int | None = None
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if previous is not None and previous >= first:
            raise IndexesFault(f"non-increasing order, previous: {previous}, current: {first}")
        total += last - first + 1
        previous = last
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index both sets name; parts that cannot be read are passed over."""
    done, broken = _readable(completed, completions), _readable(failed, completions)
    i = j = 0
    while i < len(done) and j < len(broken):
        (first, last), (other_first, other_last) = done[i], broken[j]
        if first <= other_last and other_first <= last:
            return max(first, other_first)
        if first <= other_first:
            i += 1
        else:
            j += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    intervals: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_interval(part, completions))
        except IndexesFault:
            continue
    return intervals
