"""The best row for a pod, at the cost of what changed since the last pod with the same signature.

`NodeChooser` calls `pick`, the engine `diagnose` when no row fits; both look up the pod's `PodClass` and bring it up to
date. Pods of equal signature share a `PodClass`; a class that was not asked for long is dropped when all together take
too much memory. Plugins that must look at every pod anew (stateful ones) are asked for the rows the class left over.
Ties are broken by an offset the caller hands in and turns: the first of the best rows from there on.

A class a pre-filter rejects is not kept: what pre-filters look at may change without a row changing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache import diagnosis
from nodeward.scheduler.cache.diagnosis import Diagnosis
from nodeward.scheduler.cache.kept_column import KeptColumns
from nodeward.scheduler.cache.plugin_set import Ints, PluginPart, PluginSet
from nodeward.scheduler.cache.pod_class import PodClass
from nodeward.scheduler.cache.pre_filtering import PreFilterOutcome, run_pre_filters, run_pre_scores
from nodeward.scheduler.framework.plugin import (
    CycleState,
    NotedFilterPlugin,
    Plugin,
    RejectedRows,
    RejectionNotes,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

#: What all classes together may take, in bytes.
MOST_BYTES: Final = 256 * 1024 * 1024
_NOWHERE: Final[Mapping[str, frozenset[str]]] = {}


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


class Pick(NamedTuple):
    """A decision: the row, if there is one; the class it came from; and the cycle, which may be the class' own."""

    row: int | None
    found: PodClass
    cycle: CycleState


