"""The nodes a spread constraint looks at, in which domain each is, and how many pods of its kind a domain has.

A `Field` is made for pods of one signature and holds as long as no node changes. Its sums follow the tally of its
group: a placement is one addition. Sums that were handed out are never changed, so that a cycle may keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.cache.labels import sum_by_slot
from nodeward.scheduler.cache.node_taints import NODE_TAINTS
from nodeward.scheduler.cache.pod_groups import POD_GROUPS
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.node_affinity import rows_that_fit
from nodeward.scheduler.plugins.spread_constraints import Constraint, Constraints

if TYPE_CHECKING:
    from nodeward.scheduler.cache.pod_groups import Tally
    from nodeward.scheduler.cache.table import NodeTable

Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Sums: TypeAlias = NDArray[np.float64]


class Field:
    """One constraint over the nodes of a table. The last slot is that of nodes without the label."""

    def __init__(self, constraint: Constraint, counts: Bools, table: NodeTable) -> None:
        self.constraint: Final = constraint
        slots, size = table.labels.slots(constraint.topology_key)
        #: per row the slot of its value, whether it counts or not
        self.slots: Final = slots
        self.size: Final = size
        #: as `slots`; rows that do not count are in the last one
        self._counted = np.where(counts, self.slots, self.size - 1)
        seen = np.bincount(self._counted, None, self.size)[:-1]
        #: the slots of the domains there are; None: all
        self._domains = None if seen.all() else np.flatnonzero(seen)
        self.domains: Final = int(np.count_nonzero(seen))
        #: in how many domains nodes are, nodes without the label being one
        self.spots: Final = int(np.count_nonzero(np.bincount(self.slots[table.alive], None, self.size)))
        self.has_unlabelled: Final = bool((self.slots[table.alive] == self.size - 1).any())
        self._tally: Tally | None = None
        self._version = 0
        self._sums: Sums = np.zeros(self.size, np.float64)

    def sums(self, table: NodeTable) -> Sums:
        """How many pods of the kind there are in each domain, in nodes that count; not to be changed."""
        tally = table.pod_index(POD_GROUPS).tally(self.constraint.group)
        version = tally.version
        changes = tally.since(self._version) if tally is self._tally else None
        if changes is None:
            self._sums = sum_by_slot(self._counted, tally.column, self.size)
        elif changes:
            sums = self._sums.copy()
            for row, amount in changes:
                sums[self._counted[row]] += amount
            self._sums = sums
        self._tally, self._version = tally, version
        return self._sums

    def least(self, sums: Sums) -> float:
        """How many pods the emptiest domain has; 0 if there are fewer domains than there should be."""
        if not self.domains or self.domains < self.constraint.min_domains:
            return 0.0
        return float((sums[:-1] if self._domains is None else sums[self._domains]).min())


class SpreadPlan:
    """The fields of all constraints of a pod."""

    __slots__ = ("capacity", "constraints", "hard", "nodes", "soft", "unranked")

    def __init__(self, pod: PodView, constraints: Constraints, table: NodeTable, *, numeric: bool) -> None:
        """`numeric` is the gate of Lt and Gt tolerations."""
        self.nodes = table.node_changes.version
        self.capacity = table.capacity
        self.constraints = constraints
        self.hard = _fields(constraints.hard, pod, table, needs_all_keys=True, numeric=numeric)
        self.soft = _fields(
            constraints.soft, pod, table, needs_all_keys=constraints.needs_all_keys, numeric=numeric
        )
        #: per row whether it is not ranked, for want of a label; None: all are ranked
        self.unranked: Bools | None = None
        if constraints.needs_all_keys and any(field.has_unlabelled for field in self.soft):
            self.unranked = np.zeros(table.capacity, np.bool_)
            for field in self.soft:
                self.unranked |= field.slots == field.size - 1

    def holds(self, constraints: Constraints, table: NodeTable) -> bool:
        """Whether this is still the plan for these constraints."""
        is_same = self.nodes == table.node_changes.version and self.capacity == table.capacity
        return is_same and self.constraints == constraints


def _fields(
    constraints: Sequence[Constraint],
    pod: PodView,
    table: NodeTable,
    *,
    needs_all_keys: bool,
    numeric: bool,
) -> tuple[Field, ...]:
    has_keys = table.alive.copy()
    if needs_all_keys:
        for constraint in constraints:
            slots, size = table.labels.slots(constraint.topology_key)
            has_keys &= slots != size - 1
    rows = np.arange(table.capacity)
    found: list[Field] = []
    for constraint in constraints:
        counts = has_keys.copy()
        if constraint.honors_affinity:
            counts &= rows_that_fit(pod, table, rows)
        if constraint.honors_taints:
            taints = table.node_index(NODE_TAINTS[numeric])
            counts &= taints.are_tolerated(pod.pod.spec.tolerations, rows)
        found.append(Field(constraint, counts, table))
    return tuple(found)
