"""On which nodes the claims of a pod can be allocated: worked out once per node, and again where something changed.

Pods whose claims ask for the same share the answers. An answer about a node is good until devices in one of its pools
are taken or released, or the node itself changes; slices and classes that change make all answers old. So a thousand
equal pods cost one look at every node, and then one look per placement. Nodes that see the same slices, as those of
devices on a network, and can skip the same operations share one look.

Called by the plugin DynamicResources; calls the allocator. What must stay true: every answer is what the allocator
would say now. Errors are not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.features.declared.dra_optional_node_operations import NAME as OPERATIONS_FEATURE
from nodeward.features.declared.dra_optional_node_preparation import NAME as PREPARATION_FEATURE
from nodeward.rules.devices.inventory import Inventory
from nodeward.scheduler.framework.plugin import RejectedRows
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins.dra.claim_tracker import PoolLog

if TYPE_CHECKING:
    from nodeward.api.core_v1.node import Node
    from nodeward.scheduler.cache.table import NodeTable

#: Requests that answers are kept for: those asked about last.
MOST_KEPT: Final = 128

_UNKNOWN: Final = -2
_FITS: Final = -1

#: node -> what the allocator says of it, and how good the alternatives are that the claims would get
JudgeNode = Callable[["Node"], tuple[Status, int]]
#: What of a node's declared features its answer depends on.
_FEATURES: Final = (PREPARATION_FEATURE, OPERATIONS_FEATURE)


class NodeFits:
    """The answers for one set of claims. Rows are those of one table."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory: Final = inventory
        self._which: NDArray[np.int64] = np.zeros(0, np.int64)
        self._scores: NDArray[np.int64] = np.zeros(0, np.int64)
        self._reasons: dict[Status, int] = {}
        self._pools_version = -1
        self._nodes_version = -1

    def rejected(
        self, table: NodeTable, rows: NDArray[np.int64], log: PoolLog, judge: JudgeNode
    ) -> RejectedRows | None:
        """Say which rows do not fit; an error ends the work, with all that was found out so far."""
        self._forget_changed(table, log)
        which = self._which
        looked: dict[Hashable, tuple[int, int]] = {}
        for row in rows[which[rows] == _UNKNOWN].tolist():
            node = table.node(row)
            if node is None:
                continue
            declared = node.status.declared_features
            alike = id(self.inventory.on(node)), *(each in declared for each in _FEATURES)
            found = looked.get(alike)
            if found is None:
                status, score = judge(node)
                if status.code is Code.ERROR:
                    return RejectedRows(np.where(rows == row, 0, _FITS), (status,))
                number = _FITS if status.is_success else self._reasons.setdefault(status, len(self._reasons))
                found = looked[alike] = number, score
            which[row], self._scores[row] = found
        answer = which[rows]
        return RejectedRows(answer, tuple(self._reasons)) if (answer >= 0).any() else None

    def scores(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the scores of rows that fit."""
        return self._scores[rows]

    def _forget_changed(self, table: NodeTable, log: PoolLog) -> None:
        changed = log.since(self._pools_version) if self._pools_version >= 0 else None
        nodes = table.node_changes.since(self._nodes_version) if self._nodes_version >= 0 else None
        if changed is None or nodes is None or len(self._which) != table.capacity:
            self._forget_all(table)
        else:
            self._which[nodes] = _UNKNOWN
            for pool in dict.fromkeys(changed):
                names = self.inventory.only_nodes_of(pool)
                if names is None:
                    self._forget_all(table)
                    break
                self._which[table.rows_of(names)] = _UNKNOWN
        self._pools_version = log.version
        self._nodes_version = table.node_changes.version

    def _forget_all(self, table: NodeTable) -> None:
        self._which = np.full(table.capacity, _UNKNOWN, np.int64)
        self._scores = np.zeros(table.capacity, np.int64)
        self._reasons = {}


class KnownFits:
    """The answers for the claims asked about last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, NodeFits] = OrderedDict()

    def of(self, key: Hashable, inventory: Inventory) -> NodeFits:
        """Return the answers for claims that are equal in `key`, over these slices."""
        found = self._known.get(key)
        if found is None or found.inventory is not inventory:
            found = self._known[key] = NodeFits(inventory)
        self._known.move_to_end(key)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return found
