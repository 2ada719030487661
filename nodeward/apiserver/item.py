"""One object in memory: the bytes a list sends for it, with long parts that many objects have in common kept once.

A third of a pod is `fieldsV1`: which fields its creator set, the same text in every replica. An `Item` may keep its
bytes in parts, and the `ItemInterner` of a watch cache makes equal parts one object in memory.

What must stay true: the parts, joined, are always the object's bytes, wherever they are cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Parts kept at a time, and the shortest part that is interned.
SHARED: Final = 4096
SHORTEST: Final = 200

_START: Final = b'"fieldsV1":'
#: What can follow fieldsV1 in an entry of managedFields; the first brace of each closes fieldsV1.
_ENDS: Final = (b'}},{"manager":', b"}}]", b'},"subresource":')


class Item:
    """One object as of one revision."""

    __slots__ = ("_parts", "revision")

    def __init__(self, revision: int, data: bytes, parts: tuple[bytes, ...] | None = None) -> None:
        self.revision = revision
        self._parts: bytes | tuple[bytes, ...] = parts if parts is not None else data

    @property
    def data(self) -> bytes:
        """The object's bytes, whole."""
        parts = self._parts
        return parts if isinstance(parts, bytes) else b"".join(parts)

    @property
    def size(self) -> int:
        parts = self._parts
        return len(parts) if isinstance(parts, bytes) else sum(map(len, parts))

    def __contains__(self, text: bytes) -> bool:
        """Tell whether a short text is in the object; a text that spans two parts is not found."""
        parts = self._parts
        return text in parts if isinstance(parts, bytes) else any(text in part for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and (self.revision, self.data) == (other.revision, other.data)

    def __hash__(self) -> int:
        return hash(self.revision)

    def __repr__(self) -> str:
        return f"Item({self.revision}, {self.data!r})"


def join_items(items: Iterable[Item]) -> bytes:
    """Join items with commas between them, as a list carries them."""
    pieces: list[bytes] = []
    for item in items:
        parts = item._parts
        pieces.append(b",")
        if isinstance(parts, bytes):
            pieces.append(parts)
        else:
            pieces.extend(parts)
    return b"".join(pieces[1:])


class ItemInterner:
    """Makes items whose long common parts are kept once. Bounded: cleared when full."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def item(self, revision: int, data: bytes) -> Item:
        """Return the object as an item, in parts if that may save memory."""
        start = data.find(_START)
        if start < 0:
            return Item(revision, data)
        parts: list[bytes] = []
        done = 0
        while start >= 0:
            begin = start + len(_START)
            ends = [end for end in (data.find(mark, begin) for mark in _ENDS) if end >= 0]
            if not ends:
                break
            end = min(ends) + 1
            if end - begin >= SHORTEST:
                parts.append(data[done:begin])
                parts.append(self._share(data[begin:end]))
                done = end
            start = data.find(_START, end)
        if not parts:
            return Item(revision, data)
        parts.append(data[done:])
        return Item(revision, b"", tuple(parts))

    def _share(self, text: bytes) -> bytes:
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= SHARED:
                self._known.clear()
            known = self._known[text] = text
        return known
