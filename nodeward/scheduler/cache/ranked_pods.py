"""The pods of each row, the most important first: what DefaultPreemption searches for victims.

A pod is more important than another if its priority is higher, or equal and it runs for longer. Rows are sorted when
first asked for and again after their pods changed: a scheduler that never preempts pays nothing.

What must stay true: after `refresh` a row's ranked pods are the pods the table counts there, in their newest version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.base.timestamp import parse_rfc3339
from nodeward.scheduler.framework.pod import PodView

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable, Placed

Ints = NDArray[np.int64]

#: When a pod started that has not: later than any other.
NOT_YET: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class RankedPods:
    """The pods of one row, the most important first; the arrays have a line per pod."""

    pods: tuple[Placed, ...]
    priority: Ints
    started: Ints
    #: per pod what it takes, by the lines of the table
    amounts: Ints


def started_ns(pod: PodView) -> int:
    """When the pod's node took it up."""
    text = pod.pod.status.start_time
    return parse_rfc3339(text) if text else NOT_YET


class RankedPodRows:
    """The tenants of all rows of one table."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[int, RankedPods] = {}
        self._changes = self._retold = 0
        self._lines = 0

    def refresh(self) -> None:
        """Forget what changed in the table since the last time."""
        table = self._table
        changed, retold = table.changes.since(self._changes), table.retold.since(self._retold)
        self._changes, self._retold = table.changes.version, table.retold.version
        if changed is None or retold is None or len(table.resources) != self._lines:
            self._lines = len(table.resources)
            self._known.clear()
            return
        for row in (*changed.tolist(), *retold.tolist()):
            self._known.pop(row, None)

    def of(self, row: int) -> RankedPods:
        found = self._known.get(row)
        if found is None:
            found = self._known[row] = self._sort(row)
        return found

    def of_rows(self, rows: Iterable[int]) -> list[RankedPods]:
        known = self._known
        return [known.get(row) or self.of(row) for row in rows]

    def _sort(self, row: int) -> RankedPods:
        keyed = [
            (-placed.view.priority, started_ns(placed.view), number, placed)
            for number, placed in enumerate(self._table.placed_on(row))
        ]
        keyed.sort(key=lambda each: each[:3])
        amounts = np.zeros((len(keyed), self._lines), np.int64)
        for line, (_, _, _, placed) in enumerate(keyed):
            taken = placed.amounts.lines[0]
            amounts[line, : len(taken)] = taken
        return RankedPods(
            tuple(placed for _, _, _, placed in keyed),
            np.array([-negated for negated, _, _, _ in keyed], np.int64),
            np.array([started for _, started, _, _ in keyed], np.int64),
            amounts,
        )
