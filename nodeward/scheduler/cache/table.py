"""Nodes and the pods on them, as columns: one row per node.

Resources and labels are columns of the table itself; whatever else a plugin wants to know of nodes or pods it declares
itself and asks for with `column`, `node_index` and `pod_index` (see `columns.py`).

Events of the API come in (nodes and assigned pods, in any order), and the scheduler's own decisions (assumed pods);
what comes out are arrays. Everything is synchronous and belongs to one thread. Rows are reused, arrays grow by
doubling: whoever keeps an array must look at `capacity` again. Two logs say which rows changed.

What must stay true: `requested` of a row is the sum of what the pods on it were counted with, whatever came when; a
node that is gone keeps its row until its last pod is, but nothing is placed there (`alive`); a pod on a node nobody has
heard of yet counts as soon as the node comes. Pods that ended must not be put in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.rules.host_ports import Ports, add_ports, remove_ports
from nodeward.scheduler.cache.amounts import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Accountant,
    Amounts,
    total,
    whole,
)
from nodeward.scheduler.cache.changes import ChangeLog
from nodeward.scheduler.cache.columns import (
    DeclaredColumns,
    NodeColumn,
    NodeIndex,
    OfNodes,
    OfPods,
    PodIndex,
    Scalar,
)
from nodeward.scheduler.cache.labels import LabelColumns
from nodeward.scheduler.cache.node import NodeView
from nodeward.scheduler.cache.signature_memo import SignatureMemo
from nodeward.scheduler.framework.pod import PodView

#: Resources every table has, by their line; the order is that of the reasons Kubernetes gives.
FIRST_RESOURCES: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
_FEWEST_ROWS: Final = 16


class Placed(NamedTuple):
    """One pod where it is, with what it was counted with: what is taken off later is what was put on."""

    view: PodView
    node: str
    row: int
    amounts: Amounts


class NodeTable:
    """All nodes of one cluster."""

    def __init__(self) -> None:
        #: every change of a row; and only those of its node, for what does not depend on pods
        self.changes: Final = ChangeLog()
        self.node_changes: Final = ChangeLog()
        #: rows with a pod that was told anew, and takes what it took
        self.retold: Final = ChangeLog()
        self.capacity = _FEWEST_ROWS
        #: how many nodes there are
        self.count = 0
        self.resources: dict[str, int] = {name: line for line, name in enumerate(FIRST_RESOURCES)}
        lines, rows = 2 * len(FIRST_RESOURCES), self.capacity
        #: per resource a line, per node a row: what there is, what pods on it were promised, what they count for
        self.allocatable = np.zeros((lines, rows), np.int64)
        # One above the other, since a placement changes both.
        self._taken = np.zeros((2, lines, rows), np.int64)
        self.requested, self.scored = self._taken
        self.alive = np.zeros(rows, np.bool_)
        self.labels: Final = LabelColumns(self)
        self._declared = DeclaredColumns(self)
        self.remembered: Final = SignatureMemo()
        self._accountant = Accountant(self.line_of)
        self._row_of: dict[str, int] = {}
        self._names: list[str] = []
        self._nodes: list[Node | None] = []
        self._pods: list[dict[str, Placed]] = []
        self._ports: list[Ports] = []
        self._free: list[int] = []
        self._placed: dict[str, Placed] = {}
        #: assumed pods, by uid, with the time after which they are given up, if any
        self._assumed: dict[str, float | None] = {}

    # -- nodes

    def upsert_node(self, node: Node) -> int:
        """Add the node or replace its previous state; return its row."""
        row = self._row(node.metadata.name)
        if not self.alive[row]:
            self.count += 1
        self._nodes[row] = node
        self.alive[row] = True
        allocatable = whole(node.status.allocatable)
        lines = [self.line_of(name) for name in allocatable]
        self.allocatable[:, row] = 0
        self.allocatable[lines, row] = list(allocatable.values())
        self.labels.put(row, node.metadata.labels)
        self._declared.put_node(row, node)
        self._node_changed(row)
        return row

    def keep_node(self, node: Node) -> None:
        """Replace the object of a node that is known and changed in nothing that rows depend on."""
        row = self._row_of.get(node.metadata.name)
        if row is not None and self.alive[row]:
            self._nodes[row] = node

    def have_changed(self, old: Node, new: Node) -> bool:
        """Whether an update of a node changes a column or an index that a plugin declared."""
        return self._declared.have_changed(old, new)

    def remove_node(self, name: str) -> bool:
        """Remove the node; False if there was none. Pods on it stay until they are removed themselves."""
        row = self._row_of.get(name)
        if row is None or not self.alive[row]:
            return False
        self.count -= 1
        self._nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.labels.put(row, {})
        self._declared.put_node(row, None)
        self._node_changed(row)
        self._release(row)
        return True

    # -- pods

    def add_pod(self, view: PodView) -> None:
        """Count a pod that has a node, or replace its previous state. This confirms an assumed pod on any node."""
        node = view.pod.spec.node_name
        self._assumed.pop(view.uid, None)
        before = self._placed.get(view.uid)
        amounts = self._accountant.amounts(view.pod)
        if before is not None:
            is_same = before.node == node and before.amounts == amounts
            if is_same and before.view.host_ports == view.host_ports:
                # Nothing of the row changes, so nobody has to look at it again; selectors may mean it now, or no more.
                if self._declared.tell_apart(before.view, view):
                    self._forget_meaning(before.view, before.row)
                    self._learn_meaning(view, before.row)
                fresh = Placed(view, node, before.row, before.amounts)
                self._placed[view.uid] = self._pods[before.row][view.uid] = fresh
                self.retold.add(before.row, self.capacity)
                return
            self._take_off(before)
        self._put_on(view, node, amounts)

    update_pod = add_pod

    def remove_pod(self, uid: str) -> bool:
        """Remove a pod that was deleted or has ended; False if it was not known."""
        placed = self._placed.get(uid)
        if placed is None:
            return False
        self._assumed.pop(uid, None)
        self._take_off(placed)
        return True

    def assume(self, view: PodView, node: str, by_spec: Amounts | None = None) -> bool:
        """Count the pod on a node before the API knows; False if it is counted already, and stays where it is.

        `by_spec` is what `amounts_by_spec` says of it, if that is known.
        """
        if view.uid in self._placed:
            return False
        self._put_on(view, node, self._accountant.amounts(view.pod, by_spec))
        self._assumed[view.uid] = None
        return True

    def finish_binding(self, uid: str, deadline: float) -> None:
        """Record that the API accepted the binding: the pod is forgotten if its event does not come by the deadline."""
        if uid in self._assumed:
            self._assumed[uid] = deadline

    def forget(self, uid: str) -> bool:
        """Remove a pod that was assumed and will not be bound; False (and nothing happens) if it is not assumed."""
        return uid in self._assumed and self.remove_pod(uid)

    def expire(self, now: float) -> list[PodView]:
        """Forget the assumed pods whose deadline is over, and name them."""
        late = [uid for uid, deadline in self._assumed.items() if deadline is not None and deadline <= now]
        views = [self._placed[uid].view for uid in late]
        for uid in late:
            self.remove_pod(uid)
        return views

    def sizes(self) -> dict[str, int]:
        """How much there is of what."""
        return {"nodes": self.count, "pods": len(self._placed), "assumed_pods": len(self._assumed)}

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def pod(self, uid: str) -> PodView | None:
        """The pod, if it is counted on some node."""
        placed = self._placed.get(uid)
        return placed.view if placed is not None else None

    def node_of(self, uid: str) -> str | None:
        """The node a pod is counted on."""
        placed = self._placed.get(uid)
        return placed.node if placed is not None else None

    # -- what plugins declare

    def column(self, column: NodeColumn[Scalar]) -> NDArray[Scalar]:
        """The array of a declared column. Look again when `capacity` changed."""
        found: NDArray[Any] | None = self._declared.arrays.get(column)
        return found if found is not None else self._declared.array(column)

    def node_index(self, index: NodeIndex[OfNodes]) -> OfNodes:
        found: Any = self._declared.of_nodes.get(index)
        return found if found is not None else self._declared.node_index(index)

    def pod_index(self, index: PodIndex[OfPods]) -> OfPods:
        found: Any = self._declared.of_pods.get(index)
        return found if found is not None else self._declared.pod_index(index)

    # -- questions

    def row_of(self, name: str) -> int | None:
        """The row of a node that is there."""
        row = self._row_of.get(name)
        return row if row is not None and self.alive[row] else None

    def rows_of(self, names: Iterable[str]) -> NDArray[np.int64]:
        """The rows of some nodes; those that are not there are left out."""
        get = self._row_of.get
        rows = np.array([get(name, -1) for name in names], np.int64)
        return rows[(rows >= 0) & self.alive[rows]]

    @property
    def has_ghosts(self) -> bool:
        """Whether there are pods on nodes that are not there."""
        return len(self._row_of) != self.count

    def name_of(self, row: int) -> str:
        return self._names[row]

    def node(self, row: int) -> Node | None:
        return self._nodes[row]

    def rows(self) -> NDArray[np.int64]:
        """The rows of all nodes."""
        return np.flatnonzero(self.alive)

    def pods_on(self, row: int) -> Iterator[PodView]:
        return (placed.view for placed in self._pods[row].values())

    def placed_on(self, row: int) -> Collection[Placed]:
        """The pods on a row with what they were counted with."""
        return self._pods[row].values()

    def amounts_of(self, view: PodView) -> Amounts:
        """What a pod would be counted with."""
        return self._accountant.amounts(view.pod)

    def amounts_by_spec(self, view: PodView) -> Amounts:
        """What pods like this one would be counted with unless their status says something else."""
        return self._accountant.by_spec(view.pod)

    def pods_by_row(self) -> Iterator[tuple[int, PodView]]:
        """All pods, those on nodes that are gone included."""
        for row, placed in enumerate(self._pods):
            for each in placed.values():
                yield row, each.view

    def ports_on(self, row: int) -> Ports:
        """The host ports in use; not to be changed."""
        return self._ports[row]

    def nodes_by_row(self) -> Iterator[tuple[int, Node]]:
        """All nodes."""
        for row, node in enumerate(self._nodes):
            if node is not None:
                yield row, node

    def labels_by_row(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for row, node in self.nodes_by_row():
            yield row, node.metadata.labels

    def view(self, row: int) -> NodeView:
        """One node for plugins in plain form."""
        node = self._nodes[row]
        if node is None:
            raise LookupError(f"there is no node in row {row}")
        placed = tuple(self._pods[row].values())
        ports: Ports = {}
        for each in placed:
            add_ports(ports, each.view.host_ports)
        return NodeView(
            node,
            tuple(each.view for each in placed),
            whole(node.status.allocatable),
            total(each.amounts.requested for each in placed),
            total(each.amounts.scored for each in placed),
            ports,
        )

    # -- rows

    def _put_on(self, view: PodView, node: str, amounts: Amounts) -> None:
        row = self._row(node)
        lines = amounts.lines
        self._taken[:, : lines.shape[1], row] += lines
        ports = view.host_ports
        if ports:
            add_ports(self._ports[row], ports)
        self._placed[view.uid] = self._pods[row][view.uid] = Placed(view, node, row, amounts)
        self._learn_meaning(view, row)
        self.changes.add(row, self.capacity)

    def _take_off(self, placed: Placed) -> None:
        row, uid = placed.row, placed.view.uid
        lines = placed.amounts.lines
        self._taken[:, : lines.shape[1], row] -= lines
        remove_ports(self._ports[row], placed.view.host_ports)
        del self._placed[uid]
        del self._pods[row][uid]
        self._forget_meaning(placed.view, row)
        self.changes.add(row, self.capacity)
        self._release(row)

    def _learn_meaning(self, view: PodView, row: int) -> None:
        for index in self._declared.of_pods.values():
            index.put_on(view, row)

    def _forget_meaning(self, view: PodView, row: int) -> None:
        for index in self._declared.of_pods.values():
            index.taken_off(view, row)

    def _node_changed(self, row: int) -> None:
        self.changes.add(row, self.capacity)
        self.node_changes.add(row, self.capacity)

    def _row(self, name: str) -> int:
        row = self._row_of.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            if row == self.capacity:
                self._grow()
            self._names.append(name)
            self._nodes.append(None)
            self._pods.append({})
            self._ports.append({})
        self._row_of[name] = row
        return row

    def _release(self, row: int) -> None:
        """Let the row go if nothing holds it: no node, no pod."""
        if self._nodes[row] is None and not self._pods[row]:
            del self._row_of[self._names[row]]
            self._names[row] = ""
            self._free.append(row)

    def line_of(self, resource: str) -> int:
        """The line of a resource in `allocatable`, `requested` and `scored`; made when first asked for."""
        line = self.resources.get(resource)
        if line is None:
            line = self.resources[resource] = len(self.resources)
            if line == len(self.allocatable):
                self._resize(2 * line, self.capacity)
        return line

    def _grow(self) -> None:
        rows = self.capacity = 2 * self.capacity
        self._resize(len(self.allocatable), rows)
        alive = np.zeros(rows, np.bool_)
        alive[: len(self.alive)] = self.alive
        self.alive = alive
        self.labels.grow(rows)
        self._declared.grow(rows)

    def _resize(self, lines: int, rows: int) -> None:
        there, taken = np.zeros((lines, rows), np.int64), np.zeros((2, lines, rows), np.int64)
        before = self.allocatable.shape
        there[: before[0], : before[1]] = self.allocatable
        taken[:, : before[0], : before[1]] = self._taken
        self.allocatable, self._taken = there, taken
        self.requested, self.scored = taken
