"""The caches' revision when others write to the same store."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.api.scheme import SCHEME
from nodeward.apiserver.hub import PATIENCE_SECONDS, Hub
from nodeward.machinery.clock import Clock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore


class SharedStore(MemoryStore):
    """Others write here too, under keys of their own as well."""

    @property
    def is_shared(self) -> bool:
        return True


@pytest.mark.parametrize("before", [0, 3, 6000])
def test_writes_that_are_nothing_of_ours_do_not_hold_up_a_reader(before: int) -> None:
    async def scenario(clock: Clock) -> None:
        store = SharedStore()
        await store.open()
        for number in range(before):
            await store.put(f"/elsewhere/{number}", b"{}", expected=0)
        hub = Hub(store, SCHEME, clock)
        started = clock.monotonic_ns()
        await hub.start()
        for number in range(3):
            result = await store.put(f"/elsewhere/later/{number}", b"{}", expected=0)
            await asyncio.gather(*(hub.fresh() for _ in range(5)))
            assert hub.revision >= result.revision
            await hub.at_least(result.revision)
        assert clock.monotonic_ns() - started < PATIENCE_SECONDS * 1e9
        await hub.stop()
        await store.close()

    run_virtual(scenario)


def test_a_reader_hears_of_each_revision_while_others_go_on_writing() -> None:
    async def scenario(clock: Clock) -> None:
        store = SharedStore()
        await store.open()
        hub = Hub(store, SCHEME, clock)
        await hub.start()

        async def read(number: int) -> None:
            result = await store.put(f"/elsewhere/{number}", b"{}", expected=0)
            await hub.fresh()
            assert hub.revision >= result.revision

        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as readers:
            for number in range(200):
                readers.create_task(read(number))
        await hub.stop()
        await store.close()

    run_virtual(scenario)
