"""Which images are on which nodes. An image has one size for all: that of the node that first listed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nodeward.api.core_v1.node import Node
from nodeward.scheduler.cache.columns import NodeIndex

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable


@dataclass(slots=True)
class Image:
    """One image, under one of its names."""

    size: int
    #: the rows of the nodes that have it, in the order they came
    rows: dict[int, None] = field(default_factory=dict)

    @property
    def nodes(self) -> int:
        return len(self.rows)


class Images:
    """All images of one table's nodes, by name."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._images: dict[str, Image] = {}
        self._names: dict[int, tuple[str, ...]] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    @property
    def nodes(self) -> int:
        """How many nodes there are, with images or without."""
        return self._table.count

    def put_node(self, row: int, node: Node | None) -> None:
        """Replace the images of a row's node by those it lists."""
        listed = node.status.images if node is not None else ()
        sizes = {name: image.size_bytes for image in listed for name in image.names}
        for name in self._names.pop(row, ()):
            if name not in sizes:
                image = self._images[name]
                del image.rows[row]
                if not image.rows:
                    del self._images[name]
        for name, size in sizes.items():
            image = self._images.setdefault(name, Image(size))
            image.rows[row] = None
        if sizes:
            self._names[row] = tuple(sizes)

    def grow(self, rows: int) -> None:
        """Nothing here is as long as the table."""


def _have_changed(old: Node, new: Node) -> bool:
    return old.status.images != new.status.images


IMAGES: Final = NodeIndex("images", Images, _have_changed)
