"""The watches of a store: one stream of committed events, fanned out by prefix.

In: committed events, in revision order, from the store. Out: batches for each watch. A watch is either *live*
(it is handed events as they are published and keeps those not read yet) or *behind* (it reads the store's
history from where it is until it has caught up). A live watch that keeps too much becomes a watch that is
behind, so a reader that never reads costs a bounded amount of memory and harms nobody.

What must stay true: a watch delivers each event of its prefix once and in order; between "history says this
is all" and "live" there is no await, so no event falls between them. Everything here runs on the event loop's
thread.

Called by every store; calls `interface`.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator, Sequence
from typing import Final, Protocol

from nodeward.store.interface import EMPTY, Compacted, Revision, StoreClosed, StoreEvent

#: events a live watch may keep unread before it is told to read history instead
UNREAD_LIMIT: Final = 8192
#: events looked at in one go while catching up; the loop gets its turn after each
HISTORY_STEP: Final = 1024


@types.coroutine
def let_others_run() -> Generator[None, None, None]:
    """Give the event loop one turn (no time passes)."""
    yield


class EventHistory(Protocol):
    """What a store remembers of its past."""

    async def events_after(self, prefix: str, after: int, step: int) -> tuple[Sequence[StoreEvent], Revision]:
        """Events of `prefix` in about `step` revisions that follow `after`, and the revision looked at last.

        Raises `Compacted` if they are no longer all there.
        """
        ...

    async def revision(self) -> Revision:
        """Return the newest committed revision."""
        ...


class FeedWatch:
    """One watch; made by `Feed.watch`."""

    def __init__(self, feed: Feed, prefix: str, after: int) -> None:
        self._feed = feed
        self._prefix = prefix
        self._after = max(after, EMPTY)  # everything up to here has been delivered, or was not asked for
        self._behind = self._after < feed.revision
        self._unread: list[StoreEvent] = []
        self._progress_from: int | None = None  # the revision from which on a progress notice is wanted
        self._failure: Compacted | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._stopped = False

    @property
    def revision(self) -> Revision:
        if self._behind:
            return Revision(self._after)
        if self._unread:
            return Revision(self._unread[0].revision - 1)
        return Revision(max(self._after, self._feed.revision))

    async def request_progress(self) -> None:
        newest = await self._feed.history.revision()
        self._progress_from = max(newest, self._progress_from or 0)
        self._feed.note_progress_wanted(self)

    def progress_at(self, revision: int) -> None:
        self._progress_from = revision if self._progress_from is None else min(revision, self._progress_from)
        self._feed.note_progress_wanted(self)

    def tell_progress(self, revision: int) -> bool:
        """Note that the feed has reached `revision`; tell whether this watch waited for it."""
        if self._progress_from is not None and revision < self._progress_from:
            return False
        self.wake()
        return True

    def lose(self, known: Revision, until: Revision) -> None:
        """Note that events in (known, until] are lost; if this watch needs them, it ends with `Compacted`."""
        position = max(self._after, known)
        if not self._behind and position < until:  # who is behind asks history, which may know more
            self._failure = Compacted(position, until)
            self.wake()

    def offer(self, event: StoreEvent) -> None:
        """Take one freshly committed event of our prefix."""
        if self._behind or event.revision <= self._after or self._failure is not None:
            return
        unread = self._unread
        if len(unread) >= UNREAD_LIMIT:
            self._after = unread[0].revision - 1
            self._behind = True
            self._unread = []
            return
        unread.append(event)
        if self._waiter is not None:
            self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def __aiter__(self) -> FeedWatch:
        return self

    async def __anext__(self) -> Sequence[StoreEvent]:
        while True:
            if self._stopped:
                raise StopAsyncIteration
            self._feed.check_open()
            if self._unread:
                batch, self._unread = self._unread, []
                self._after = batch[-1].revision
                return batch
            if self._failure is not None:
                raise self._failure
            if self._behind:
                events = await self._catch_up()
                if events:
                    return events
                await let_others_run()
            elif self._progress_from is not None and self._progress_from <= self._feed.revision:
                self._progress_from = None
                self._after = max(self._after, self._feed.revision)
                return ()
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    async def _catch_up(self) -> Sequence[StoreEvent]:
        events, self._after = await self._feed.history.events_after(self._prefix, self._after, HISTORY_STEP)
        # No await from here to the decision: what is published next is offered to us if we are not behind.
        self._behind = self._after < self._feed.revision
        return events

    async def aclose(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._unread = []
            self._feed.forget(self._prefix, self)
            self.wake()


class Feed:
    """All watches of one store. `revision` is the newest published revision."""

    def __init__(self, history: EventHistory, revision: Revision = EMPTY) -> None:
        self.history = history
        self.revision = revision
        self._open = True
        self._watches: dict[str, list[FeedWatch]] = {}
        self._lengths: tuple[int, ...] = ()  # of the watched prefixes, ascending
        self._progress_wanted: list[FeedWatch] = []

    def watch(self, prefix: str, after: int) -> FeedWatch:
        self.check_open()
        watch = FeedWatch(self, prefix, after)
        self._watches.setdefault(prefix, []).append(watch)
        self._lengths = tuple(sorted({len(each) for each in self._watches}))
        return watch

    def forget(self, prefix: str, watch: FeedWatch) -> None:
        group = self._watches.get(prefix, [])
        if watch in group:
            group.remove(watch)
        if not group:
            self._watches.pop(prefix, None)
            self._lengths = tuple(sorted({len(each) for each in self._watches}))

    def publish(self, events: Sequence[StoreEvent], revision: Revision) -> None:
        """Hand the events up to `revision` to the watches they concern: one look-up per length of prefix."""
        watches = self._watches
        if watches:
            for event in events:
                key = event.key
                size = len(key)
                for length in self._lengths:
                    if length > size:
                        break
                    for watch in watches.get(key[:length], ()):
                        watch.offer(event)
        self.revision = revision
        if self._progress_wanted:
            self._progress_wanted = [
                watch for watch in self._progress_wanted if not watch.tell_progress(revision)
            ]

    def note_progress_wanted(self, watch: FeedWatch) -> None:
        if not watch.tell_progress(self.revision) and watch not in self._progress_wanted:
            self._progress_wanted.append(watch)

    def lose_until(self, revision: Revision) -> None:
        """Note that the store compacted events up to `revision` before they could be published."""
        known, self.revision = self.revision, revision
        for group in self._watches.values():
            for watch in group:
                watch.lose(known, revision)

    def check_open(self) -> None:
        if not self._open:
            raise StoreClosed("the store is closed")

    def close(self) -> None:
        """End every watch, now and later, with `StoreUnavailable`."""
        self._open = False
        for group in self._watches.values():
            for watch in group:
                watch.wake()
        self._watches.clear()
        self._lengths = ()
