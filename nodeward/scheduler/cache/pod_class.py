"""All that was worked out for pods of one signature: which rows fit, why not, and how good they are.

Made and refreshed by `PodClasses`; calls the filters and scores of `PluginSet`. The columns are brought up to date row
by row: rows whose pods changed are asked of the plugins that look at pods, rows whose node changed of all. Normalised
scores depend on all feasible rows, so they are worked out again only when a row became feasible or ceased to be, or a
raw score changed, and not at all while all rows have the same.

What must stay true: after `refresh` said yes every column is what a new class would hold. A class whose `refresh`
raised is of no more use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.kept_column import FEW, KeptColumns
from nodeward.scheduler.cache.placement_column import placement_column
from nodeward.scheduler.cache.plugin_set import Ints, PluginFailed, PluginPart, PluginSet
from nodeward.scheduler.cache.pre_filtering import PreFilterOutcome, run_pre_filters, run_pre_scores
from nodeward.scheduler.framework.plugin import CycleState, RejectedRows
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.diagnosis import Diagnosis
    from nodeward.scheduler.cache.table import NodeTable

FITS: Final = -1
_NO_ROWS: Final[Ints] = np.zeros(0, np.int64)
#: The rank of what a pre-filter ruled out before any filter was asked.
BEFORE_ALL: Final = -1


class PodClass:
    """The columns of one signature. Stateful plugins take no part in it; `stateful` names those the pods concern."""

    def __init__(
        self,
        pod: PodView,
        plugins: PluginSet,
        stateful: frozenset[str],
        table: NodeTable,
        columns: KeptColumns,
    ) -> None:
        self._table = table
        self._plugins = plugins
        self.stateful: Final = stateful
        self.cycle: Final = CycleState(pod)
        #: what explains the numbers in the `why` columns, with the rank of the plugin
        self.reasons: Final[list[Status]] = []
        self.ranks: Final[list[int]] = []
        self._numbers: dict[tuple[int, Status], int] = {}
        #: what these pods take of a node by their spec
        self.amounts: Final = table.amounts_by_spec(pod)
        #: decisions made from these columns that found a node
        self.placed = 0
        #: why no node fits, kept as long as nothing changes
        self.diagnosis: Diagnosis | None = None
        self.prepared: Final = self._prepare()
        self._allowed: Final = self.prepared.allowed
        skipped, unscored = self.cycle.skipped_filters, self.cycle.skipped_scores
        filters = [each for each in plugins.filters if not each.is_stateful and each.name not in skipped]
        scores = [each for each in plugins.scores if not each.is_stateful and each.name not in unscored]
        self._static_filters: Final = [each for each in filters if each.is_static]
        self._moving_filters: Final = [each for each in filters if not each.is_static]
        self._static_scores: Final = [each for each in scores if each.is_static and not each.normalizes]
        self._moving_scores: Final = [each for each in scores if not each.is_static and not each.normalizes]
        self.normalized_scores: Final = [each for each in scores if each.normalizes]
        self._has_moving_raw = any(not each.is_static for each in self.normalized_scores)
        self._sharing: Final = [
            each
            for each in (*filters, *(part for part in scores if part not in filters))
            if each.has_shared_state
        ]
        self._kept: Final = placement_column(columns, self._moving_filters, self._moving_scores, self.cycle)
        self._shared: list[object] = []
        self._capacity = 0
        self._version = self._node_version = 0

    def _prepare(self) -> PreFilterOutcome:
        plugins, cycle = self._plugins, self.cycle
        unconcerned = plugins.stateful - self.stateful
        cycle.skipped_filters.update(unconcerned)
        cycle.skipped_scores.update(unconcerned)
        asked = [part for part in plugins.pre_filters if not part.is_stateful]
        prepared = run_pre_filters(asked, cycle, self._table, watch=plugins.watch)
        if prepared.rejected is None:
            scoring = [part for part in plugins.pre_scores if not part.is_stateful]
            run_pre_scores(scoring, cycle, self._table, watch=plugins.watch)
        return prepared

    @property
    def rejected(self) -> Status | None:
        """Set when a pre-filter rejected the pod as such."""
        return self.prepared.rejected

    @property
    def nbytes(self) -> int:
        """What the columns take, about."""
        return self._table.capacity * (8 * (5 + len(self.normalized_scores)) + 9)

    def evaluated(self) -> list[tuple[str, str]]:
        """(plugin, extension point): who has a say about these pods, and where."""
        plugins, cycle = self._plugins, self.cycle
        points = [("PreFilter", plugins.pre_filters, cycle.skipped_filters)]
        if self.rejected is None:
            points += [
                ("Filter", plugins.filters, cycle.skipped_filters),
                ("PreScore", plugins.pre_scores, cycle.skipped_scores),
                ("Score", plugins.scores, cycle.skipped_scores),
            ]
        return [
            (part.name, point)
            for point, parts, skipped in points
            for part in parts
            if part.name in self.stateful or part.name not in skipped
        ]

    # -- bringing up to date

    def refresh(self) -> bool:
        """Make the columns true of the table as it is now. False: too much changed, a new class is needed."""
        table = self._table
        shared: list[object] = []
        if self._sharing:
            shared = [part.shared_state(self.cycle, table) for part in self._sharing]
            if self._capacity and shared != self._shared:
                # What pre-filters found may be old, too.
                return False
        version, nodes_version = table.changes.version, table.node_changes.version
        if self._version == version and self._capacity:
            return True
        self.diagnosis = None
        if nodes_version == self._node_version and self._capacity == table.capacity:
            few = table.changes.recent(self._version)
            if few is not None and len(few) <= FEW and self._update_few(few):
                self._version = version
                return True
        rows = table.changes.since(self._version)
        nodes: Ints | None = _NO_ROWS
        if nodes_version != self._node_version:
            nodes = table.node_changes.since(self._node_version)
        if (
            self._capacity != table.capacity
            or rows is None
            or nodes is None
            or 4 * len(rows) > table.capacity
        ):
            self._rebuild()
        elif len(rows):
            self._update(rows, nodes)
        self._shared = shared
        self._version, self._node_version = version, nodes_version
        return True

    def _rebuild(self) -> None:
        capacity = self._capacity = self._table.capacity
        self.static_why: NDArray[np.int32] = np.full(capacity, FITS, np.int32)
        self.moving_why: NDArray[np.int32] = np.full(capacity, FITS, np.int32)
        self._static_fits: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self.fits: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        #: un-normalised scores, of static plugins and of the others; normalised ones; all together (-1: does not fit)
        self._fixed: Ints = np.zeros(capacity, np.int64)
        self._has_fixed = False
        self._moving: Ints = np.zeros(capacity, np.int64)
        self._liked: Ints = np.zeros(capacity, np.int64)
        self.total: Ints = np.full(capacity, -1, np.int64)
        self._raw: list[Ints] = [np.zeros(capacity, np.int64) for _ in self.normalized_scores]
        self._is_flat = True
        rows = self._table.rows()
        self._update(rows, rows)

    def _update_few(self, rows: list[int]) -> bool:
        """The same as `_update` for a few rows whose pods changed, if all fit as they did; else nothing is done."""
        kept = self._kept
        if kept is None or self._plugins.watch is not None or self._has_moving_raw:
            return False
        values, fits = kept.fresh(), self.fits
        for row in rows:
            if not fits.item(row) or values.item(row) < 0:
                return False
        for row in rows:
            self._moving[row] = value = values.item(row)
            self.total[row] = value + self._fixed.item(row) + self._liked.item(row)
        return True

    def _update(self, rows: Ints, nodes: Ints) -> None:
        alive = self._table.alive
        if len(nodes) or self._table.has_ghosts:
            # Pods may come and go on nodes that are gone.
            rows = rows[alive[rows]]
        # What is normalised depends on every node that fits, also on one that is gone.
        is_stale = False
        if len(nodes):
            is_stale = bool(self.normalized_scores)
            gone = nodes[~alive[nodes]]
            self.fits[gone] = False
            self.total[gone] = -1
            nodes = nodes[alive[nodes]]
            self._judge(self._static_filters, self.static_why, nodes)
            self._rule_out_others(nodes)
            if self._static_scores:
                self._fixed[nodes] = self._sum(self._static_scores, nodes)
                self._has_fixed = bool(self._fixed.any())
            self._static_fits[nodes] = self.static_why[nodes] < 0
        fits = self._static_fits.take(rows)
        if self._kept is not None and self._plugins.watch is None:
            moving = self._kept.fresh().take(rows)
            is_out = moving < 0
            self.moving_why[rows] = FITS
            if np.count_nonzero(is_out):
                self._judge(self._moving_filters, self.moving_why, rows[is_out])
                fits &= ~is_out
        else:
            if self._judge(self._moving_filters, self.moving_why, rows):
                fits &= self.moving_why.take(rows) < 0
            moving = self._sum(self._moving_scores, rows)
        self._moving[rows] = moving
        if not self._is_flat and not is_stale:
            is_stale = bool(np.count_nonzero(self.fits.take(rows) != fits))
        self.fits[rows] = fits
        if self._raw and (len(nodes) or self._has_moving_raw) and self._score_raw(rows, nodes):
            is_stale = True
        if is_stale:
            self._normalize()
        else:
            totals = moving + self._fixed.take(rows) if self._has_fixed else moving
            if not self._is_flat:
                totals = totals + self._liked.take(rows)
            if np.count_nonzero(fits) != len(fits):
                totals = np.where(fits, totals, -1)
            self.total[rows] = totals

    def _score_raw(self, rows: Ints, nodes: Ints) -> bool:
        """Raw scores of the normalising plugins; whether one changed that is asked for every change."""
        has_changed = False
        for part, raw in zip(self.normalized_scores, self._raw, strict=True):
            asked = nodes if part.is_static else rows
            if not len(asked):
                continue
            fresh = self._score_rows(part, asked)
            has_changed = has_changed or bool((fresh != raw[asked]).any())
            raw[asked] = fresh
        return has_changed

    def _normalize(self) -> None:
        rows = self._table.rows()
        self._is_flat = all(_is_flat(raw[rows]) for raw in self._raw)
        fitting = np.flatnonzero(self.fits)
        self._liked[:] = 0
        if not self._is_flat:
            self._liked[fitting] = self.normalized(fitting)
        self.total[:] = -1
        self.total[fitting] = self._moving[fitting] + self._fixed[fitting] + self._liked[fitting]

    def normalized(self, rows: Ints) -> Ints:
        """The normalised scores of `rows` if these are all that is feasible, less what is the same for all."""
        liked = np.zeros(len(rows), np.int64)
        for part, raw in zip(self.normalized_scores, self._raw, strict=True):
            values = raw[rows]
            if not _is_flat(values):
                liked += part.normalized(self.cycle, values)
        return liked

    def plain_scores(self, rows: Ints) -> Ints:
        """The sum of the scores that are not normalised."""
        return self._moving[rows] + self._fixed[rows]

    def _sum(self, parts: Sequence[PluginPart], rows: Ints) -> Ints:
        total: Ints | None = None
        for part in parts:
            scores = self._score_rows(part, rows)
            if part.weight != 1:
                scores = scores * part.weight
            total = scores if total is None else total + scores
        return np.zeros(len(rows), np.int64) if total is None else total

    def _score_rows(self, part: PluginPart, rows: Ints) -> Ints:
        watch = self._plugins.watch
        if watch is None:
            return part.score_rows(self.cycle, self._table, rows)
        return watch.score_rows(part, self.cycle, self._table, rows)

    # -- reasons

    def _judge(self, parts: Sequence[PluginPart], why: NDArray[np.int32], rows: Ints) -> bool:
        """The first of the plugins that rejects a row explains it. Whether any was."""
        why[rows] = FITS
        has_rejected = False
        watch = self._plugins.watch
        for part in parts:
            if watch is None:
                answer = part.filter_rows(self.cycle, self._table, rows)
            else:
                answer = watch.filter_rows(part, self.cycle, self._table, rows)
            if answer is None:
                continue
            has_rejected = True
            is_out = answer.which >= 0
            why[rows[is_out]] = self.number(part, answer)[answer.which[is_out]]
            rows = rows[~is_out]
        return has_rejected

    def _rule_out_others(self, nodes: Ints) -> None:
        names = self._allowed
        if names is None:
            return
        number = self._number_of(BEFORE_ALL, self.prepared.elsewhere)
        name_of = self._table.name_of
        for row in nodes.tolist():
            if name_of(row) not in names:
                self.static_why[row] = number

    def number(self, part: PluginPart, answer: RejectedRows) -> NDArray[np.int32]:
        """The class' numbers of a plugin's reasons. An ERROR that was given to a row is raised."""
        for index, status in enumerate(answer.reasons):
            if status.code is Code.ERROR and (answer.which == index).any():
                raise PluginFailed(status.of(part.name), "Filter")
        return np.array([self._number_of(part.rank, each.of(part.name)) for each in answer.reasons], np.int32)

    def _number_of(self, rank: int, status: Status) -> int:
        found = self._numbers.get((rank, status))
        if found is None:
            found = self._numbers[rank, status] = len(self.reasons)
            self.reasons.append(status)
            self.ranks.append(rank)
        return found

    def number_before_all(self, status: Status) -> int:
        """The number of what is said about nodes that were ruled out before any filter."""
        return self._number_of(BEFORE_ALL, status)

    def first_reasons(self, rows: Ints) -> NDArray[np.int32]:
        """Per row the number of the reason of the first plugin that rejects it, -1 if none does."""
        ranks = np.array([*self.ranks, np.iinfo(np.int32).max], np.int32)
        static, moving = self.static_why[rows], self.moving_why[rows]
        return np.where(ranks[static] <= ranks[moving], static, moving)


def _is_flat(values: Ints) -> bool:
    return not len(values) or bool((values == values[0]).all())
