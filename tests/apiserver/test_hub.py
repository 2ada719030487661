"""The caches' revision when others write to the same store."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.errors import ApiError
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


def test_nobody_waits_for_a_store_that_is_no_longer_followed() -> None:
    kind = SCHEME.by_type(ConfigMap)

    def unreadable(value: bytes) -> bytes:
        raise ValueError("not what anybody stored")

    async def scenario(clock: Clock) -> None:
        store = MemoryStore()
        await store.open()
        hub = Hub(store, SCHEME, clock, {kind: unreadable})
        await hub.start()
        result = await store.put(hub.key(kind, "default", "c"), b'{"metadata":{}}', expected=0)
        started = clock.monotonic_ns()
        for _ in range(2):
            with pytest.raises(ApiError, match="cannot be followed") as refused:
                await hub.wait_for(result.revision)
            assert refused.value.status.code == 503
        assert clock.monotonic_ns() - started < 1e9
        assert not hub.is_healthy
        await hub.stop()
        await store.close()

    run_virtual(scenario)
