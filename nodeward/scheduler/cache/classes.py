"""The best row for a pod, at the cost of what changed since the last pod of its kind.

Pods of equal signature share a `PodClass`; a class that was not asked for long is dropped when all together take too
much memory. Plugins that must look at every pod anew (volatile ones) are asked for the rows the class left over.
Ties are broken by an offset the caller hands in and turns: the first of the best rows from there on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nodeward.scheduler.cache.plugin_set import Ints, Part, PluginSet
from nodeward.scheduler.cache.pod_class import PodClass
from nodeward.scheduler.framework.plugin import Cycle, Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

#: What all classes together may take, in bytes.
MOST_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a pod fits where it fits: per node that does not, the first plugin's reasons."""

    fitting: tuple[str, ...]
    rejected: Mapping[str, Status]
    #: set when the pod was rejected as such, before any node was looked at
    before: Status | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes have each reason; a node may have several."""
        found: dict[str, int] = {}
        for status in self.rejected.values():
            for reason in status.reasons:
                found[reason] = found.get(reason, 0) + 1
        return found

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that rejected a node or the pod, sorted."""
        return tuple(sorted({status.plugin for status in self.rejected.values()}))


class PodClasses:
    """The classes of one profile over one table."""

    def __init__(
        self,
        table: NodeTable,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._table = table
        self._plugins = PluginSet(plugins, weights)
        self._classes: OrderedDict[bytes, PodClass] = OrderedDict()
        self._most_bytes = most_bytes

    def __len__(self) -> int:
        return len(self._classes)

    def choose(self, pod: PodView, offset: int = 0) -> int | None:
        """The row of the best node, or None if none fits."""
        found = self._fresh(pod)
        if found.rejected is not None:
            return None
        if not found.volatile:
            return _best(found.total, offset % self._table.capacity)
        rows, totals = self._with_volatile(pod, found)
        if not len(rows):
            return None
        best = rows[totals == totals.max()]
        return int(best[np.searchsorted(best, offset % self._table.capacity) % len(best)])

    def fitting(self, pod: PodView) -> Ints:
        """The rows of all nodes that fit."""
        found = self._fresh(pod)
        if found.rejected is not None:
            return np.zeros(0, np.int64)
        return self._with_volatile(pod, found)[0] if found.volatile else np.flatnonzero(found.fits)

    def cycle(self, pod: PodView) -> Cycle:
        """What plugins remember of the pod, for the later extension points. The caller may add to its own copy."""
        shared = self._fresh(pod).cycle
        return Cycle(pod, dict(shared.data), set(shared.skipped_filters), set(shared.skipped_scores))

    def explain(self, pod: PodView) -> Explanation:
        """Why each node that does not fit does not."""
        found, table = self._fresh(pod), self._table
        rows = table.rows()
        if found.rejected is not None:
            names = [table.name_of(row) for row in rows.tolist()]
            return Explanation((), dict.fromkeys(names, found.rejected), found.rejected)
        why = found.first_reasons(rows)
        if found.volatile:
            cycle, filters, rejected = self._prepare(pod, found)
            if rejected is not None:
                names = [table.name_of(row) for row in rows.tolist()]
                return Explanation((), dict.fromkeys(names, rejected), rejected)
            for part in filters:
                # A row is asked about unless a plugin before this one rejected it.
                ranks = np.array([*found.ranks, np.iinfo(np.int32).max], np.int64)
                asked = np.flatnonzero(ranks[why] > part.rank)
                answer = part.filter_rows(cycle, table, rows[asked])
                if answer is not None:
                    is_out = answer.which >= 0
                    why[asked[is_out]] = found.number(part, answer)[answer.which[is_out]]
        named = [
            (table.name_of(row), number) for row, number in zip(rows.tolist(), why.tolist(), strict=True)
        ]
        return Explanation(
            tuple(name for name, number in named if number < 0),
            {name: found.reasons[number] for name, number in named if number >= 0},
        )

    # -- classes

    def _fresh(self, pod: PodView) -> PodClass:
        key = pod.signature
        found = self._classes.get(key)
        if found is None:
            volatile = self._plugins.volatile_for(pod)
            found = self._classes[key] = PodClass(pod, self._plugins, volatile, self._table)
            self._drop_old()
        else:
            self._classes.move_to_end(key)
        found.refresh()
        return found

    def _drop_old(self) -> None:
        room = self._most_bytes - sum(each.nbytes for each in self._classes.values())
        while room < 0 and len(self._classes) > 1:
            _, dropped = self._classes.popitem(last=False)
            room += dropped.nbytes

    # -- what must be asked for every pod

    def _prepare(self, pod: PodView, found: PodClass) -> tuple[Cycle, list[Part], Status | None]:
        """A cycle of this pod's own, and the volatile filters that have something to say about it."""
        shared = found.cycle
        cycle = Cycle(pod, dict(shared.data), set(shared.skipped_filters), set(shared.skipped_scores))
        for part in self._plugins.pre_filters:
            if part.name not in found.volatile:
                continue
            status: Status = part.plugin.pre_filter(cycle, pod, self._table)
            if status.is_skip:
                cycle.skipped_filters.add(part.name)
            elif not status.is_success:
                return cycle, [], status.of(part.name)
        asked = found.volatile - cycle.skipped_filters
        return cycle, [part for part in self._plugins.filters if part.name in asked], None

    def _with_volatile(self, pod: PodView, found: PodClass) -> tuple[Ints, Ints]:
        """The rows that fit this very pod, and their scores."""
        table = self._table
        cycle, filters, rejected = self._prepare(pod, found)
        rows = np.flatnonzero(found.fits) if rejected is None else np.zeros(0, np.int64)
        for part in filters:
            answer = part.filter_rows(cycle, table, rows)
            if answer is not None:
                rows = rows[answer.which < 0]
        if not len(rows):
            return rows, rows
        totals = found.plain_scores(rows) + found.normalized(rows)
        for part in self._plugins.pre_scores:
            if part.name in found.volatile and part.plugin.pre_score(cycle, pod, table).is_skip:
                cycle.skipped_scores.add(part.name)
        for part in self._plugins.scores:
            if part.name in found.volatile and part.name not in cycle.skipped_scores:
                totals += part.normalized(cycle, part.score_rows(cycle, table, rows))
        return rows, totals


def _best(totals: Ints, offset: int) -> int | None:
    """The first of the highest, counted from `offset` round; None if none is feasible."""
    best = int(totals[offset:].argmax()) + offset
    if offset:
        other = int(totals[:offset].argmax())
        if totals[other] > totals[best]:
            best = other
    return best if totals[best] >= 0 else None
