"""Could one set of labels match two selectors: asked before two rules are allowed to fight over the same nodes.

In go two selectors, out comes whether labels can be thought of that both select; never whether a node has them now,
since nodes come later. Each label key can be thought about alone, and a value can always be found unless the
requirements on that key contradict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeward.rules.selectors import LabelRequirements, Requirement, label_number

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def overlap(one: LabelRequirements, other: LabelRequirements) -> bool:
    """Tell whether some labels match both. A selector that contradicts itself matches nothing."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in (*one.requirements, *other.requirements):
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(_is_possible(requirements) for requirements in by_key.values())


def _is_possible(requirements: Sequence[Requirement]) -> bool:
    """Tell whether a label can be so, or be absent, that all of this holds. All requirements are about one key."""
    if any(each.operator == "!" for each in requirements):
        return all(each.operator in ("!", "!=", "notin") for each in requirements)
    refused = {value for each in requirements if each.operator in ("!=", "notin") for value in each.values}
    named = [{*each.values} for each in requirements if each.operator in ("=", "in")]
    low, high = _bounds(requirements)
    if named:
        left = set.intersection(*named) - refused
        return any(_is_within(value, requirements) for value in left)
    # Numbers between the bounds, less those that are refused; 007 and +7 are further ways to write 7, but count as
    # one here: nobody tells nodes apart by them.
    if low > high:
        return False
    if any(each.operator in "<>" for each in requirements):
        taken = {number for value in refused if (number := label_number(value)) is not None}
        return high - low + 1 > sum(low <= number <= high for number in taken)
    return True


def _bounds(requirements: Sequence[Requirement]) -> tuple[int, int]:
    low, high = _LEAST, _MOST
    for each in requirements:
        number = label_number(each.values[0]) if each.operator in (">", "<") else None
        if number is not None:
            low, high = (max(low, number + 1), high) if each.operator == ">" else (low, min(high, number - 1))
    return low, high


def _is_within(value: str, requirements: Sequence[Requirement]) -> bool:
    return all(each.matches({each.key: value}) for each in requirements)
