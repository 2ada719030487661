"""What of a node's resources would be used if the pod were there: what resource scores are made of.

Only resources the node has count, and of the extended ones only those the pod asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.amounts import CPU, EPHEMERAL_STORAGE, MEMORY, MOST
from nodeward.scheduler.cache.lines import Lines, gather, lines

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

Ints = NDArray[np.int64]

_ALWAYS: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Weighed:
    """The resources that count for one pod: their weights, what it adds, and their lines in the table."""

    names: tuple[str, ...]
    weights: tuple[int, ...]
    adds: tuple[int, ...]
    #: (line, weight, what the pod adds) of each: all that scores depend on, beside the node
    key: tuple[tuple[int, int, int], ...]
    lines: Lines
    weight_column: Ints
    #: all weights together
    weight: int
    add_column: Ints
    #: nothing, and what the pod adds: a line per resource, each of these two, any number of nodes
    before_and_after: Ints

    def there(self, table: NodeTable, rows: Ints) -> Ints:
        """What there is, a line per resource."""
        return gather(table.allocatable, self.lines, rows)

    def cells(
        self, allocatable: Mapping[str, int], used: Mapping[str, int]
    ) -> list[tuple[int, int, int, int]]:
        """(weight, used before, what the pod adds, what there is) of the resources one node has."""
        return [
            (weight, used.get(name, 0), adds, allocatable[name])
            for name, weight, adds in zip(self.names, self.weights, self.adds, strict=True)
            if allocatable.get(name)
        ]

    def cells_of(self, allocatable: Ints, used: Ints, row: int) -> list[tuple[int, int, int, int]]:
        """The same for a row of the table."""
        there, before = allocatable.item, used.item
        return [
            (weight, before(line, row), adds, amount)
            for line, weight, adds in self.key
            if (amount := there(line, row))
        ]


def weighed(resources: Iterable[tuple[str, int]], asked: Mapping[str, int], table: NodeTable) -> Weighed:
    """The resources of a configuration that count for a pod that asks for this."""
    counted = [(name, weight) for name, weight in resources if asked.get(name) or name in _ALWAYS]
    names = tuple(name for name, _ in counted)
    weights = tuple(weight for _, weight in counted)
    adds = tuple(min(asked.get(name, 0), MOST) for name in names)
    numbers = [table.line_of(name) for name in names]
    return Weighed(
        names,
        weights,
        adds,
        tuple(zip(numbers, weights, adds, strict=True)),
        lines(numbers),
        np.array(weights, np.int64)[:, None],
        sum(weights),
        np.array(adds, np.int64)[:, None],
        np.array([(0, add) for add in adds], np.int64).reshape(-1, 2, 1),
    )


def resources_of(listed: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, int], ...]:
    """The (name, weight) pairs of a configuration; CPU and memory alike if it names none."""
    found = tuple((str(each["name"]), int(each.get("weight") or 1)) for each in listed)
    return found or ((CPU, 1), (MEMORY, 1))
