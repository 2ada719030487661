"""The grounds the store contract is checked on: one per kind of store.

A ground can make any number of store objects, one after the other, over the same data, so that a test can close a store
and look at what a new one finds. Each ground starts out empty as far as its own keys are concerned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from nodeward.store.etcd import EtcdStore
from nodeward.store.interface import Store, StoreEvent, StoreWatch
from nodeward.store.memory import MemoryStore
from nodeward.store.sqlite import SqliteStore
from tests.contracts.store_etcd_server import EtcdServer
from tests.patience import PATIENCE_SECONDS


@dataclass(frozen=True)
class Ground:
    """One place for data; `make` gives a new, unopened store over it."""

    kind: str
    make: Callable[[], Store]

    def run(self, scenario: Callable[[Store], Awaitable[None]]) -> None:
        """Open a store, play the scenario on it, close it."""

        async def play() -> None:
            store = self.make()
            await store.open()
            try:
                await scenario(store)
            finally:
                await store.close()

        asyncio.run(play())


def memory_ground(directory: Path) -> Ground:
    store = MemoryStore()
    return Ground("memory", lambda: store)


def sqlite_ground(directory: Path) -> Ground:
    return Ground("sqlite", lambda: SqliteStore(directory / "store.db"))


class EtcdGrounds:
    """Grounds in one etcd server: each has a part of the keys of its own."""

    def __init__(self, server: EtcdServer) -> None:
        self._server = server
        self._made = 0

    def __call__(self, directory: Path) -> Ground:
        self._made += 1
        root = f"/ground-{self._made}"
        return Ground("etcd", lambda: EtcdStore([self._server.endpoint], root=root))


async def next_batch(watch: StoreWatch) -> list[StoreEvent]:
    """The next batch of a watch, which has to come soon."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return list(await anext(aiter(watch)))


async def read_events(watch: StoreWatch, count: int) -> list[StoreEvent]:
    """Exactly `count` events; more in the last batch is an error of the store."""
    events: list[StoreEvent] = []
    while len(events) < count:
        events.extend(await next_batch(watch))
    assert len(events) == count
    return events


async def is_silent(watch: StoreWatch) -> bool:
    """Whether nothing but a progress notice comes from a watch that is asked how far it is."""
    await watch.request_progress()
    return await next_batch(watch) == []
