"""A node as it would be with other pods on it, for what-if questions of preemption and of nominated pods.

It starts as the node is and shares nothing with the table. `view` is what filters for one node are called with; it is
valid until the next change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeward.rules.host_ports import add_ports, remove_ports
from nodeward.scheduler.cache.amounts import Amounts
from nodeward.scheduler.cache.node import NodeView
from nodeward.scheduler.framework.pod import PodView

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable


class HypotheticalNode:
    """One node, to which pods can be added and from which they can be removed."""

    def __init__(self, table: NodeTable, row: int) -> None:
        base = table.view(row)
        self._pods = {pod.uid: pod for pod in base.pods}
        self._requested = dict(base.requested)
        self._scored = dict(base.scored)
        self._view = replace(base, requested=self._requested, scored=self._scored)
        self._is_stale = False

    @property
    def view(self) -> NodeView:
        if self._is_stale:
            self._view = replace(self._view, pods=tuple(self._pods.values()))
            self._is_stale = False
        return self._view

    def add(self, pod: PodView, amounts: Amounts) -> None:
        self._count(amounts, 1)
        add_ports(self._view.ports, pod.host_ports)
        self._pods[pod.uid] = pod
        self._is_stale = True

    def remove(self, pod: PodView, amounts: Amounts) -> None:
        self._count(amounts, -1)
        remove_ports(self._view.ports, pod.host_ports)
        del self._pods[pod.uid]
        self._is_stale = True

    def _count(self, amounts: Amounts, sign: int) -> None:
        for name, amount in amounts.requested.items():
            self._requested[name] = self._requested.get(name, 0) + sign * amount
        for name, amount in amounts.scored.items():
            self._scored[name] = self._scored.get(name, 0) + sign * amount
