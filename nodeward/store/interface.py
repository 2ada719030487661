"""What every store promises: an ordered map of bytes with one revision counter and a watch.

This is etcd's model cut down to what an API server needs. Nothing beyond this page may be assumed of a store.

* Every committed write gets the next revision of the whole store; revisions only grow, and survive a restart.
* A write is conditional: it names the mod revision it expects (0: the key must not exist), or it does nothing.
* A write is answered only once it is as durable as the store can make it, and watchers hear of it only then.
* A range can be read at any revision that has not been compacted; without one it is read at the newest.
* A watch started at revision R delivers every event with revision > R of its prefix, once, in order.
* Compaction forgets history up to and including a revision; asking for what was forgotten raises `Compacted`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from nodeward.base.errors import NodewardError, WorldError

Revision = NewType("Revision", int)


class Compacted(NodewardError):
    """The revision asked for is older than what the store still remembers."""

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__(f"revision {requested} has been compacted (oldest kept: {compacted + 1})")
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


class StoreCorrupt(NodewardError):
    """The bytes on disk are not a store of ours; nothing was changed, the message says which file."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One key as of one revision."""

    key: str
    value: bytes
    create_revision: Revision
    mod_revision: Revision


@dataclass(frozen=True, slots=True)
class Event:
    """One committed write. `value` is None for a delete; `previous` is what was there before."""

    revision: Revision
    key: str
    value: bytes | None
    previous: KeyValue | None

    @property
    def is_create(self) -> bool:
        return self.value is not None and self.previous is None

    @property
    def is_delete(self) -> bool:
        return self.value is None


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a range: the items, the revision they were read at, and how many keys follow them."""

    items: Sequence[KeyValue]
    revision: Revision
    remaining: int


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Whether the write happened. If not, `current` is what is there instead (None: nothing)."""

    succeeded: bool
    #: the write's own revision if it succeeded, else the store's revision when it was refused
    revision: Revision
    current: KeyValue | None


class Watch(Protocol):
    """Events of one prefix, in order, in batches; each batch holds at least one event, or none as progress.

    An empty batch is a progress notice: everything up to `revision` has been delivered. Iteration raises
    `Compacted` if the store forgot what should come next, `StoreUnavailable` if the store was closed.
    """

    @property
    def revision(self) -> Revision:
        """The newest revision known to be delivered (events or progress)."""
        ...

    def __aiter__(self) -> AsyncIterator[Sequence[Event]]: ...

    async def aclose(self) -> None:
        """Stop; idempotent."""
        ...


class Store(Protocol):
    """The whole interface."""

    async def open(self) -> None:
        """Make ready to serve; raises `StoreCorrupt` or `StoreUnavailable` with what to do about it."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, release everything; watches end. Idempotent."""
        ...

    async def get(self, key: str) -> KeyValue | None:
        """The newest committed version of one key."""
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

        Read at `revision` (0: the newest). Raises `Compacted` or `FutureRevision`.
        """
        ...

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        """Write if the key's mod revision is `expected` (0: the key does not exist)."""
        ...

    async def delete(self, key: str, *, expected: int) -> WriteResult:
        """Remove if the key's mod revision is `expected`. On success `current` is what was removed."""
        ...

    def watch(self, prefix: str, *, after: int) -> Watch:
        """Every event of `prefix` with a revision greater than `after`."""
        ...

    async def revision(self) -> Revision:
        """The newest committed revision, as seen by all writers (a linearizable read where there are several)."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget history up to and including `revision`; the newest version of every key is kept."""
        ...

    async def size(self) -> int:
        """Bytes the store holds, for metrics."""
        ...
