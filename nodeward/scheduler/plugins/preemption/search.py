"""The search for candidate nodes of a preemption, some nodes at a time, until enough candidates are known.

What columns can say is asked of columns: filters that look at the node alone, and whether resources would do if all
pods of lower priority were gone. If no other filter looks at pods, columns also say who must go; else each node that is
left is asked about one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.lines import gather
from nodeward.scheduler.cache.plugin_set import PluginSet
from nodeward.scheduler.cache.ranked_pods import RankedPodRows
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status
from nodeward.scheduler.plugins.node_resources_fit import Need, NodeResourcesFit, lacking, need_of
from nodeward.scheduler.plugins.preemption.budgets import Budgets
from nodeward.scheduler.plugins.preemption.candidate import Candidate, best, enough
from nodeward.scheduler.plugins.preemption.dry_run import NO_VICTIMS, NodeDryRun
from nodeward.scheduler.plugins.preemption.victim_columns import LowerPriorityPods, crowd
from nodeward.scheduler.queue.nominator import Nominator

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Nodes looked at together, at least.
STRETCH: Final = 64


@dataclass(slots=True)
class PreemptionResult:
    """The outcome of a search. `reasons`: per reason, the number of nodes on which removing pods would not help."""

    best: Candidate | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    #: how many nodes were looked at
    looked_at: int = 0


@dataclass(slots=True)
class _Stretch:
    """Some nodes, looked at together."""

    rows: Ints
    crowd: LowerPriorityPods
    #: per row the first rejection by a filter that looks at the node alone, with the rank of the plugin
    static: list[tuple[int, Status]] | None
    is_possible: Bools
    free: Ints | None


class Search:
    """One search, for one pod."""

    def __init__(
        self,
        cycle: CycleState,
        pod: PodView,
        table: NodeTable,
        tenants: RankedPodRows,
        filters: PluginSet,
        budgets: Budgets,
        nominator: Nominator,
    ) -> None:
        self._cycle = cycle
        self._pod = pod
        self._table = table
        self._tenants = tenants
        self._filters = filters
        self._budgets = budgets
        self._nominator = nominator
        moving = filters.asked(cycle, is_static=False)
        fit = next((part for part in moving if part.name == NodeResourcesFit.name), None)
        self._need: Need | None = need_of(cycle) if fit is not None else None
        self._rank = fit.rank if fit is not None else 0
        self._only_resources = self._need is not None and len(moving) == 1

    def run(self, rows: Ints, offset: int, wanted: int) -> PreemptionResult:
        """Look at `rows` from `offset` round, until `wanted` candidates are known."""
        found = PreemptionResult()
        costs: list[Ints] = []
        picked: list[tuple[_Stretch, int, Bools]] = []
        candidates: list[Candidate] = []
        violations: list[int] = []
        turned = np.roll(rows, -offset)
        # Some will turn out to be no candidates.
        length = wanted + wanted // 4 + STRETCH
        for start in range(0, len(turned), length):
            stretch = self._look(turned[start : start + length])
            found.looked_at = min(start + length, len(turned))
            if self._only_resources:
                lines, which, is_victim = self._by_columns(stretch)
                costs.append(lines)
                picked.extend((stretch, column, is_victim) for column in which)
                violations.extend(lines[:, 0].tolist())
                rest: Iterable[Status] = ()
            else:
                rest = self._one_by_one(stretch, candidates, violations, wanted)
            end = enough(violations, wanted)
            if not violations:
                found.reasons.update(reason for status in rest for reason in status.reasons)
                self._explain(stretch, found.reasons)
            if end is not None:
                violations = violations[:end]
                last = picked[end - 1] if picked else None
                row = (
                    last[0].rows[last[1]]
                    if last is not None
                    else self._table.row_of(candidates[end - 1].node)
                )
                found.looked_at = int(np.flatnonzero(turned == row)[0]) + 1
                break
        if picked:
            table = np.concatenate(costs)[: len(violations)]
            first = int(np.lexsort((np.arange(len(table)), *table.T[::-1]))[0])
            stretch, column, is_victim = picked[first]
            node = self._table.name_of(int(stretch.rows[column]))
            found.best = stretch.crowd.candidate(node, column, is_victim)
        elif candidates:
            found.best = best(candidates[: len(violations)])
        return found

    # -- many nodes at once

    def _look(self, rows: Ints) -> _Stretch:
        table, need = self._table, self._need
        lower = crowd(self._tenants, rows, self._pod.priority, self._budgets)
        is_possible = lower.count > 0
        static = self._static(rows)
        if static is not None:
            is_possible &= np.array([status.is_success for _, status in static], np.bool_)
        free: Ints | None = None
        if need is not None:
            free = gather(table.allocatable, need.lines, rows) - gather(table.requested, need.lines, rows)
            free += lower.freed(need.lines)
            if len(self._nominator):
                self._reserve(free, rows, need)
            is_possible &= (free >= need.column).all(axis=0)
        return _Stretch(rows, lower, static, is_possible, free)

    def _static(self, rows: Ints) -> list[tuple[int, Status]] | None:
        found: list[tuple[int, Status]] | None = None
        for part in self._filters.asked(self._cycle, is_static=True):
            answer = part.filter_rows(self._cycle, self._table, rows)
            if answer is None:
                continue
            found = found or [(0, SUCCESS)] * len(rows)
            for column in np.flatnonzero(answer.which >= 0).tolist():
                if found[column][1].is_success:
                    found[column] = part.rank, answer.reasons[int(answer.which[column])]
        return found

    def _reserve(self, free: Ints, rows: Ints, need: Need) -> None:
        """What others are making room for is not free."""
        columns = {row: column for column, row in enumerate(rows.tolist())}
        for name in self._nominator.nodes():
            row = self._table.row_of(name)
            column = columns.get(row) if row is not None else None
            if column is None:
                continue
            for pod in self._nominated(name):
                taken = self._table.amounts_of(pod).requested
                free[:, column] -= [taken.get(resource, 0) for resource in need.amounts]

    def _nominated(self, node: str) -> list[PodView]:
        """The pods to which the node is promised, and which the new pod must respect."""
        mine = self._pod
        return [
            pod
            for pod in self._nominator.for_node(node)
            if pod.priority >= mine.priority and pod.uid != mine.uid and self._table.pod(pod.uid) is None
        ]

    def _by_columns(self, stretch: _Stretch) -> tuple[Ints, list[int], Bools]:
        """The costs of the rows where room can be made, which these are, and who must go."""
        need, free = self._need, stretch.free
        if need is None or free is None or not stretch.is_possible.any():
            return np.zeros((0, 5), np.int64), [], np.zeros(0, np.bool_)
        is_victim = stretch.crowd.victims(free.copy(), need.column, need.lines)
        costs = stretch.crowd.costs(is_victim)
        which = np.flatnonzero(stretch.is_possible & (costs[:, 3] > 0))
        return costs[which], which.tolist(), is_victim

    # -- one node at a time

    def _one_by_one(
        self, stretch: _Stretch, candidates: list[Candidate], violations: list[int], wanted: int
    ) -> list[Status]:
        rejected: list[Status] = []
        for column in np.flatnonzero(stretch.is_possible).tolist():
            row = int(stretch.rows[column])
            nominated = self._nominated(self._table.name_of(row)) if len(self._nominator) else ()
            thought = NodeDryRun(self._cycle, self._pod, self._table, row, self._filters, nominated)
            answer = thought.victims(self._tenants.of(row), self._budgets)
            if isinstance(answer, Status):
                rejected.append(answer)
                continue
            candidates.append(answer)
            violations.append(answer.violations)
            if enough(violations, wanted) is not None:
                break
        return rejected

    # -- why not

    def _explain(self, stretch: _Stretch, reasons: Counter[str]) -> None:
        """Count why rows are not possible: nobody to go, or the first filter that would still reject the node."""
        need, free = self._need, stretch.free
        short = free < need.column if need is not None and free is not None else None
        names = tuple(need.amounts) if need is not None else ()
        for column in np.flatnonzero(~stretch.is_possible).tolist():
            if not stretch.crowd.count[column]:
                reasons.update(NO_VICTIMS.reasons)
                continue
            rank, status = stretch.static[column] if stretch.static is not None else (0, SUCCESS)
            is_short = short is not None and bool(short[:, column].any())
            if is_short and short is not None and (status.is_success or self._rank < rank):
                lacks = [name for name, lack in zip(names, short[:, column].tolist(), strict=True) if lack]
                status = lacking(lacks, is_hopeless=False)
            reasons.update(status.reasons)
