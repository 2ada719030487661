"""Why a pod fits where it fits: for every node, every plugin that rejects it, or the score each plugin gives it.

Called by `nodeward why pod`. Objects come in (a pod, nodes, pods, what plugins look up), an explanation goes out; no
API is called. The production plugins answer, over the same columns as in the scheduler. The scheduler itself stops at
the first plugin that rejects a node, and so does `sentence`, which is what the pod's FailedScheduling event says
(without the outcome of preemption, which is tried only by a scheduler). Pods for which a node is nominated count as
being there if their priority is not lower than the pod's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.features.declared import Version
from nodeward.features.gates import Gates
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.cache.plugin_set import PluginFailed, PluginPart, PluginSet
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.fit_error import fit_error_message
from nodeward.scheduler.framework.context import PluginContext, make_plugin, named
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.plugin import (
    CycleState,
    ExplainedFilterPlugin,
    NotedFilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterNodes,
    RejectedRows,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status, unresolvable
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.settings import ProfileSettings

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PluginRejection:
    """One plugin's rejection of a node. `resolvable`: preemption might help; `notes`: details the plugin can tell."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, status: Status, plugin: str, notes: tuple[str, ...] = ()) -> PluginRejection:
        return cls(plugin, status.reasons, status.code is Code.UNSCHEDULABLE, notes)


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """One node: who rejects it, in the order they are asked, or how much each plugin likes it."""

    name: str
    verdicts: tuple[PluginRejection, ...]
    #: of a node that fits: per plugin its score from 0 to 100 times its weight
    scores: Mapping[str, int] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        return not self.verdicts

    @property
    def total(self) -> int:
        return sum(self.scores.values())


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """All there is to say about one pod and a cluster."""

    pod: str
    #: who keeps the pod from being tried at all
    held: tuple[PluginRejection, ...]
    #: in the order the nodes were given
    nodes: tuple[NodeExplanation, ...]
    #: what a FailedScheduling event would say; empty if the pod fits somewhere
    failure: str

    @property
    def fitting(self) -> tuple[NodeExplanation, ...]:
        """The nodes that fit, the best first; of equals, in the order of their names."""
        found = (node for node in self.nodes if node.fits)
        return tuple(sorted(found, key=lambda node: (-node.total, node.name)))

    @property
    def sentence(self) -> str:
        """The answer in one line."""
        fitting = self.fitting
        if not fitting:
            return self.failure
        return f"fits on {len(fitting)} of {len(self.nodes)} nodes, best: {fitting[0].name}"


def explain_pod(
    pod: Pod,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    listers: Listers,
    profile: ProfileSettings,
    gates: Gates,
    version: Version,
) -> PodExplanation:
    """Ask every plugin of the profile about every node, as if the pod had none yet."""
    view = PodView(_unbound(pod))
    table = _table(nodes, pods, view)
    plugins = plugins_of(profile, gates, version, listers)
    asked = _Asked(plugins, profile)
    cycle = CycleState(view)
    rows = table.rows()
    verdicts = _verdicts(asked, cycle, table, rows)
    fitting = np.array([row for row in rows.tolist() if not verdicts[row]], np.int64)
    scores = _scores(asked, cycle, table, fitting)
    explained = tuple(
        NodeExplanation(table.name_of(row), tuple(verdicts[row]), scores.get(row, {}))
        for row in rows.tolist()
    )
    failure = "" if len(fitting) else _failure(asked, view, table)
    return PodExplanation(view.key, _held(asked, view), explained, failure)


def plugins_of(profile: ProfileSettings, gates: Gates, version: Version, listers: Listers) -> list[Plugin]:
    """The plugins of a profile that only judge: nothing can be done through them."""
    known = named(REGISTRY)
    return [
        make_plugin(
            known[use.name],
            PluginContext(gates, version, profile.arguments.get(use.name, {}), listers=listers),
        )
        for use in profile.plugins
    ]


class _Asked:
    """The plugins of a profile, by where they take part."""

    def __init__(self, plugins: Sequence[Plugin], profile: ProfileSettings) -> None:
        self.plugins: Final = plugins
        self.profile: Final = profile
        self.weights: Final = {use.name: use.weight for use in profile.plugins}
        every = PluginSet(plugins, self.weights, profile.disabled_points)
        self.set: Final = every
        self.pre_filters: Final[Sequence[PluginPart]] = every.pre_filters
        self.filters: Final[Sequence[PluginPart]] = every.filters
        self.pre_scores: Final[Sequence[PluginPart]] = every.pre_scores
        self.scores: Final[Sequence[PluginPart]] = every.scores


