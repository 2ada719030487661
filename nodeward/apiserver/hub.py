"""The API server's connection to the store: one watch reads every committed event and updates all watch caches.

Started by `server.py`; reads the store, feeds `cache.py`; verbs wait here for revisions. One watch over all of
`/registry/` feeds everything: a list of one resource can therefore carry the newest revision of the store, and a
bookmark is true for every watcher.

What must stay true: all caches are always at the same revision, `hub.revision`. A write is answered only after the hub
has seen it, so a client reads its own writes; with a store that other servers write to as well, a read first asks the
store for its newest revision. Keys outside the known resources bring no event, so the hub asks the store for progress
when somebody waits for such a revision.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence

from nodeward.api.errors import timeout, too_large_resource_version, unavailable
from nodeward.api.scheme import Kind, Scheme
from nodeward.apiserver.cache import ResourceCache, ResourceChange
from nodeward.apiserver.quarantine import Quarantine
from nodeward.apiserver.store_health import StoreHealth
from nodeward.base.errors import NodewardError
from nodeward.base.invariant import invariant
from nodeward.machinery.clock import Clock, Timer
from nodeward.store.interface import (
    Compacted,
    Page,
    Store,
    StoreClosed,
    StoreEvent,
    StoreUnavailable,
    StoreWatch,
)

LOG = logging.getLogger(__name__)

ROOT = "/registry/"

#: Revisions replayed at start, so that watches opened before a restart can resume.
REPLAY = 5_000
#: The first pause before a broken watch is tried again; the pauses grow.
FIRST_DELAY_SECONDS = 0.05
#: A request that waits for a revision fails after one to two times this.
PATIENCE_SECONDS = 15.0


def storage_name(kind: Kind) -> str:
    """Return the part of a storage key that names the resource; events.k8s.io shares that of core events."""
    if kind.stored_as:
        return kind.stored_as
    return f"{kind.group}/{kind.resource}" if kind.group else kind.resource


class Hub:
    """All watch caches, their common revision, and the requests that wait for one."""

    def __init__(
        self,
        store: Store,
        scheme: Scheme,
        clock: Clock,
        readers: Mapping[Kind, Callable[[bytes], bytes]] | None = None,
    ) -> None:
        """Make empty caches. `readers`: per kind, converts stored bytes to what this server's version shows."""
        self.store = store
        self.health = StoreHealth(store, clock)
        self.quarantine = Quarantine()
        self._readers = readers or {}
        self.revision = 0
        self._clock = clock
        stored = [kind for kind in scheme.kinds if kind.is_stored]
        self._kinds = {storage_name(kind): kind for kind in stored if not kind.stored_as}
        self._caches: dict[str, ResourceCache] = {}
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._sweeper: Timer | None = None
        self._waiting_since_last_sweep: set[int] = set()
        self._pump: asyncio.Task[None] | None = None
        self._watch: StoreWatch | None = None
        self._failure: BaseException | None = None

    # -- life

    async def start(self) -> None:
        """Load the state and follow the store, which is open already."""
        newest = await self.store.revision()
        page = await self._first_page(max(1, newest - REPLAY))
        self.revision = page.revision
        self._caches = {
            name: ResourceCache(kind, page.revision, self._readers.get(kind))
            for name, kind in self._kinds.items()
        }
        for name, objects in self._by_resource(page).items():
            for key, value, revision in objects:
                self._caches[name].load(key, value, revision)
        self.health.start()
        self._pump = asyncio.create_task(self._follow(), name="hub")
        self._pump.add_done_callback(self._ended)
        await self.wait_for(newest)

    async def _first_page(self, start: int) -> Page:
        """Read the state of some revisions ago, as far as the store still has it; the events since are replayed."""
        try:
            return await self.store.range(ROOT, revision=start)
        except Compacted as gone:
            LOG.info("events are replayed only from revision %d on: %s", gone.compacted, gone)
            oldest = gone.compacted
        try:
            return await self.store.range(ROOT, revision=oldest)
        except Compacted:
            # The store was compacted at this very moment: nothing is left to replay.
            return await self.store.range(ROOT)

    def _by_resource(self, page: Page) -> dict[str, list[tuple[str, bytes, int]]]:
        """Group keys, values and revisions by resource; leave out resources this server does not know."""
        found: dict[str, list[tuple[str, bytes, int]]] = {name: [] for name in self._caches}
        for item in page.items:
            name, key = self._split(item.key)
            if name in found and self.quarantine.admits(item.key, key, item.value):
                found[name].append((key, item.value, item.mod_revision))
        return found

    async def stop(self) -> None:
        await self.health.stop()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
            self._pump = None

    @property
    def is_healthy(self) -> bool:
        return self._pump is not None and not self._pump.done()

    async def failed(self) -> None:
        """Wait until the store can no longer be followed, and raise why; only a restart helps then."""
        pump = self._pump
        invariant(pump is not None, "a hub fails after it was started")
        if pump is not None:
            await asyncio.wait((pump,))
            error = None if pump.cancelled() else pump.exception()
            if error is not None:
                raise NodewardError(f"the store can no longer be followed: {error}") from error

    # -- reading

    def cache(self, kind: Kind) -> ResourceCache:
        return self._caches[storage_name(kind)]

    def key(self, kind: Kind, namespace: str, name: str) -> str:
        """Return the storage key of an object."""
        inner = f"{namespace}/{name}" if kind.is_namespaced else name
        return f"{ROOT}{storage_name(kind)}/{inner}"

    def prefix(self, kind: Kind, namespace: str = "") -> str:
        inner = f"{namespace}/" if namespace else ""
        return f"{ROOT}{storage_name(kind)}/{inner}"

    async def fresh(self) -> None:
        """Wait until the caches are at least as new as the store was when this was called."""
        if self.store.is_shared:
            await self.wait_for(await self.health.revision())

    async def at_least(self, revision: int) -> None:
        """Wait until the caches reach `revision`; a client that asks for a future one gets an error after a while."""
        if revision <= self.revision:
            return
        current = await self.health.revision()
        if revision > current:
            raise too_large_resource_version(revision, current)
        await self.wait_for(revision)

    async def wait_for(self, revision: int) -> None:
        """Wait until the caches have reached a revision the store has committed."""
        if revision <= self.revision:
            return
        if self._failure is not None or self._pump is None:
            raise unavailable("the store's events cannot be followed at the moment")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, next(self._order), waiter))
        self._ask_for_progress()
        if self._sweeper is None:
            self._sweeper = self._clock.call_later(PATIENCE_SECONDS, self._sweep)
        await waiter

    def _ask_for_progress(self) -> None:
        """Ask the store for progress up to the lowest awaited revision, whose key may be of no known resource."""
        if self._waiters and self._watch is not None and self.store.is_shared:
            self._watch.progress_at(self._waiters[0][0])

    def _sweep(self) -> None:
        """Fail requests that have waited through two sweeps. One timer serves all waiters."""
        late = self._waiting_since_last_sweep
        for _, order, waiter in self._waiters:
            if order in late and not waiter.done():
                waiter.set_exception(timeout("the server's caches did not catch up with its store", 1))
        self._waiters = [entry for entry in self._waiters if not entry[2].done()]
        heapq.heapify(self._waiters)
        self._waiting_since_last_sweep = {order for _, order, _ in self._waiters}
        again = bool(self._waiters)
        self._sweeper = self._clock.call_later(PATIENCE_SECONDS, self._sweep) if again else None

    # -- following

    async def _follow(self) -> None:
        """Read the store's events for as long as this server runs; list again when events were lost."""
        delay = FIRST_DELAY_SECONDS
        has_gap = False
        while True:
            known = self.revision
            try:
                if has_gap:
                    await self._list_again()
                    has_gap = False
                await self._read()
                return
            except Compacted as gap:
                LOG.warning("store events were lost, all resources are listed again: %s", gap)
                has_gap = True
            except StoreClosed:
                raise
            except StoreUnavailable as error:
                LOG.warning("the watch of the store failed at revision %d: %s", self.revision, error)
            if self.revision > known:
                delay = FIRST_DELAY_SECONDS
            await self._clock.sleep(delay)
            delay = min(delay * 2, 2.0)

    async def _read(self) -> None:
        """Apply events until the watch ends or fails."""
        self._watch = watch = self.store.watch(ROOT, after=self.revision)
        self._ask_for_progress()
        try:
            async for batch in watch:
                self._advance(batch, watch.revision)
        finally:
            self._watch = None
            await watch.aclose()

    async def _list_again(self) -> None:
        """Replace lost events by the store's newest state; clients' watches get 410."""
        page = await self.store.range(ROOT)
        for name, objects in self._by_resource(page).items():
            self._caches[name].replace(objects, page.revision)
        self.revision = page.revision
        self._release()

    def _ended(self, pump: asyncio.Task[None]) -> None:
        """Fail all waiters, since no event will come any more."""
        error = None if pump.cancelled() else pump.exception()
        if error is not None:
            LOG.error("the watch of the store has ended", exc_info=error)
        self._fail(error or RuntimeError("this server is stopping"))

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        for _, _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(unavailable(f"the store's events cannot be followed: {error}"))
        self._waiters.clear()

    def _advance(self, batch: Sequence[StoreEvent], revision: int) -> None:
        touched: dict[str, list[ResourceChange]] = {}
        for event in batch:
            invariant(event.revision >= self.revision, "events come in the order of their revisions")
            name, key = self._split(event.key)
            cache = self._caches.get(name)
            if cache is None:
                continue
            if event.value is None:
                self.quarantine.found.pop(event.key, None)
            elif not self.quarantine.admits(event.key, key, event.value):
                continue  # what was there before is served on
            change = cache.apply(key, event.value, event.revision)
            if change is not None:
                touched.setdefault(name, []).append(change)
            self.revision = event.revision
        self.revision = max(self.revision, revision)
        for name, changes in touched.items():
            self._caches[name].publish(changes)
        self._release()

    def _release(self) -> None:
        """Wake the requests that waited for the revision the caches have reached."""
        while self._waiters and self._waiters[0][0] <= self.revision:
            _, _, waiter = heapq.heappop(self._waiters)
            if not waiter.done():
                waiter.set_result(None)
        self._ask_for_progress()

    def _split(self, key: str) -> tuple[str, str]:
        """Split `/registry/apps/deployments/ns/name` into the storage name and the key inside the resource."""
        rest = key[len(ROOT) :]
        first, _, tail = rest.partition("/")
        if first in self._kinds:
            return first, tail
        second, _, tail = tail.partition("/")
        return f"{first}/{second}", tail
