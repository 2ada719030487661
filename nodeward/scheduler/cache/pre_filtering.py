"""PreFilter and PreScore: what plugins work out before any node is looked at, for a class of pods or for one pod.

Called by `PodClass` and, for stateful plugins, by `PodClasses`. Out comes the cycle filled in, the verdict of a plugin
that rejects the pod as such, and the nodes single plugins narrow the search to. A plugin that answers ERROR is raised
as `PluginFailed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nodeward.scheduler.cache.plugin_set import PluginFailed, PluginPart
from nodeward.scheduler.framework.plugin import CycleState, PreFilterNodes
from nodeward.scheduler.framework.status import Code, Status, unresolvable

if TYPE_CHECKING:
    from nodeward.scheduler.cache.plugin_timer import PluginTimer
    from nodeward.scheduler.cache.table import NodeTable

_ANY: Final[Mapping[str, frozenset[str]]] = {}


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What pre-filters said. `only`: by plugin, the only nodes the pod can go to."""

    rejected: Status | None
    only: Mapping[str, frozenset[str]]

    @property
    def allowed(self) -> frozenset[str] | None:
        """The only nodes the pod can go to; None: any."""
        return frozenset.intersection(*self.only.values()) if self.only else None

    @property
    def elsewhere(self) -> Status:
        """What is said about all other nodes."""
        names = sorted(self.only)
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}]").of(names[0])


def run_pre_filters(
    parts: Iterable[PluginPart],
    cycle: CycleState,
    table: NodeTable,
    before: Mapping[str, frozenset[str]] = _ANY,
    watch: PluginTimer | None = None,
) -> PreFilterOutcome:
    """Ask `parts` in order; `before` is what others narrowed the search to already."""
    pod, only = cycle.pod, dict(before)
    rejected: Status | None = None
    for part in parts:
        if watch is None:
            status: Status = part.plugin.pre_filter(cycle, pod, table)
        else:
            status = watch.timed("PreFilter", part.name, part.plugin.pre_filter, cycle, pod, table)
        if status.is_skip:
            cycle.skipped_filters.add(part.name)
            continue
        if status.code is Code.UNSCHEDULABLE:
            # Preemption may help, and needs what the others find.
            rejected = status.of(part.name)
            continue
        if status.is_rejected:
            return PreFilterOutcome(status.of(part.name), only)
        if not status.is_success:
            raise PluginFailed(status.of(part.name), "PreFilter")
        plugin = part.plugin
        names = plugin.only_nodes(cycle, pod) if isinstance(plugin, PreFilterNodes) else None
        if names is not None:
            only[part.name] = frozenset(names)
            if not frozenset.intersection(*only.values()):
                return PreFilterOutcome(_nowhere(only), only)
    return PreFilterOutcome(rejected, only)


def run_pre_scores(
    parts: Iterable[PluginPart], cycle: CycleState, table: NodeTable, watch: PluginTimer | None = None
) -> None:
    """Ask `parts` in order; who has nothing to say is written down in the cycle."""
    for part in parts:
        if watch is None:
            status: Status = part.plugin.pre_score(cycle, cycle.pod, table)
        else:
            status = watch.timed("PreScore", part.name, part.plugin.pre_score, cycle, cycle.pod, table)
        if status.is_skip:
            cycle.skipped_scores.add(part.name)
        elif not status.is_success:
            raise PluginFailed(status.of(part.name), "PreScore")


def _nowhere(only: Mapping[str, frozenset[str]]) -> Status:
    names = sorted(only)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}").of(names[0])
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"
    return unresolvable(text).of(names[0])
