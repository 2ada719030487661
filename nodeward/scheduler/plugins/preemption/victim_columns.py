"""The victims on many nodes at once, for pods that only resources keep off these nodes.

Pods of lower priority lie side by side in flat arrays. All of them are taken off their nodes in thought; then, one
place in the order after the other, those that fit beside the new pod come back: pods whose budget would be violated
first, and in each kind the most important first. Who does not come back is a victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.lines import Lines
from nodeward.scheduler.cache.ranked_pods import NOT_YET, RankedPodRows, RankedPods
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.preemption.budgets import Budgets
from nodeward.scheduler.plugins.preemption.candidate import LIFT, Candidate

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LowerPriorityPods:
    """The pods of lower priority on some rows, row by row, in the order in which they may come back."""

    tenants: Sequence[RankedPods]
    #: per pod: the place of its row among the asked ones, its place among the row's tenants, and facts about it
    column: Ints
    index: Ints
    priority: Ints
    started: Ints
    violates: Bools
    #: a line per resource of the table
    amounts: Ints
    #: per row
    count: Ints

    def freed(self, lines: Lines) -> Ints:
        """What all of them take of these resources: a line per resource, a column per row."""
        taken = self._lines(lines)
        sums = np.zeros((len(taken), taken.shape[1] + 1), np.int64)
        np.cumsum(taken, axis=1, out=sums[:, 1:])
        ends = np.cumsum(self.count)
        freed: Ints = sums[:, ends] - sums[:, ends - self.count]
        return freed

    def victims(self, free: Ints, need: Ints, lines: Lines) -> Bools:
        """Per pod whether it must go, if this much is `free` without all of them. `free` is used up."""
        most = int(self.count.max(initial=0))
        total = len(self.column)
        # Where no pod is, stands one that takes nothing.
        at = np.full((most, len(self.count)), total, np.int64)
        starts = np.cumsum(self.count) - self.count
        at[np.arange(total) - starts[self.column], self.column] = np.arange(total)
        taken = np.hstack((self._lines(lines), np.zeros((len(need), 1), np.int64)))
        must_go = np.zeros(total + 1, np.bool_)
        for place in at:
            here = taken[:, place]
            fits = (free - here >= need).all(axis=0)
            must_go[place[~fits]] = True
            free -= np.where(fits, here, 0)
        return must_go[:total]

    def costs(self, is_victim: Bools) -> Ints:
        """A line per row: what `Candidate.cost` would be; and the number of victims is the fourth."""
        rows = len(self.count)
        column, priority = self.column[is_victim], self.priority[is_victim]
        highest = np.full(rows, np.iinfo(np.int64).min, np.int64)
        np.maximum.at(highest, column, priority)
        is_top = priority == highest[column]
        earliest = np.full(rows, NOT_YET, np.int64)
        np.minimum.at(earliest, column[is_top], self.started[is_victim][is_top])
        total = np.zeros(rows, np.int64)
        np.add.at(total, column, priority + LIFT)
        violations = np.bincount(column[self.violates[is_victim]], minlength=rows)
        return np.stack((violations, highest, total, np.bincount(column, minlength=rows), -earliest), axis=1)

    def candidate(self, node: str, column: int, is_victim: Bools) -> Candidate:
        """One row as a candidate."""
        mine = np.flatnonzero(is_victim & (self.column == column))
        pods = self.tenants[column].pods
        victims = tuple(pods[index].view for index in np.sort(self.index[mine]).tolist())
        return Candidate(node, victims, int(np.count_nonzero(self.violates[mine])))

    def _lines(self, lines: Lines) -> Ints:
        return self.amounts[lines] if isinstance(lines, slice) else self.amounts[lines[:, 0]]


def crowd(tenants: RankedPodRows, rows: Ints, priority: int, budgets: Budgets) -> LowerPriorityPods:
    """Everybody on these rows whose priority is lower."""
    found = tenants.of_rows(rows.tolist())
    lengths = np.array([len(each.pods) for each in found], np.int64)
    flat_priority = np.concatenate([each.priority for each in found])
    is_lower = flat_priority < priority
    column = np.repeat(np.arange(len(found)), lengths)[is_lower]
    index = (np.arange(len(flat_priority)) - np.repeat(np.cumsum(lengths) - lengths, lengths))[is_lower]
    count = np.bincount(column, minlength=len(found))
    violates = _violates(found, count, budgets) if budgets else np.zeros(len(column), np.bool_)
    order: Ints | slice = slice(None)
    if violates.any():
        order = np.lexsort((index, ~violates, column))
    return LowerPriorityPods(
        found,
        column[order],
        index[order],
        flat_priority[is_lower][order],
        np.concatenate([each.started for each in found])[is_lower][order],
        violates[order],
        np.concatenate([each.amounts for each in found])[is_lower][order].T,
        count,
    )


def _violates(tenants: Sequence[RankedPods], count: Ints, budgets: Budgets) -> Bools:
    flags: list[bool] = []
    for each, lower in zip(tenants, count.tolist(), strict=True):
        # Those of lower priority are the last.
        pods: list[PodView] = [placed.view for placed in each.pods[len(each.pods) - lower :]]
        flags.extend(budgets.violated(pods))
    return np.array(flags, np.bool_)
