"""The best node for a pod, with respect for nodes that are nominated for other pods.

Called by `Engine` for every attempt; asks the profile's `PodClasses` for the best row. Preemption nominates the node it
makes room on for its pod. Until that pod is placed, pods of lower or equal priority are placed as if it were there
already; they must also fit without it, since it may go elsewhere. A pod with a nominated node is tried there first.

While no node is nominated, which is nearly always so, none of this costs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nodeward.scheduler.cache.amounts import PODS
from nodeward.scheduler.cache.classes import Pick, own_cycle
from nodeward.scheduler.cache.hypothetical_node import HypotheticalNode
from nodeward.scheduler.cache.plugin_set import PluginFailed
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins.node_resources_fit import Need, NodeResourcesFit, lacking, need_of

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.plugin import CycleState
    from nodeward.scheduler.profile import Profile
    from nodeward.scheduler.queue.nominator import Nominator


class NodeChoice(NamedTuple):
    """The pick, and the rows that plugins accept and a nominated pod rules out, each with the reason."""

    pick: Pick
    promised: dict[int, Status]


_NONE: Final[dict[int, Status]] = {}


class NodeChooser:
    """Chooses for all profiles of one scheduler. `offset` is where ties are broken first."""

    def __init__(self, table: NodeTable, nominator: Nominator, offset: int = 0) -> None:
        self._table = table
        self._nominator = nominator
        self._offset = offset

    def choose(self, profile: Profile, pod: PodView) -> NodeChoice:
        """The best node. Equal nodes are used in turn."""
        if not len(self._nominator):
            choice = NodeChoice(profile.classes.pick(pod, self._offset), _NONE)
        else:
            choice = self._among_promised(profile, pod)
        row = choice.pick.row
        if row is not None:
            self._offset = row + 1
        return choice

    def _among_promised(self, profile: Profile, pod: PodView) -> NodeChoice:
        table, classes = self._table, profile.classes
        own = self._nominator.node_of(pod.uid) or pod.pod.status.nominated_node_name
        row = table.row_of(own) if own else None
        if row is not None:
            pick = classes.pick(pod, self._offset, np.array([row], np.int64))
            if pick.row is not None and self._conflict(profile, pod, pick.cycle, row) is None:
                return NodeChoice(pick, {})
        out: dict[int, Status] = {}
        pick = classes.pick(pod, self._offset)
        while pick.row is not None:
            why = self._conflict(profile, pod, pick.cycle, pick.row)
            if why is None:
                break
            out[pick.row] = why
            if not pick.found.stateful:
                # Others that are promised are as good as this one: all are looked at before the next choice.
                out |= self._conflicts(profile, pod, pick, out)
            left = table.alive.copy()
            left[[*out]] = False
            pick = classes.pick(pod, self._offset, np.flatnonzero(left))
        return NodeChoice(pick, out)

    def _conflicts(
        self, profile: Profile, pod: PodView, pick: Pick, known: dict[int, Status]
    ) -> dict[int, Status]:
        """The rows that plugins let pass and a promise rules out, beside those that are known."""
        found: dict[int, Status] = {}
        for name in self._nominator.nodes():
            row = self._table.row_of(name)
            if row is None or row in known or not pick.found.fits[row]:
                continue
            why = self._conflict(profile, pod, pick.cycle, row)
            if why is not None:
                found[row] = why
        return found

    def _conflict(self, profile: Profile, pod: PodView, shared: CycleState, row: int) -> Status | None:
        """Why the pod does not fit beside those the node is promised to; None if it does."""
        table = self._table
        others = [
            other
            for other in self._nominator.for_node(table.name_of(row))
            if other.uid != pod.uid and other.priority >= pod.priority
        ]
        node = table.node(row)
        if not others or node is None:
            return None
        need = need_of(shared) if NodeResourcesFit.name in profile.filters else None
        if need is not None and not pod.host_ports:
            # Nothing that comes before resources looks at other pods, so that this is what all plugins would say.
            why = self._lacking(need, others, row)
            if why is not None:
                return why
        plugins, cycle, what_if = profile.classes.plugins, shared.copy(), HypotheticalNode(table, row)
        cycle = own_cycle(pod, cycle)
        for other in others:
            what_if.add(other, table.amounts_of(other))
            told = plugins.add_pod(cycle, pod, other, node)
            if not told.is_success:
                raise PluginFailed(told, "AddPod")
        status = plugins.filter_plain(cycle, pod, what_if.view)
        if status.code is Code.ERROR:
            raise PluginFailed(status, "Filter")
        return None if status.is_success else status

    def _lacking(self, need: Need, others: list[PodView], row: int) -> Status | None:
        """What the node would have too little of beside those it is promised to; None if nothing."""
        table = self._table
        there, used = need.at(table.allocatable, row), need.at(table.requested, row)
        taken = [table.amounts_of(other).requested for other in others]
        short = [
            name
            for name, amount in need.amounts.items()
            if there[name] - used[name] - sum(each.get(name, 0) for each in taken) < amount
        ]
        if not short:
            return None
        is_hopeless = any(need.amounts[name] > there[name] for name in short if name != PODS)
        return lacking(short, is_hopeless=is_hopeless).of(NodeResourcesFit.name)