class PodClasses:
    """The classes of one profile over one table."""

    def __init__(
        self,
        table: NodeTable,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        disabled: Mapping[str, frozenset[str]] = _NOWHERE,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._table = table
        self.plugins: Final = PluginSet(plugins, weights, disabled)
        self._classes: OrderedDict[bytes, PodClass] = OrderedDict()
        self._columns = KeptColumns(table)
        self._most_bytes = most_bytes
        self._dropped: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._classes)

    def choose(self, pod: PodView, offset: int = 0) -> int | None:
        """The row of the best node, or None if none fits."""
        return self.pick(pod, offset).row

    def pick(self, pod: PodView, offset: int = 0, among: Ints | None = None) -> Pick:
        """The best row (of `among`, if given), with what it was found from."""
        found = self._fresh(pod)
        if found.prepared.rejected is not None:
            return Pick(None, found, found.cycle)
        offset %= self._table.capacity
        if not found.stateful and among is None:
            return Pick(_best(found.total, offset), found, found.cycle)
        if found.stateful:
            rows, totals, cycle = self._with_stateful(pod, found, among)
        else:
            cycle, rows = found.cycle, _fitting(found, among)
            totals = found.plain_scores(rows) + found.normalized(rows)
        if not len(rows):
            return Pick(None, found, cycle)
        best = rows[totals == totals.max()]
        return Pick(int(best[np.searchsorted(best, offset) % len(best)]), found, cycle)

    def fitting(self, pod: PodView) -> Ints:
        """The rows of all nodes that fit."""
        found = self._fresh(pod)
        if found.rejected is not None:
            return np.zeros(0, np.int64)
        return self._with_stateful(pod, found)[0] if found.stateful else np.flatnonzero(found.fits)

    def cycle(self, pod: PodView) -> CycleState:
        """What plugins remember of the pod, for the later extension points. The caller may add to its own copy."""
        found = self._fresh(pod)
        return self._prepare(pod, found)[0] if found.stateful else own_cycle(pod, found.cycle)

    def evaluations(self) -> Counter[tuple[str, str]]:
        """How often each (plugin, extension point) took part in a decision that found a node."""
        total = Counter(self._dropped)
        for found in self._classes.values():
            _count(found, total)
        return total

    # -- explaining

    def explain(self, pod: PodView) -> Explanation:
        """Why each node that does not fit does not."""
        rows = self._table.rows()
        names = [self._table.name_of(row) for row in rows.tolist()]
        found, why, rejected = self._judged(pod, rows)
        if rejected is not None:
            return Explanation((), dict.fromkeys(names, rejected), rejected)
        named = list(zip(names, why.tolist(), strict=True))
        return Explanation(
            tuple(name for name, number in named if number < 0),
            {name: found.reasons[number] for name, number in named if number >= 0},
        )

    def rejected_rows(self, pod: PodView, code: Code) -> Ints:
        """The rows of the nodes that do not fit for a reason with this code."""
        rows = self._table.rows()
        found, why, rejected = self._judged(pod, rows)
        if rejected is not None:
            return rows if rejected.code is code else rows[:0]
        # Rows that fit have the number -1.
        is_it = np.array([*(status.code is code for status in found.reasons), False], np.bool_)
        return rows[is_it[why]]

    def diagnose(self, pod: PodView, more: Mapping[int, Status] | None = None) -> Diagnosis:
        """Why no node fits, in numbers. `more`: rows that plugins let pass and something else ruled out."""
        found = self._fresh(pod)
        if found.diagnosis is not None and not more:
            return found.diagnosis
        rows = self._table.rows()
        found, why, rejected = self._judged(pod, rows)
        narrowing = found.prepared.only
        if rejected is not None:
            return diagnosis.of_pod(len(rows), rejected, narrowing)
        notes = diagnosis.counted(self._notes(pod, found, rows, why))
        said = diagnosis.of_nodes(len(rows), why, found.reasons, (more or {}).values(), narrowing, notes)
        if not more and not found.stateful:
            found.diagnosis = said
        return said

    def _notes(
        self, pod: PodView, found: PodClass, rows: Ints, why: NDArray[np.int32]
    ) -> Iterator[RejectionNotes]:
        """What plugins can tell of the rows they rejected, beside the reason."""
        for part in self.plugins.filters:
            if isinstance(part.plugin, NotedFilterPlugin):
                # Rows that fit have the number -1.
                is_its = np.array([*(each.plugin == part.name for each in found.reasons), False], np.bool_)
                rejected = rows[is_its[why]]
                if len(rejected):
                    yield part.plugin.rejection_notes(pod, self._table, rejected)

    def _judged(self, pod: PodView, rows: Ints) -> tuple[PodClass, NDArray[np.int32], Status | None]:
        """Per row the number of its reason in the class; or why the pod is rejected as such."""
        found, table = self._fresh(pod), self._table
        nothing = np.zeros(0, np.int32)
        if found.rejected is not None:
            return found, nothing, found.rejected
        why = found.first_reasons(rows)
        if not found.stateful:
            return found, why, None
        cycle, filters, prepared = self._prepare(pod, found)
        if prepared.rejected is not None:
            return found, nothing, prepared.rejected
        allowed = prepared.allowed
        if allowed is not None:
            number = found.number_before_all(prepared.elsewhere)
            why[[table.name_of(row) not in allowed for row in rows.tolist()]] = number
        for part in filters:
            # A row is asked about unless a plugin before this one rejected it.
            ranks = np.array([*found.ranks, np.iinfo(np.int32).max], np.int64)
            asked = np.flatnonzero(ranks[why] > part.rank)
            answer = self._ask(part, cycle, rows[asked])
            if answer is not None:
                is_out = answer.which >= 0
                why[asked[is_out]] = found.number(part, answer)[answer.which[is_out]]
        return found, why, None

    # -- classes

    def _fresh(self, pod: PodView) -> PodClass:
        key = self.plugins.signer.sign(pod)
        found = self._classes.get(key)
        stateful = self.plugins.stateful_for(pod, self._table)
        if found is not None:
            if found.stateful == stateful and self._refreshed(key, found):
                self._classes.move_to_end(key)
                return found
            del self._classes[key]
            _count(found, self._dropped)
        found = PodClass(pod, self.plugins, stateful, self._table, self._columns)
        if found.rejected is None:
            found.refresh()
            self._classes[key] = found
            self._drop_old()
        return found

    def _refreshed(self, key: bytes, found: PodClass) -> bool:
        is_fresh: bool | None = None
        try:
            is_fresh = found.refresh()
        finally:
            if is_fresh is None:
                # A plugin failed: half up to date is of no more use.
                del self._classes[key]
        return is_fresh

    def _drop_old(self) -> None:
        room = self._most_bytes - sum(each.nbytes for each in self._classes.values())
        while room < 0 and len(self._classes) > 1:
            _, dropped = self._classes.popitem(last=False)
            _count(dropped, self._dropped)
            room += dropped.nbytes

    # -- what must be asked for every pod

    def _prepare(
        self, pod: PodView, found: PodClass
    ) -> tuple[CycleState, list[PluginPart], PreFilterOutcome]:
        """A cycle of this pod's own, and the stateful filters that have something to say about it."""
        cycle = own_cycle(pod, found.cycle)
        asked = [part for part in self.plugins.pre_filters if part.name in found.stateful]
        before = found.prepared.only
        prepared = run_pre_filters(asked, cycle, self._table, before, self.plugins.watch)
        if prepared.rejected is not None:
            return cycle, [], prepared
        heard = found.stateful - cycle.skipped_filters
        return cycle, [part for part in self.plugins.filters if part.name in heard], prepared

    def _with_stateful(
        self, pod: PodView, found: PodClass, among: Ints | None = None
    ) -> tuple[Ints, Ints, CycleState]:
        """The rows that fit this very pod, their scores, and its cycle."""
        table, watch = self._table, self.plugins.watch
        cycle, filters, prepared = self._prepare(pod, found)
        rows = _fitting(found, among) if prepared.rejected is None else np.zeros(0, np.int64)
        allowed = prepared.allowed
        if allowed is not None:
            kept = [row for row in map(table.row_of, sorted(allowed)) if row is not None]
            rows = np.intersect1d(rows, np.array(kept, np.int64))
        for part in filters:
            answer = self._ask(part, cycle, rows)
            if answer is not None:
                found.number(part, answer)
                rows = rows[answer.which < 0]
        if not len(rows):
            return rows, rows, cycle
        totals = found.plain_scores(rows) + found.normalized(rows)
        run_pre_scores(
            (part for part in self.plugins.pre_scores if part.name in found.stateful), cycle, table, watch
        )
        for part in self.plugins.scores:
            if part.name in found.stateful and part.name not in cycle.skipped_scores:
                if watch is None:
                    raw = part.score_rows(cycle, table, rows)
                else:
                    raw = watch.score_rows(part, cycle, table, rows)
                totals += part.normalized(cycle, raw)
        return rows, totals, cycle

    def _ask(self, part: PluginPart, cycle: CycleState, rows: Ints) -> RejectedRows | None:
        watch = self.plugins.watch
        if watch is None:
            return part.filter_rows(cycle, self._table, rows)
        return watch.filter_rows(part, cycle, self._table, rows)


def own_cycle(pod: PodView, shared: CycleState) -> CycleState:
    """A copy one pod's plugins may write to."""
    return CycleState(pod, dict(shared.data), set(shared.skipped_filters), set(shared.skipped_scores))


def _fitting(found: PodClass, among: Ints | None) -> Ints:
    return np.flatnonzero(found.fits) if among is None else among[found.fits[among]]


def _count(found: PodClass, total: Counter[tuple[str, str]]) -> None:
    if found.placed:
        for each in found.evaluated():
            total[each] += found.placed


def _best(totals: Ints, offset: int) -> int | None:
    """The first of the highest, counted from `offset` round; None if none is feasible."""
    best = int(totals[offset:].argmax()) + offset
    if offset:
        other = int(totals[:offset].argmax())
        if totals[other] > totals[best]:
            best = other
    return best if totals[best] >= 0 else None