def _unbound(pod: Pod) -> Pod:
    """The pod before it was placed. What its containers were given meanwhile is no part of the question."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return msgspec.structs.replace(pod, spec=spec)


def _table(nodes: Iterable[Node], pods: Iterable[Pod], view: PodView) -> NodeTable:
    table = NodeTable()
    for node in nodes:
        table.upsert_node(node)
    for each in pods:
        if is_terminal(each) or each.metadata.uid == view.uid:
            continue
        other = PodView(each)
        if each.spec.node_name:
            table.add_pod(other)
        elif each.status.nominated_node_name and other.priority >= view.priority:
            table.assume(other, each.status.nominated_node_name)
    return table


def _verdicts(
    asked: _Asked, cycle: CycleState, table: NodeTable, rows: Ints
) -> dict[int, list[PluginRejection]]:
    """Per row what every plugin has against it."""
    found: dict[int, list[PluginRejection]] = {row: [] for row in rows.tolist()}
    unconcerned = asked.set.stateful - asked.set.stateful_for(cycle.pod, table)
    cycle.skipped_filters.update(unconcerned)
    cycle.skipped_scores.update(unconcerned)
    silent: set[str] = set()
    only: dict[str, frozenset[str]] = {}
    for part in asked.pre_filters:
        if part.name in unconcerned:
            continue
        status: Status = part.plugin.pre_filter(cycle, cycle.pod, table)
        if status.is_skip:
            cycle.skipped_filters.add(part.name)
        elif not status.is_success:
            silent.add(part.name)
            for row in found:
                found[row].append(PluginRejection.of(status, part.name))
        elif isinstance(part.plugin, PreFilterNodes):
            names = part.plugin.only_nodes(cycle, cycle.pod)
            if names is not None:
                only[part.name] = frozenset(names)
    for part in asked.filters:
        if part.name in silent or part.name in cycle.skipped_filters:
            continue
        asked_about = rows
        answer = part.filter_rows(cycle, table, rows)
        if answer is not None and _error(answer) is not None:
            # The scheduler would ask only about nodes that nobody before has rejected.
            asked_about = np.array([row for row, verdicts in found.items() if not verdicts], np.int64)
            answer = part.filter_rows(cycle, table, asked_about)
        if answer is None:
            continue
        error = _error(answer)
        if error is not None:
            # An error about one node ends the attempt for all.
            for verdicts in found.values():
                verdicts.append(PluginRejection.of(error, part.name))
            continue
        rejected = asked_about[answer.which >= 0]
        notes = _notes(part, cycle, table, rejected)
        reasons = answer.which[answer.which >= 0].tolist()
        for row, which, told in zip(rejected.tolist(), reasons, notes, strict=True):
            found[row].append(PluginRejection.of(answer.reasons[which], part.name, told))
    for name, allowed in only.items():
        elsewhere = PluginRejection.of(unresolvable(f"node(s) didn't satisfy plugin(s) [{name}]"), name)
        for row, verdicts in found.items():
            if table.name_of(row) not in allowed and all(each.plugin != name for each in verdicts):
                verdicts.append(elsewhere)
    return found


def _error(answer: RejectedRows) -> Status | None:
    """Return the error that a plugin gave to a row, if it did."""
    given = (answer.reasons[which] for which in np.unique(answer.which).tolist() if which >= 0)
    return next((status for status in given if status.code is Code.ERROR), None)


def _notes(part: PluginPart, cycle: CycleState, table: NodeTable, rows: Ints) -> list[tuple[str, ...]]:
    """Per row that a plugin rejected, what it can tell beside the reason."""
    if isinstance(part.plugin, NotedFilterPlugin):
        notes = part.plugin.rejection_notes(cycle.pod, table, rows)
    elif isinstance(part.plugin, ExplainedFilterPlugin):
        notes = part.plugin.explain_rows(cycle, table, rows)
    else:
        return [()] * len(rows)
    return [notes.texts[which] for which in notes.which.tolist()]


def _scores(asked: _Asked, cycle: CycleState, table: NodeTable, fitting: Ints) -> dict[int, dict[str, int]]:
    """Per row that fits, what each plugin gives it."""
    found: dict[int, dict[str, int]] = {row: {} for row in fitting.tolist()}
    if not found:
        return found
    for part in asked.pre_scores:
        if part.name in cycle.skipped_scores:
            continue
        if not part.plugin.pre_score(cycle, cycle.pod, table).is_success:
            cycle.skipped_scores.add(part.name)
    for part in asked.scores:
        if part.name not in cycle.skipped_scores:
            scores = part.normalized(cycle, part.score_rows(cycle, table, fitting))
            for row, score in zip(fitting.tolist(), scores.tolist(), strict=True):
                found[row][part.name] = score
    return found


def _held(asked: _Asked, view: PodView) -> tuple[PluginRejection, ...]:
    found: list[PluginRejection] = []
    for plugin in asked.plugins:
        is_off = "preEnqueue" in asked.profile.disabled_points.get(plugin.name, frozenset())
        if isinstance(plugin, PreEnqueuePlugin) and not is_off:
            status = plugin.pre_enqueue(view)
            if not status.is_success:
                found.append(PluginRejection.of(status, plugin.name))
    return tuple(found)


def _failure(asked: _Asked, view: PodView, table: NodeTable) -> str:
    """What the scheduler would write into the pod's event."""
    classes = PodClasses(table, asked.plugins, asked.weights, asked.profile.disabled_points)
    try:
        why = classes.diagnose(view)
    except PluginFailed as error:
        return str(error)
    before = why.before.message if why.before is not None else ""
    return fit_error_message(table.count, why.counts, pre_filter=before, notes=why.notes)
