"""InterPodAffinity: pods that must, must not or would like to be in one topology with other pods, either way round.

A pod's required terms keep it to (or off) the domains of pods they mean; so do the required anti-affinity terms of
pods that are there already. Preferred terms of both sides, and the required affinity of pods that are there, rank the
rest. The first of a series of pods that want each other's company may go anywhere.

The table counts pods per node; here they are added up per value of a topology key, and nodes look their value up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.node import Node
from nodeward.rules.pod_affinity import PodTerms, Term, terms_of, understood_terms_of
from nodeward.rules.selectors import SelectorError
from nodeward.scheduler.cache.existing_terms import EXISTING_TERMS, ExistingTerm, TermUse
from nodeward.scheduler.cache.labels import LabelColumns, sum_by_slot
from nodeward.scheduler.cache.pod_groups import POD_GROUPS, Group, GroupPart
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import ClusterEventWithHint
from nodeward.scheduler.framework.plugin import (
    MAX_SCORE,
    ColumnFilterPlugin,
    ColumnScorePlugin,
    CycleState,
    EnqueueExtensions,
    PreFilterExtensions,
    PreScorePlugin,
    RejectedRows,
    ScoreExtensions,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from nodeward.scheduler.plugins.inter_pod_affinity_hints import InterPodAffinityHints

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

Ints: TypeAlias = NDArray[np.int64]
#: Per topology key, per value of it (the last for nodes without): how many pods, or how good.
Sums: TypeAlias = dict[str, NDArray[np.float64]]

NEAR: Final = unresolvable("node(s) didn't match pod affinity rules")
APART: Final = unschedulable("node(s) didn't match pod anti-affinity rules")
REPELLED: Final = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

_SCORES: Final = "InterPodAffinity/scores"


@dataclass(slots=True)
class ResolvedTerms:
    """What is the same for all pods of one signature as long as namespaces and terms are: who means whom."""

    namespaces: int
    version: int
    terms: PodTerms
    #: the pods that all terms of required affinity mean; per other term the pods it means
    near: Group | None
    apart: tuple[tuple[str, Group], ...]
    liked: tuple[tuple[str, int, Group], ...]
    #: what pods that are there ask of this one
    held: tuple[ExistingTerm, ...]
    #: whether it has its own company
    likes_itself: bool
    namespace_labels: Mapping[str, str]


@dataclass(slots=True)
class AffinityFilterState:
    """What a filter needs: the pods that count, per topology key and value."""

    resolved: ResolvedTerms
    labels: LabelColumns
    near: Sums
    apart: Sums
    repelled: Sums

    def copy(self) -> AffinityFilterState:
        return AffinityFilterState(
            self.resolved, self.labels, _copy(self.near), _copy(self.apart), _copy(self.repelled)
        )

    @property
    def is_first(self) -> bool:
        """Whether the pod wants company of its own kind, and there is none anywhere yet."""
        return self.resolved.likes_itself and not any(sums.any() for sums in self.near.values())

    def count(self, sums: Sums, key: str, node: Node, amount: int) -> None:
        """`amount` more pods on a node, in what-if."""
        value = node.metadata.labels.get(key)
        number = self.labels.number(key, value) if value is not None else None
        if number is not None:
            if key not in sums:
                sums[key] = np.zeros(self.labels.slots(key)[1], np.float64)
            sums[key][number] += amount


class InterPodAffinity(
    InterPodAffinityHints,
    PreFilterExtensions,
    ColumnFilterPlugin,
    PreScorePlugin,
    ColumnScorePlugin,
    ScoreExtensions,
    StatefulPlugin,
    EnqueueExtensions,
):
    name: ClassVar[str] = "InterPodAffinity"
    default_weight: ClassVar[int] = 2
    objects = (Namespace,)
    pod_fields = ("metadata.namespace", "metadata.labels", "spec.affinity")

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context.listers)
        self._hard_weight = int(context.arguments.get("hardPodAffinityWeight", 1))
        self._ignores_others = bool(context.arguments.get("ignorePreferredTermsOfExistingPods", False))

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        """Whether it asks anything of other pods, or (if the table is given) one of those there of it."""
        affinity = pod.pod.spec.affinity
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            return True
        if table is None or not len(table.pod_index(EXISTING_TERMS)):
            return False
        return bool(self._resolved_terms(pod, table).held)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self.hints()

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        cycle.data.pop(self.name, None)
        if pod.pod.spec.affinity is None and not len(table.pod_index(EXISTING_TERMS)):
            return SKIP
        try:
            resolved = self._resolved_terms(pod, table)
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        repelled: Sums = {}
        for held in resolved.held:
            if held.use is TermUse.REPELS:
                _add(repelled, table.labels, held)
        terms = resolved.terms
        if not terms.near and not terms.apart and not any(sums.any() for sums in repelled.values()):
            return SKIP
        near: Sums = {}
        if resolved.near is not None:
            column = table.pod_index(POD_GROUPS).tally(resolved.near).column
            for key in {term.topology_key: None for term in terms.near}:
                near[key] = _by_value(table.labels, key, column)
        apart: Sums = {}
        for key, group in resolved.apart:
            sums = _by_value(table.labels, key, table.pod_index(POD_GROUPS).tally(group).column)
            apart[key] = apart[key] + sums if key in apart else sums
        cycle.data[self.name] = AffinityFilterState(resolved, table.labels, near, apart, repelled)
        return SUCCESS

    def filter_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> RejectedRows | None:
        found: AffinityFilterState = cycle.data[self.name]
        which = np.full(len(rows), -1, np.int64)
        _mark(which, 2, found.repelled, table.labels, rows)
        _mark(which, 1, found.apart, table.labels, rows)
        if found.near:
            is_first = found.is_first
            fits = np.ones(len(rows), np.bool_)
            for key, sums in found.near.items():
                here = np.ones(len(sums), np.bool_) if is_first else sums > 0
                here[-1] = False
                fits &= here[table.labels.slots(key)[0].take(rows)]
            which[~fits] = 0
        return RejectedRows(which, (NEAR, APART, REPELLED)) if which.max(initial=-1) >= 0 else None

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        found: AffinityFilterState | None = cycle.data.get(self.name)
        if found is None:
            return SUCCESS
        labels = node.node.metadata.labels
        if found.near:
            if any(key not in labels for key in found.near):
                return NEAR
            if not found.is_first and any(
                _at(sums, found.labels, key, labels) <= 0 for key, sums in found.near.items()
            ):
                return NEAR
        if any(_at(sums, found.labels, key, labels) > 0 for key, sums in found.apart.items()):
            return APART
        if any(_at(sums, found.labels, key, labels) > 0 for key, sums in found.repelled.items()):
            return REPELLED
        return SUCCESS

    def add_pod(self, cycle: CycleState, pod: PodView, added: PodView, node: Node) -> Status:
        return self._suppose(cycle, pod, added, node, 1)

    def remove_pod(self, cycle: CycleState, pod: PodView, removed: PodView, node: Node) -> Status:
        return self._suppose(cycle, pod, removed, node, -1)

    def _suppose(self, cycle: CycleState, pod: PodView, other: PodView, node: Node, amount: int) -> Status:
        found: AffinityFilterState | None = cycle.data.get(self.name)
        if found is None:
            return SUCCESS
        resolved = found.resolved
        for term in understood_terms_of(other.pod).apart:
            if term.matches(pod.namespace, pod.labels, resolved.namespace_labels):
                found.count(found.repelled, term.topology_key, node, amount)
        if resolved.near is not None and resolved.near.holds_pod(other):
            for key in found.near:
                found.count(found.near, key, node, amount)
        for key, group in resolved.apart:
            if group.holds_pod(other):
                found.count(found.apart, key, node, amount)
        return SUCCESS

    # -- score

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        if pod.pod.spec.affinity is None and not len(table.pod_index(EXISTING_TERMS)):
            return SKIP
        resolved = self._resolved_terms(pod, table)
        if self._ignores_others and not resolved.liked:
            return SKIP
        scores: Sums = {}
        for key, weight, group in resolved.liked:
            sums = weight * _by_value(table.labels, key, table.pod_index(POD_GROUPS).tally(group).column)
            scores[key] = scores[key] + sums if key in scores else sums
        for held in resolved.held:
            if held.use is TermUse.LIKES:
                _add(scores, table.labels, held)
            elif held.use is TermUse.NEEDS and self._hard_weight:
                _add(scores, table.labels, held, self._hard_weight)
        if not any(sums.any() for sums in scores.values()):
            return SKIP
        cycle.data[_SCORES] = scores, table.labels
        return SUCCESS

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: Ints) -> Ints:
        scores: Sums = cycle.data[_SCORES][0]
        total = np.zeros(len(rows), np.float64)
        for key, sums in scores.items():
            total += sums[table.labels.slots(key)[0].take(rows)]
        return total.astype(np.int64)

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        scores, columns = cycle.data[_SCORES]
        labels = node.node.metadata.labels
        return sum(_at(sums, columns, key, labels) for key, sums in scores.items())

    def normalize(self, cycle: CycleState, scores: Ints) -> Ints:
        """The least becomes 0, the largest 100; 0 for all if they are alike."""
        if not len(scores):
            return scores
        least = scores.min()
        spread = int(scores.max() - least)
        if not spread:
            return np.zeros_like(scores)
        shares: NDArray[np.float64] = MAX_SCORE * ((scores - least) / spread)
        return shares.astype(np.int64)

    # -- who means whom

    def _resolved_terms(self, pod: PodView, table: NodeTable) -> ResolvedTerms:
        namespaces, version = self.listers.version(Namespace), table.pod_index(EXISTING_TERMS).version
        known: ResolvedTerms | None = table.remembered.get(self, pod.signature)
        if known is not None and known.namespaces == namespaces and known.version == version:
            return known
        mine = self.namespace_labels(pod.namespace)
        terms = self.resolved(terms_of(pod.pod))
        fresh = ResolvedTerms(
            namespaces,
            version,
            terms,
            Group(tuple(_part(term) for term in terms.near)) if terms.near else None,
            tuple((term.topology_key, Group((_part(term),))) for term in terms.apart),
            tuple((term.topology_key, term.weight, Group((_part(term),))) for term in terms.liked),
            table.pod_index(EXISTING_TERMS).meaning(pod.namespace, pod.labels, mine),
            bool(terms.near) and all(term.matches(pod.namespace, pod.labels, mine) for term in terms.near),
            mine,
        )
        table.remembered.put(self, pod.signature, fresh)
        return fresh


def _part(term: Term) -> GroupPart:
    return (None if term.is_everywhere else term.namespaces, term.selector)


def _copy(sums: Sums) -> Sums:
    return {key: each.copy() for key, each in sums.items()}


def _by_value(labels: LabelColumns, key: str, column: Ints) -> NDArray[np.float64]:
    """What is in a column of rows, added up per value of a label; what is on nodes without it counts nowhere."""
    slots, size = labels.slots(key)
    sums = sum_by_slot(slots, column, size)
    sums[-1] = 0
    return sums


def _add(sums: Sums, labels: LabelColumns, held: ExistingTerm, weight: int = 1) -> None:
    """Add what pods that hold a term come to."""
    key = held.term.topology_key
    slots, size = labels.slots(key)
    more = weight * held.by_slot(slots, size)
    more[-1] = 0
    sums[key] = sums[key] + more if key in sums else more


def _mark(which: Ints, number: int, sums: Sums, labels: LabelColumns, rows: Ints) -> None:
    """Mark the rows of domains in which there are pods."""
    for key, each in sums.items():
        if each.any():
            which[(each > 0)[labels.slots(key)[0].take(rows)]] = number


def _at(sums: NDArray[np.float64], columns: LabelColumns, key: str, labels: Mapping[str, str]) -> int:
    """What a node with these labels looks up; 0 without the label."""
    value = labels.get(key)
    number = columns.number(key, value) if value is not None else None
    return int(sums[number]) if number is not None else 0
