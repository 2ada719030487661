"""One object in memory: the bytes a list sends for it, sharing what many objects have in common.

A third of a pod is `fieldsV1`: which fields its creator set, the same text in every replica. An `Item` may keep its
bytes in parts, and a `Sharer` sees to it that equal parts are one and the same. Where the parts are cut does not
matter for what they mean: joined they are always the object's bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Texts shared at a time, and the shortest that is worth it.
SHARED: Final = 4096
SHORTEST: Final = 200

_START: Final = b'"fieldsV1":'
#: How an entry of managedFields can go on after its fieldsV1; the last brace before the cut closes them.
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
        """Whether a short text stands in the object; a text that is cut by a part's end is not looked for."""
        parts = self._parts
        return text in parts if isinstance(parts, bytes) else any(text in part for part in parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and (self.revision, self.data) == (other.revision, other.data)

    def __hash__(self) -> int:
        return hash(self.revision)

    def __repr__(self) -> str:
        return f"Item({self.revision}, {self.data!r})"


def join_items(items: Iterable[Item]) -> bytes:
    """Items one after the other with commas between them, as a list carries them."""
    pieces: list[bytes] = []
    for item in items:
        parts = item._parts
        pieces.append(b",")
        if isinstance(parts, bytes):
            pieces.append(parts)
        else:
            pieces.extend(parts)
    return b"".join(pieces[1:])


class Sharer:
    """Makes items whose long common texts are kept once. Forgets all it knows when it knows too much."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def item(self, revision: int, data: bytes) -> Item:
        """The object, in parts if that may save something."""
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
