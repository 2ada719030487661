"""Which images are on which nodes. An image has one size for all: that of the node that first listed it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nodeward.api.core_v1.node import ContainerImage


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

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}
        self._names: dict[int, tuple[str, ...]] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def on(self, row: int) -> dict[str, Image]:
        return {name: self._images[name] for name in self._names.get(row, ())}

    def put(self, row: int, listed: Iterable[ContainerImage]) -> None:
        """These, and no others, are on this row's node now."""
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
