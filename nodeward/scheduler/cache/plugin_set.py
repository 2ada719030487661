"""Plugins that filter and score, sorted by what they can do, and called in the one form the rest of the cache uses.

Made per profile by `PodClasses`; also used by preemption, for what-if questions. In go plugins in the order of the
profile, their weights, and where single ones are switched off; out come parts that answer for rows. A plugin that has
only the form for one node is asked node by node. `PluginFailed` is raised when a plugin answers ERROR: that is no
verdict on the pod, so the attempt ends.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.base.errors import NodewardError
from nodeward.scheduler.cache.amounts import AMOUNT_FIELDS
from nodeward.scheduler.framework.plugin import (
    ColumnFilterPlugin,
    ColumnScorePlugin,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    RejectedRows,
    RowFilterPlugin,
    RowScorePlugin,
    ScoreExtensions,
    ScorePlugin,
    SharedStatePlugin,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.signature import PodSigner
from nodeward.scheduler.framework.status import SUCCESS, Status

if TYPE_CHECKING:
    from nodeward.api.core_v1.node import Node
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.plugin_timer import PluginTimer
    from nodeward.scheduler.cache.table import NodeTable

Ints = NDArray[np.int64]

_NOWHERE: Final[Mapping[str, frozenset[str]]] = {}
_NOBODY: Final[frozenset[str]] = frozenset()


class PluginFailed(NodewardError):
    """A plugin could not answer."""

    def __init__(self, status: Status, point: str) -> None:
        super().__init__(f'running {point} plugin "{status.plugin}": {status.message}')
        self.status: Final = status


@dataclass(frozen=True, slots=True)
class PluginPart:
    """What one plugin does in one place. `rank` is its place in the order of all plugins."""

    rank: int
    name: str
    plugin: Any
    is_static: bool
    has_shared_state: bool
    weight: int = 0
    normalizes: bool = False
    has_column_filter: bool = False
    has_column_score: bool = False
    has_row_filter: bool = False
    has_row_score: bool = False
    is_stateful: bool = False

    def shared_state(self, cycle: CycleState, table: NodeTable) -> object:
        return self.plugin.shared_state(cycle, table)

    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        """Which rows the plugin rejects, and why."""
        if self.has_column_filter:
            answer: RejectedRows | None = self.plugin.filter_rows(cycle, table, rows)
            return answer
        reasons: dict[Status, int] = {}
        which = np.full(len(rows), -1, np.int64)
        for index, row in enumerate(rows.tolist()):
            status: Status = self.plugin.filter(cycle, cycle.pod, table.view(row))
            if not status.is_success:
                which[index] = reasons.setdefault(status, len(reasons))
        return RejectedRows(which, tuple(reasons)) if reasons else None

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        """The plugin's raw scores."""
        if self.has_column_score:
            answer: Ints = self.plugin.score_rows(cycle, table, rows)
            return answer
        score = self.plugin.score
        return np.array([score(cycle, cycle.pod, table.view(row)) for row in rows.tolist()], np.int64)

    def normalized(self, cycle: CycleState, raw: Ints) -> Ints:
        """Raw scores of all feasible rows, as they count: from 0 to 100, times the weight."""
        scores: Ints = self.plugin.normalize(cycle, raw) if self.normalizes else raw
        return scores * self.weight


class PluginSet:
    """The filters and scores of one profile; `disabled` names the extension points single plugins are off at."""

    def __init__(
        self,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        disabled: Mapping[str, frozenset[str]] = _NOWHERE,
    ) -> None:
        def at(point: str, kind: type[Plugin]) -> Iterable[PluginPart]:
            for rank, plugin in enumerate(plugins):
                if isinstance(plugin, kind) and point not in disabled.get(plugin.name, ()):
                    yield _part(rank, plugin, weights)

        self.pre_filters: tuple[PluginPart, ...] = tuple(at("preFilter", PreFilterPlugin))
        self.filters: tuple[PluginPart, ...] = tuple(at("filter", FilterPlugin))
        self.pre_scores: tuple[PluginPart, ...] = tuple(at("preScore", PreScorePlugin))
        self.scores: tuple[PluginPart, ...] = tuple(part for part in at("score", ScorePlugin) if part.weight)
        self._extensions = tuple(
            part for part in self.pre_filters if isinstance(part.plugin, PreFilterExtensions)
        )
        #: what tells pods apart to these plugins
        self.signer: Final = PodSigner(
            (*AMOUNT_FIELDS, *(field for each in plugins for field in getattr(each, "pod_fields", ())))
        )
        #: set while calls are to be timed
        self.watch: PluginTimer | None = None
        stateful = [each for each in plugins if isinstance(each, StatefulPlugin)]
        self.stateful: Final = frozenset(each.name for each in stateful)
        self._asked_always = tuple(each for each in stateful if not each.concerns_pods_with)
        paths = dict.fromkeys(each.concerns_pods_with for each in stateful if each.concerns_pods_with)
        self._asked_with = tuple(
            (operator.attrgetter(path), tuple(each for each in stateful if each.concerns_pods_with == path))
            for path in paths
        )

    def filter_plain(self, cycle: CycleState, pod: PodView, view: NodeView) -> Status:
        """The first rejection of one node, all filters asked in the form for one node."""
        for part in self.filters:
            if part.name in cycle.skipped_filters:
                continue
            status: Status = part.plugin.filter(cycle, pod, view)
            if not status.is_success:
                return status.of(part.name)
        return SUCCESS

    def asked(self, cycle: CycleState, *, is_static: bool) -> tuple[PluginPart, ...]:
        """The filters that have something to say: those that look at the node alone, or those that look at pods."""
        skipped = cycle.skipped_filters
        return tuple(
            part for part in self.filters if part.is_static is is_static and part.name not in skipped
        )

    def add_pod(self, cycle: CycleState, pod: PodView, added: PodView, node: Node) -> Status:
        """Bring the cycle to what it would be with another pod on the node; the first that fails is told."""
        return self._extend("add_pod", cycle, pod, added, node)

    def remove_pod(self, cycle: CycleState, pod: PodView, removed: PodView, node: Node) -> Status:
        """Bring the cycle to what it would be without a pod of the node."""
        return self._extend("remove_pod", cycle, pod, removed, node)

    def _extend(self, method: str, cycle: CycleState, pod: PodView, other: PodView, node: Node) -> Status:
        for part in self._extensions:
            if part.name in cycle.skipped_filters:
                continue
            status: Status = getattr(part.plugin, method)(cycle, pod, other, node)
            if not status.is_success:
                return status.of(part.name)
        return SUCCESS

    def stateful_for(self, pod: PodView, table: NodeTable) -> frozenset[str]:
        """The stateful plugins that the pod concerns. That may change with what other pods there are."""
        names = [each.name for each in self._asked_always if each.concerns(pod, table)]
        for field, asked in self._asked_with:
            if field(pod.pod):
                names += [each.name for each in asked if each.concerns(pod, table)]
        return frozenset(names) if names else _NOBODY


def _part(rank: int, plugin: Plugin, weights: Mapping[str, int]) -> PluginPart:
    return PluginPart(
        rank,
        plugin.name,
        plugin,
        plugin.is_static,
        isinstance(plugin, SharedStatePlugin),
        weights.get(plugin.name, 0),
        isinstance(plugin, ScoreExtensions),
        isinstance(plugin, ColumnFilterPlugin),
        isinstance(plugin, ColumnScorePlugin),
        isinstance(plugin, RowFilterPlugin),
        isinstance(plugin, RowScorePlugin),
        isinstance(plugin, StatefulPlugin),
    )
