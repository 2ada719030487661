"""A dry run of preemption on one node: the victims, as the filters themselves decide. Slow, and right for every filter.

All pods of lower priority are removed from a hypothetical node, then those that fit beside the new pod are put back.
Pods for which this node is nominated count as if they were there, if their priority is not lower; the new pod must fit
with them and without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodeward.scheduler.cache.amounts import Amounts
from nodeward.scheduler.cache.hypothetical_node import HypotheticalNode
from nodeward.scheduler.cache.plugin_set import PluginPart, PluginSet
from nodeward.scheduler.cache.ranked_pods import RankedPods
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, failed, unresolvable
from nodeward.scheduler.plugins.preemption.budgets import Budgets
from nodeward.scheduler.plugins.preemption.candidate import Candidate

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable, Placed

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class NodeDryRun:
    """One node of which one pod is asked. `nominated` are the pods others make room for there."""

    def __init__(
        self,
        cycle: CycleState,
        pod: PodView,
        table: NodeTable,
        row: int,
        filters: PluginSet,
        nominated: Sequence[PodView],
    ) -> None:
        self._cycle = cycle.copy()
        self._pod = pod
        self._table = table
        self._filters = filters
        self._asked: tuple[PluginPart, ...] = filters.asked(cycle, is_static=False)
        self._nominated = nominated
        self._what_if = HypotheticalNode(table, row)
        self._node = self._what_if.view.node

    def victims(self, tenants: RankedPods, budgets: Budgets) -> Candidate | Status:
        """Return the victims, or why removing pods would not help. Filters that read the node alone are not asked."""
        lower = [placed for placed in tenants.pods if placed.view.priority < self._pod.priority]
        if not lower:
            return NO_VICTIMS
        for placed in lower:
            status = self._remove(placed)
            if not status.is_success:
                return status
        status = self._fits()
        if not status.is_success:
            return status
        violates = budgets.violated([placed.view for placed in lower])
        order = sorted(range(len(lower)), key=lambda number: not violates[number])
        chosen = [number for number in order if not self._comes_back(lower[number])]
        name = self._node.metadata.name
        if not chosen:
            return failed(f'expected at least one victim pod on node "{name}"')
        victims = tuple(lower[number].view for number in sorted(chosen))
        return Candidate(name, victims, sum(violates[number] for number in chosen))

    def _comes_back(self, placed: Placed) -> bool:
        status = self._add(placed.view, placed.amounts)
        fits = status.is_success and self._fits().is_success
        if not fits:
            self._remove(placed)
        return fits

    def _fits(self) -> Status:
        """Whether the pod fits as things stand in thought, with the nominated pods and without."""
        if self._nominated:
            before = self._cycle
            self._cycle = before.copy()
            counted = [(pod, self._table.amounts_of(pod)) for pod in self._nominated]
            for pod, amounts in counted:
                self._add(pod, amounts)
            status = self._ask()
            for pod, amounts in counted:
                self._what_if.remove(pod, amounts)
            self._cycle = before
            if not status.is_success:
                return status
        return self._ask()

    def _ask(self) -> Status:
        view = self._what_if.view
        for part in self._asked:
            status: Status = part.plugin.filter(self._cycle, self._pod, view)
            if not status.is_success:
                return status.of(part.name)
        return SUCCESS

    def _add(self, pod: PodView, amounts: Amounts) -> Status:
        self._what_if.add(pod, amounts)
        return self._filters.add_pod(self._cycle, self._pod, pod, self._node)

    def _remove(self, placed: Placed) -> Status:
        self._what_if.remove(placed.view, placed.amounts)
        return self._filters.remove_pod(self._cycle, self._pod, placed.view, self._node)
