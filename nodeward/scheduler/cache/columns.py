"""Columns and indexes of the node table that plugins declare for themselves.

A plugin names what it wants to know of every node as a value in its own file and asks the table for it:

    CORDONED = NodeColumn("cordoned", np.bool_, lambda node: node.spec.unschedulable)
    ...
    is_cordoned = table.column(CORDONED)[rows]

The table makes a column when it is first asked for, fills it from the nodes it knows and brings it up to date with
every change of a node. What does not fit into one array is an index: an object that is told of nodes (`NodeIndex`) or
of the pods on them (`PodIndex`). Plugins that hand in the same declaration share what is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nodeward.api.core_v1.node import Node
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.pod import PodView

Scalar = TypeVar("Scalar", bound=np.generic)


class NodeColumn(Generic[Scalar]):
    """One value of every node (`width` values, if that is given), in an array with a row per node.

    `value` reads it from the node object. It must depend on nothing else, and equal values must mean the same.
    """

    __slots__ = ("dtype", "name", "value", "width")

    def __init__(
        self, name: str, dtype: type[Scalar], value: Callable[[Node], Any], *, width: int = 0
    ) -> None:
        self.name: Final = name
        self.dtype: Final = dtype
        self.value: Final = value
        self.width: Final = width

    def has_changed(self, old: Node, new: Node) -> bool:
        return bool(self.value(old) != self.value(new))

    def empty(self, rows: int) -> NDArray[Scalar]:
        # The values of one kind lie together, not those of a row: a filter reads one value of all nodes.
        return np.zeros((rows, self.width) if self.width else rows, self.dtype, order="F")


class FollowsNodes(Protocol):
    """What a `NodeIndex` makes."""

    def put_node(self, row: int, node: Node | None) -> None:
        """Replace what is known of a row's node; None: the node is gone."""
        ...

    def grow(self, rows: int) -> None:
        """The table has so many rows now."""
        ...


class FollowsPods(Protocol):
    """What a `PodIndex` makes."""

    def put_on(self, view: PodView, row: int) -> None:
        """Count a pod that came to a row."""
        ...

    def taken_off(self, view: PodView, row: int) -> None:
        """Forget a pod that was counted on a row."""
        ...

    def tells_apart(self, old: PodView, new: PodView) -> bool:
        """Whether an update of a pod must be told as if it had left and come again."""
        ...

    def grow(self, rows: int) -> None: ...


OfNodes = TypeVar("OfNodes", bound=FollowsNodes)
OfPods = TypeVar("OfPods", bound=FollowsPods)


class NodeIndex(Generic[OfNodes]):
    """An index of nodes. `has_changed` says whether an update of a node means anything to it."""

    __slots__ = ("has_changed", "make", "name")

    def __init__(
        self, name: str, make: Callable[[NodeTable], OfNodes], has_changed: Callable[[Node, Node], bool]
    ) -> None:
        self.name: Final = name
        self.make: Final = make
        self.has_changed: Final = has_changed


class PodIndex(Generic[OfPods]):
    """An index of the pods that have a node."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[NodeTable], OfPods]) -> None:
        self.name: Final = name
        self.make: Final = make


class DeclaredColumns:
    """What the plugins of one table asked for."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.arrays: Final[dict[NodeColumn[Any], NDArray[Any]]] = {}
        self.of_nodes: Final[dict[NodeIndex[Any], FollowsNodes]] = {}
        self.of_pods: Final[dict[PodIndex[Any], FollowsPods]] = {}

    def array(self, column: NodeColumn[Scalar]) -> NDArray[Scalar]:
        """Make and fill a column that nobody asked for before."""
        made = self.arrays[column] = column.empty(self._table.capacity)
        for row, node in self._table.nodes_by_row():
            made[row] = column.value(node)
        return made

    def node_index(self, index: NodeIndex[OfNodes]) -> OfNodes:
        made = self.of_nodes[index] = index.make(self._table)
        for row, node in self._table.nodes_by_row():
            made.put_node(row, node)
        return made

    def pod_index(self, index: PodIndex[OfPods]) -> OfPods:
        made = self.of_pods[index] = index.make(self._table)
        for row, view in self._table.pods_by_row():
            made.put_on(view, row)
        return made

    def put_node(self, row: int, node: Node | None) -> None:
        if node is not None:
            for column, array in self.arrays.items():
                array[row] = column.value(node)
        for index in self.of_nodes.values():
            index.put_node(row, node)

    def have_changed(self, old: Node, new: Node) -> bool:
        """Whether an update of a node changes a column or an index."""
        return any(column.has_changed(old, new) for column in self.arrays) or any(
            index.has_changed(old, new) for index in self.of_nodes
        )

    def tell_apart(self, old: PodView, new: PodView) -> bool:
        return any(index.tells_apart(old, new) for index in self.of_pods.values())

    def grow(self, rows: int) -> None:
        for column, array in self.arrays.items():
            grown = column.empty(rows)
            grown[: len(array)] = array
            self.arrays[column] = grown
        for index in self.of_nodes.values():
            index.grow(rows)
        for counting in self.of_pods.values():
            counting.grow(rows)
