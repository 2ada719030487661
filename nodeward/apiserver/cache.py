"""The watch cache of one resource: its newest state and its recent history. LIST and WATCH are served from it.

The hub feeds it store events in revision order; verbs read it. Objects are kept as the bytes that lists send
(`codec.with_revision`), never decoded. A watcher first gets what it missed from the history, then every change as it is
committed; all watchers without a selector get the same bytes.

What must stay true: `objects` is the state at the hub's revision; `history` holds every event after `history_start`, in
order; a watcher that cannot keep up is disconnected without slowing the others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from nodeward.api.codec import answer_prefix, with_revision
from nodeward.api.scheme import Kind
from nodeward.apiserver.item import Item, ItemInterner


class ResourceChange(NamedTuple):
    """One committed write of one object. For a delete `item` is the last state, with the revision of the delete."""

    revision: int
    type: str
    key: str
    item: Item
    previous: Item | None


class ChangeBatch:
    """Changes of one resource that were committed together. Their watch frames are encoded once for all watchers."""

    __slots__ = ("_frames", "_joined", "changes")

    def __init__(self, changes: list[ResourceChange]) -> None:
        self.changes = changes
        self._frames: list[bytes] | None = None
        self._joined: bytes | None = None

    def frames(self, kind: Kind) -> list[bytes]:
        """Return each change as a watch event, ready to be sent."""
        if self._frames is None:
            self._frames = [frame(kind, change.type, change.item.data) for change in self.changes]
        return self._frames

    def joined(self, kind: Kind) -> bytes:
        """Return all frames as one byte string."""
        if self._joined is None:
            frames = self.frames(kind)
            self._joined = frames[0] if len(frames) == 1 else b"".join(frames)
        return self._joined


class CacheWatcher(Protocol):
    """Receives changes, in batches, as they are committed. Must not block and must not raise."""

    def changed(self, batch: ChangeBatch) -> None: ...

    def relisted(self, batch: ChangeBatch) -> None:
        """Handle lost events: `batch` is the difference between the state before and now, not what happened."""
        ...


#: History kept per resource; a watch from before it gets 410 and lists again.
HISTORY_BYTES = 16 << 20
HISTORY_EVENTS = 20_000


class ResourceCache:
    """The cache of one resource. Keys are `namespace/name`, or `name` for cluster-scoped kinds."""

    def __init__(self, kind: Kind, revision: int, reader: Callable[[bytes], bytes] | None = None) -> None:
        """Start empty. `reader` converts stored bytes to what this server's version shows; None: they are the same."""
        self.kind = kind
        self._reader = reader
        self.objects: dict[str, Item] = {}
        #: events after this revision are all in `history`
        self.history_start = revision
        self.history: deque[ResourceChange] = deque()
        self._history_bytes = 0
        self._sorted: list[str] = []
        self._is_sorted = True
        self._has_gaps = False
        self._interner = ItemInterner()
        self.watchers: dict[CacheWatcher, None] = {}

    # -- what the hub calls

    def load(self, key: str, value: bytes, revision: int) -> None:
        """Add an object that existed when the hub started."""
        self.objects[key] = self._interner.item(revision, self.opened(value, revision))
        self._sorted.append(key)
        self._is_sorted = False

    def apply(self, key: str, value: bytes | None, revision: int) -> ResourceChange | None:
        """Apply one committed write; return the change to publish (None: a delete of an unknown object)."""
        previous = self.objects.get(key)
        if value is not None:
            item = self._interner.item(revision, self.opened(value, revision))
            self.objects[key] = item
            if previous is None:
                self._sorted.append(key)
                self._is_sorted = False
            change = ResourceChange(revision, "MODIFIED" if previous else "ADDED", key, item, previous)
        elif previous is not None:
            del self.objects[key]
            self._is_sorted, self._has_gaps = False, True
            change = ResourceChange(revision, "DELETED", key, restamp(previous, revision), previous)
        else:
            return None
        self._remember(change)
        return change

    def replace(self, values: Iterable[tuple[str, bytes, int]], revision: int) -> None:
        """Replace the state by (key, value, revision) of every object at `revision`, after events were lost.

        The history starts anew, so that a watch from before is answered with 410; watchers get the difference.
        """
        before, self.objects = self.objects, {}
        self._sorted, self._is_sorted, self._has_gaps = [], True, False
        changes: list[ResourceChange] = []
        for key, value, modified in values:
            previous = before.pop(key, None)
            if previous is not None and previous.revision == modified:
                self.objects[key] = previous
                self._sorted.append(key)
                self._is_sorted = False
                continue
            self.load(key, value, modified)
            type_ = "MODIFIED" if previous else "ADDED"
            changes.append(ResourceChange(modified, type_, key, self.objects[key], previous))
        for key, previous in before.items():
            changes.append(ResourceChange(revision, "DELETED", key, restamp(previous, revision), previous))
        self.history.clear()
        self._history_bytes = 0
        self.history_start = revision
        batch = ChangeBatch(changes)
        for watcher in list(self.watchers):
            watcher.relisted(batch)

    def publish(self, changes: list[ResourceChange]) -> None:
        """Send changes to all watchers; a watcher may leave while it is called."""
        if self.watchers:
            batch = ChangeBatch(changes)
            for watcher in list(self.watchers):
                watcher.changed(batch)

    def _remember(self, change: ResourceChange) -> None:
        self.history.append(change)
        # A change in the history keeps the object's previous state in memory, so that is what counts.
        self._history_bytes += change.previous.size if change.previous else 0
        while len(self.history) > HISTORY_EVENTS or self._history_bytes > HISTORY_BYTES:
            oldest = self.history.popleft()
            self.history_start = oldest.revision
            self._history_bytes -= oldest.previous.size if oldest.previous else 0

    # -- what verbs call

    def opened(self, value: bytes, revision: int) -> bytes:
        """Convert stored bytes to the bytes lists send."""
        if self._reader is not None:
            value = self._reader(value)
        return with_revision(value, revision)

    def keys(self, prefix: str = "", after: str = "") -> list[str]:
        """Return the keys that begin with `prefix`, in order; with `after`, only those from there on."""
        if not self._is_sorted:
            if self._has_gaps:
                self._sorted = list(self.objects)
            self._sorted.sort()
            self._is_sorted, self._has_gaps = True, False
        low = bisect_left(self._sorted, max(prefix, after)) if prefix or after else 0
        high = bisect_left(self._sorted, prefix + "\U0010ffff") if prefix else len(self._sorted)
        return self._sorted[low:high] if low or high < len(self._sorted) else self._sorted

    def items(self, prefix: str = "") -> list[Item]:
        """Return the objects whose key begins with `prefix`, in key order."""
        objects = self.objects
        return [objects[key] for key in self.keys(prefix)]

    def since(self, revision: int) -> Iterator[ResourceChange]:
        """Iterate over the history after `revision`, which must not be older than `history_start`."""
        if not self.history or self.history[-1].revision <= revision:
            return iter(())
        return (change for change in self.history if change.revision > revision)

    def watch(self, watcher: CacheWatcher) -> Callable[[], None]:
        """Register `watcher` for all changes from now on; return a function that removes it."""
        self.watchers[watcher] = None

        def stop() -> None:
            self.watchers.pop(watcher, None)

        return stop


def restamp(item: Item, revision: int) -> Item:
    """Return the item with another resourceVersion, which is always the first field of the metadata."""
    stamp = b'{"metadata":{"resourceVersion":"%d"' % item.revision
    return Item(revision, b'{"metadata":{"resourceVersion":"%d"%b' % (revision, item.data[len(stamp) :]))


def frame(kind: Kind, type_: str, data: bytes) -> bytes:
    """Encode a list item as a watch event."""
    prefix = answer_prefix(kind.api_version, kind.name)
    return b'{"type":"%b","object":%b%b}\n' % (type_.encode(), prefix, data[1:])
