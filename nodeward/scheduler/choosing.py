"""The best node for a pod, with respect for nodes that are promised to others.

Room made by preemption is promised (nominated) to the pod it was made for. Until that pod is placed, pods of lower or
equal priority are placed as if it were there already; they must also fit if it is not, since it may go elsewhere. A pod
with a promise of its own is tried there first.

While nothing is promised, which is nearly always, none of this costs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nodeward.scheduler.cache.classes import Pick, own_cycle
from nodeward.scheduler.cache.plugin_set import PluginFailed
from nodeward.scheduler.cache.what_if import WhatIfNode
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.plugin import Cycle
    from nodeward.scheduler.profile import Profile
    from nodeward.scheduler.queue.nominator import Nominator


class Choice(NamedTuple):
    """The pick, and the rows plugins let pass but a promise rules out, each with why."""

    pick: Pick
    promised: dict[int, Status]


_NONE: Final[dict[int, Status]] = {}


class Chooser:
    """Chooses for all profiles of one scheduler. `offset` is where ties are broken first."""

    def __init__(self, table: NodeTable, nominator: Nominator, offset: int = 0) -> None:
        self._table = table
        self._nominator = nominator
        self._offset = offset

    def choose(self, profile: Profile, pod: PodView) -> Choice:
        """The best node. Equal nodes are used in turn."""
        if not len(self._nominator):
            choice = Choice(profile.classes.pick(pod, self._offset), _NONE)
        else:
            choice = self._among_promised(profile, pod)
        row = choice.pick.row
        if row is not None:
            self._offset = row + 1
        return choice

    def _among_promised(self, profile: Profile, pod: PodView) -> Choice:
        table, classes = self._table, profile.classes
        own = self._nominator.node_of(pod.uid) or pod.pod.status.nominated_node_name
        row = table.row_of(own) if own else None
        if row is not None:
            pick = classes.pick(pod, self._offset, np.array([row], np.int64))
            if pick.row is not None and self._conflict(profile, pod, pick.cycle, row) is None:
                return Choice(pick, {})
        out: dict[int, Status] = {}
        pick = classes.pick(pod, self._offset)
        while pick.row is not None:
            why = self._conflict(profile, pod, pick.cycle, pick.row)
            if why is None:
                break
            out[pick.row] = why
            left = np.setdiff1d(table.rows(), np.array([*out], np.int64))
            pick = classes.pick(pod, self._offset, left)
        return Choice(pick, out)

    def _conflict(self, profile: Profile, pod: PodView, shared: Cycle, row: int) -> Status | None:
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
        plugins, cycle, what_if = profile.classes.plugins, shared.copy(), WhatIfNode(table, row)
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
