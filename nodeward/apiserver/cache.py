"""The newest state of one resource in memory, and its recent history: what LIST and WATCH are served from.

Objects are kept as the bytes that lists send (`codec.with_revision`), never as trees. The hub feeds events in revision
order; readers get bytes. A watcher first takes what it missed from the history, then everything as it happens; all
watchers without a selector are handed the very same bytes.

What must stay true: `objects` is the state at the hub's revision; `history` holds every event after `history_start`,
in order; a watcher that cannot keep up is cut off and nobody else notices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from nodeward.api.codec import answer_prefix, with_revision
from nodeward.api.scheme import Kind
from nodeward.apiserver.item import Item, Sharer


class Change(NamedTuple):
    """One event. For a delete `item` is the last state, with the revision of the delete."""

    revision: int
    type: str
    key: str
    item: Item
    previous: Item | None


class Batch:
    """Changes of one resource that became visible together. Their frames are made once for all watchers."""

    __slots__ = ("_frames", "_joined", "changes")

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        self._frames: list[bytes] | None = None
        self._joined: bytes | None = None

    def frames(self, kind: Kind) -> list[bytes]:
        """Each change as a watch event, ready for the wire."""
        if self._frames is None:
            self._frames = [frame(kind, change.type, change.item.data) for change in self.changes]
        return self._frames

    def joined(self, kind: Kind) -> bytes:
        """All changes, one after the other."""
        if self._joined is None:
            frames = self.frames(kind)
            self._joined = frames[0] if len(frames) == 1 else b"".join(frames)
        return self._joined


class Watcher(Protocol):
    """Whoever is told of changes, in batches, as they are committed. Must not block and must not raise."""

    def changed(self, batch: Batch) -> None: ...

    def relisted(self, batch: Batch) -> None:
        """Events were lost: `batch` holds the difference between the state before and now, not what happened."""
        ...


#: History kept per resource; older watches are told to list again.
HISTORY_BYTES = 16 << 20
HISTORY_EVENTS = 20_000


class ResourceCache:
    """One resource. Keys are `namespace/name`, or `name` for cluster-wide kinds."""

    def __init__(self, kind: Kind, revision: int, reader: Callable[[bytes], bytes] | None = None) -> None:
        """`reader`: what a stored object is to this server, if that is not what is stored."""
        self.kind = kind
        self._reader = reader
        self.objects: dict[str, Item] = {}
        #: events after this revision are all in `history`
        self.history_start = revision
        self.history: deque[Change] = deque()
        self._history_bytes = 0
        self._sorted: list[str] = []
        self._is_sorted = True
        self._has_gaps = False
        self._sharer = Sharer()
        self.watchers: dict[Watcher, None] = {}

    # -- what the hub calls

    def load(self, key: str, value: bytes, revision: int) -> None:
        """An object that was there when the hub started."""
        self.objects[key] = self._sharer.item(revision, self.opened(value, revision))
        self._sorted.append(key)
        self._is_sorted = False

    def apply(self, key: str, value: bytes | None, revision: int) -> Change | None:
        """One committed write; gives the change to publish (None: a delete of what was never there)."""
        previous = self.objects.get(key)
        if value is not None:
            item = self._sharer.item(revision, self.opened(value, revision))
            self.objects[key] = item
            if previous is None:
                self._sorted.append(key)
                self._is_sorted = False
            change = Change(revision, "MODIFIED" if previous else "ADDED", key, item, previous)
        elif previous is not None:
            del self.objects[key]
            self._is_sorted, self._has_gaps = False, True
            change = Change(revision, "DELETED", key, restamp(previous, revision), previous)
        else:
            return None
        self._remember(change)
        return change

    def replace(self, values: Iterable[tuple[str, bytes, int]], revision: int) -> None:
        """Take (key, value, revision) of every object as the state at `revision`; what led to it is not known.

        The history starts anew, so that a watch from before is answered with 410, and watchers are told the difference.
        """
        before, self.objects = self.objects, {}
        self._sorted, self._is_sorted, self._has_gaps = [], True, False
        changes: list[Change] = []
        for key, value, modified in values:
            previous = before.pop(key, None)
            if previous is not None and previous.revision == modified:
                self.objects[key] = previous
                self._sorted.append(key)
                self._is_sorted = False
                continue
            self.load(key, value, modified)
            type_ = "MODIFIED" if previous else "ADDED"
            changes.append(Change(modified, type_, key, self.objects[key], previous))
        for key, previous in before.items():
            changes.append(Change(revision, "DELETED", key, restamp(previous, revision), previous))
        self.history.clear()
        self._history_bytes = 0
        self.history_start = revision
        batch = Batch(changes)
        for watcher in list(self.watchers):
            watcher.relisted(batch)

    def publish(self, changes: list[Change]) -> None:
        """Tell everybody; a watcher may leave while being told."""
        if self.watchers:
            batch = Batch(changes)
            for watcher in list(self.watchers):
                watcher.changed(batch)

    def _remember(self, change: Change) -> None:
        self.history.append(change)
        # What a change keeps alive beyond the current state is the state before it.
        self._history_bytes += change.previous.size if change.previous else 0
        while len(self.history) > HISTORY_EVENTS or self._history_bytes > HISTORY_BYTES:
            oldest = self.history.popleft()
            self.history_start = oldest.revision
            self._history_bytes -= oldest.previous.size if oldest.previous else 0

    # -- what verbs call

    def opened(self, value: bytes, revision: int) -> bytes:
        """What the store has under a key, as lists send it."""
        if self._reader is not None:
            value = self._reader(value)
        return with_revision(value, revision)

    def keys(self, prefix: str = "", after: str = "") -> list[str]:
        """The keys that begin with `prefix`, in order; with `after`, only those from there on."""
        if not self._is_sorted:
            if self._has_gaps:
                self._sorted = list(self.objects)
            self._sorted.sort()
            self._is_sorted, self._has_gaps = True, False
        low = bisect_left(self._sorted, max(prefix, after)) if prefix or after else 0
        high = bisect_left(self._sorted, prefix + "\U0010ffff") if prefix else len(self._sorted)
        return self._sorted[low:high] if low or high < len(self._sorted) else self._sorted

    def items(self, prefix: str = "") -> list[Item]:
        """The objects whose key begins with `prefix`, in key order."""
        objects = self.objects
        return [objects[key] for key in self.keys(prefix)]

    def since(self, revision: int) -> Iterator[Change]:
        """The history after `revision`, which must not be older than `history_start`."""
        if not self.history or self.history[-1].revision <= revision:
            return iter(())
        return (change for change in self.history if change.revision > revision)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """From now on tell `watcher`; gives what stops it."""
        self.watchers[watcher] = None

        def stop() -> None:
            self.watchers.pop(watcher, None)

        return stop


def restamp(item: Item, revision: int) -> Item:
    """The item with another resourceVersion, which stands first in the metadata."""
    stamp = b'{"metadata":{"resourceVersion":"%d"' % item.revision
    return Item(revision, b'{"metadata":{"resourceVersion":"%d"%b' % (revision, item.data[len(stamp) :]))


def frame(kind: Kind, type_: str, data: bytes) -> bytes:
    """A list item as a watch event."""
    prefix = answer_prefix(kind.api_version, kind.name)
    return b'{"type":"%b","object":%b%b}\n' % (type_.encode(), prefix, data[1:])
