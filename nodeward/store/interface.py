"""What every store promises: an ordered map of bytes with one revision counter and a watch.

This is etcd's model cut down to what an API server needs. Nothing beyond this page may be assumed of a store.

* An empty store is at revision 1. Every committed write gets a higher revision than all before it (the next one,
  unless somebody else shares the store); revisions survive a restart.
* A write is conditional: it names the mod revision it expects (0: the key must not exist), or it does nothing.
* A write is answered only once it is as durable as the store can make it, and watchers hear of it only then.
  `OutcomeUnknown` means that a write may have happened: read the key before trying again. After any other
  `StoreUnavailable` it has not happened.
* A range can be read at any revision that has not been compacted; without one it is read at the newest.
* A watch started at revision R delivers every event with revision > R of its prefix, once, in order.
* Compaction to revision C forgets history before C: the state at C can still be read and events after C still be
  watched; a range at, or a watch after, an older revision raises `Compacted`. (A store that others share may
  still serve a watch from memory when it was not the one to compact.)
* Keys are non-empty text without NUL, ordered by code point (which is the byte order of UTF-8). Every store takes
  values of 1 MiB; one that is given more than it can take raises `ValueTooLarge`.

Implemented by `memory`, `sqlite` and `etcd`; used by the API server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, NewType, Protocol

import msgspec

from nodeward.base.errors import NodewardError, WorldError

Revision = NewType("Revision", int)

#: the revision of a store nobody has written to; there is no event with it
EMPTY: Final = Revision(1)


class Compacted(NodewardError):
    """The revision asked for is older than what the store still remembers.

    `compacted` is the oldest revision known to be readable when the store answered. Compaction may have gone further
    since, so whoever reads there has to expect `Compacted` again.
    """

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__(f"revision {requested} has been compacted (oldest kept: {compacted})")
        self.requested = requested
        self.compacted = compacted


class FutureRevision(NodewardError):
    """The revision asked for has not happened yet."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future (current: {current})")
        self.requested = requested
        self.current = current


class StoreUnavailable(WorldError):
    """The store cannot answer now (no quorum, disk full, closed); the same call may succeed later."""


class StoreClosed(StoreUnavailable):
    """The store was closed, by its owner or because it cannot go on: no later call on it will succeed."""


class OutcomeUnknown(StoreUnavailable):
    """The answer to a write was lost: the write may have happened, or may still happen."""


class StoreCorrupt(NodewardError):
    """The bytes on disk are not a store of ours; nothing was changed, the message says which file."""


class ValueTooLarge(NodewardError):
    """The store does not take values of this size; nothing was written, and trying again will not help."""


class KeyValue(msgspec.Struct, frozen=True, gc=False):
    """One key as of one revision."""

    key: str
    value: bytes
    create_revision: Revision
    mod_revision: Revision


class StoreEvent(msgspec.Struct, frozen=True, gc=False):
    """One committed write. `value` is None for a delete. What was there before is for the watcher to remember."""

    revision: Revision
    key: str
    value: bytes | None
    is_create: bool

    @property
    def is_delete(self) -> bool:
        return self.value is None


class Page(msgspec.Struct, frozen=True):
    """Part of a range: the items, the revision they were read at, and how many keys follow them."""

    items: Sequence[KeyValue]
    revision: Revision
    remaining: int


class WriteResult(msgspec.Struct, frozen=True, gc=False):
    """Whether the write happened. If not, `current` is what is there instead (None: nothing).

    After a delete that happened `current` is what was removed; after a put that happened it is None.
    """

    succeeded: bool
    #: the write's own revision if it succeeded, else the store's revision when it was refused
    revision: Revision
    current: KeyValue | None


class StoreWatch(Protocol):
    """Events of one prefix, in order, in batches; each batch holds at least one event, or none as progress.

    An empty batch is a progress notice: everything up to `revision` has been delivered. Iteration raises
    `Compacted` if the store forgot what should come next, `StoreUnavailable` if the store was closed, and ends
    after `aclose`. A watch has one reader. A reader that falls behind costs the store a bounded amount of memory.
    """

    @property
    def revision(self) -> Revision:
        """The newest revision known to be delivered (events or progress)."""
        ...

    async def request_progress(self) -> None:
        """Ask the store how far it is: unless events come anyway, an empty batch follows soon.

        Once it has come (or the events have), `revision` is at least what `Store.revision()` was at the call.
        """
        ...

    def progress_at(self, revision: int) -> None:
        """Ask for an empty batch once `revision`, which the store has committed, is reached without events.

        The store itself is not asked. Of several revisions only the lowest counts: call again for the others.
        """
        ...

    def __aiter__(self) -> AsyncIterator[Sequence[StoreEvent]]: ...

    async def aclose(self) -> None:
        """Stop; idempotent."""
        ...


class Store(Protocol):
    """The whole interface."""

    @property
    def is_shared(self) -> bool:
        """Whether others may write to it too, so that what was read last need not be the newest."""
        ...

    async def open(self) -> None:
        """Make ready to serve; raises `StoreCorrupt` or `StoreUnavailable` with what to do about it."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, release everything; watches end. Idempotent."""
        ...

    async def get(self, key: str) -> KeyValue | None:
        """Return the newest committed version of one key."""
        ...

    async def range(
        self,
        prefix: str,
        *,
        start: str = "",
        limit: int = 0,
        revision: int = 0,
    ) -> Page:
        """Keys that begin with `prefix` and are >= `start`, in byte order, at most `limit` (0: all).

        Read at `revision`; raises `Compacted` or `FutureRevision`. Revision 0 is the newest, which is never compacted,
        whatever happens during the read.
        """
        ...

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        """Write if the key's mod revision is `expected` (0: the key does not exist)."""
        ...

    async def delete(self, key: str, *, expected: int) -> WriteResult:
        """Remove if the key's mod revision is `expected` (0 never is). On success `current` is what was removed."""
        ...

    def watch(self, prefix: str, *, after: int) -> StoreWatch:
        """Return every event of `prefix` with a revision greater than `after` (0: from the beginning)."""
        ...

    async def revision(self) -> Revision:
        """Return the newest committed revision of all writers (a linearizable read where there are several)."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget history before `revision`; nothing to do if that was done already. Raises `FutureRevision`."""
        ...

    async def size(self) -> int:
        """Bytes the store holds, for metrics."""
        ...
