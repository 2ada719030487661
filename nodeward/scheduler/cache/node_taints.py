"""The taints of nodes as a column: per node the number of its taint set, each set judged once per list of tolerations.

TaintToleration and PodTopologySpread ask the table for `NODE_TAINTS[numeric]`; `numeric` is the gate of `Lt` and `Gt`
tolerations (KEP-5471). The judging is `nodeward.rules.taint_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Toleration
from nodeward.rules.taint_columns import TaintSets
from nodeward.scheduler.cache.columns import NodeIndex

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

Ints = NDArray[np.int64]

#: Sets of taints that may be kept beyond two per row before those that no node has any more are forgotten.
SPARE_TAINT_SETS: Final = 1024


class NodeTaints:
    """The taint sets of one table's nodes."""

    def __init__(self, table: NodeTable, *, numeric: bool) -> None:
        self.sets: Final = TaintSets(numeric=numeric)
        #: per row the number of its set
        self.ids: NDArray[np.int32] = np.full(table.capacity, self.sets.id_of(()), np.int32)

    def put_node(self, row: int, node: Node | None) -> None:
        self.ids[row] = self.sets.id_of(node.spec.taints if node is not None else ())
        if len(self.sets) > 2 * len(self.ids) + SPARE_TAINT_SETS:
            self.ids = self.sets.keep_only(self.ids)

    def grow(self, rows: int) -> None:
        grown = np.full(rows, self.sets.id_of(()), np.int32)
        grown[: len(self.ids)] = self.ids
        self.ids = grown

    def are_tolerated(self, tolerations: Sequence[Toleration], rows: Ints) -> NDArray[np.bool_]:
        """For each of the rows: may a pod with these tolerations be scheduled there?"""
        return self.sets.are_tolerated(tolerations, self.ids[rows])

    def unwelcome(self, tolerations: Sequence[Toleration], rows: Ints) -> Ints:
        """For each of the rows: how many PreferNoSchedule taints are not tolerated."""
        return self.sets.unwelcome(tolerations, self.ids[rows]).astype(np.int64)


def _have_changed(old: Node, new: Node) -> bool:
    return old.spec.taints != new.spec.taints


#: By whether the gate of numeric operators is on.
NODE_TAINTS: Final = {
    True: NodeIndex("taints", lambda table: NodeTaints(table, numeric=True), _have_changed),
    False: NodeIndex("taints, no numbers", lambda table: NodeTaints(table, numeric=False), _have_changed),
}
