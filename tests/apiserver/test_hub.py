"""The caches' revision when others write to the same store."""

from __future__ import annotations

import asyncio
import json

import pytest

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.errors import ApiError
from nodeward.api.scheme import SCHEME
from nodeward.apiserver.cache import ChangeBatch
from nodeward.apiserver.hub import PATIENCE_SECONDS, ROOT, Hub
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock, SeededChance
from nodeward.machinery.informer import Informer
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.feed import UNREAD_LIMIT
from nodeward.store.interface import OutcomeUnknown, Page, WriteResult
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running


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
        assert clock.monotonic_ns() - started < PATIENCE_SECONDS * SECOND_NS
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
        result = await store.put(
            hub.key(kind, "default", "c"), b'{"metadata":{"name":"c","namespace":"default"}}', expected=0
        )
        started = clock.monotonic_ns()
        for _ in range(2):
            with pytest.raises(ApiError, match="cannot be followed") as refused:
                await hub.wait_for(result.revision)
            assert refused.value.status.code == 503
        assert clock.monotonic_ns() - started < SECOND_NS
        assert not hub.is_healthy
        await hub.stop()
        await store.close()

    run_virtual(scenario)


CONFIG_MAP = SCHEME.by_type(ConfigMap)


async def put_map(store: MemoryStore, name: str, text: str, *, expected: int = 0) -> int:
    value = f'{{"metadata":{{"name":"{name}","namespace":"default"}},"data":{{"text":"{text}"}}}}'
    result = await store.put(f"/registry/configmaps/default/{name}", value.encode(), expected=expected)
    assert result.succeeded
    return result.revision


def texts(hub: Hub) -> dict[str, bytes]:
    """Every ConfigMap the caches have, with its data."""
    found = hub.cache(CONFIG_MAP).objects
    return {key: item.data.partition(b'"data":')[2] for key, item in found.items()}


async def lose_events(store: MemoryStore) -> None:
    """More events than the store keeps for a reader, and a compaction, before any reader gets its turn."""
    for number in range(UNREAD_LIMIT + 10):
        await store.put(f"/registry/elsewhere/{number}", b"{}", expected=0)
    await store.compact(await store.revision())


class CompactedWhileRead(MemoryStore):
    """Before and after each of the first reads somebody writes and compacts as far as can be."""

    reads = 0

    async def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        self.reads += 1
        await self._interfere("before")
        page = await super().range(prefix, start=start, limit=limit, revision=revision)
        await self._interfere("after")
        return page

    async def _interfere(self, when: str) -> None:
        if self.reads < 5:
            await self.compact(await put_map(self, f"{when}-{self.reads}", "x"))


@pytest.mark.parametrize("compacted", [2, 3, 40, 41])
def test_a_server_starts_from_what_is_there_after_any_compaction(compacted: int) -> None:
    async def scenario(clock: Clock) -> None:
        store = MemoryStore()
        await store.open()
        for number in range(40):
            await put_map(store, f"m-{number}", "x")
        await store.compact(compacted)
        hub = Hub(store, SCHEME, clock)
        await hub.start()
        assert hub.revision == await store.revision() == 41
        assert len(texts(hub)) == 40
        assert hub.cache(CONFIG_MAP).history_start == compacted
        await hub.stop()
        await store.close()

    run_virtual(scenario)


def test_a_server_starts_while_somebody_compacts() -> None:
    async def scenario(clock: Clock) -> None:
        store = CompactedWhileRead()
        await store.open()
        await put_map(store, "before", "x")
        hub = Hub(store, SCHEME, clock)
        await hub.start()
        last = await put_map(store, "after", "x")
        await hub.wait_for(last)
        await hub.wait_for(await store.revision())
        stored = [item.key.removeprefix("/registry/configmaps/") for item in (await store.range(ROOT)).items]
        assert sorted(texts(hub)) == stored
        assert store.reads >= 4
        assert hub.is_healthy
        await hub.stop()
        await store.close()

    run_virtual(scenario)


def test_a_hub_that_lost_events_lists_again_and_goes_on() -> None:
    class Told:
        """What a watcher inside the server hears."""

        def __init__(self) -> None:
            self.changes: list[tuple[str, str]] = []
            self.difference: list[tuple[str, str]] = []

        def changed(self, batch: ChangeBatch) -> None:
            self.changes += [(change.type, change.key) for change in batch.changes]

        def relisted(self, batch: ChangeBatch) -> None:
            self.difference += [(change.type, change.key) for change in batch.changes]

    async def scenario(clock: Clock) -> None:
        store = MemoryStore()
        await store.open()
        kept = await put_map(store, "kept", "1")
        changed = await put_map(store, "changed", "1")
        removed = await put_map(store, "removed", "1")
        hub = Hub(store, SCHEME, clock)
        await hub.start()
        told = Told()
        hub.cache(CONFIG_MAP).watch(told)
        await put_map(store, "changed", "2", expected=changed)
        await store.delete("/registry/configmaps/default/removed", expected=removed)
        added = await put_map(store, "added", "1")
        await lose_events(store)
        await hub.wait_for(added)
        assert told.changes == []
        assert told.difference == [
            ("ADDED", "default/added"),
            ("MODIFIED", "default/changed"),
            ("DELETED", "default/removed"),
        ]
        newest = await store.revision()
        assert (hub.revision, hub.cache(CONFIG_MAP).history_start) == (newest, newest)
        assert texts(hub) == {
            "default/added": b'{"text":"1"}}',
            "default/changed": b'{"text":"2"}}',
            "default/kept": b'{"text":"1"}}',
        }
        assert hub.cache(CONFIG_MAP).keys("default/") == sorted(texts(hub))
        assert hub.is_healthy
        last = await put_map(store, "kept", "2", expected=kept)
        await hub.wait_for(last)
        assert told.changes == [("MODIFIED", "default/kept")]
        await hub.stop()
        await store.close()

    run_virtual(scenario)


def test_clients_whose_events_were_lost_are_told_410_and_informers_list_again() -> None:
    async def scenario(clock: Clock) -> None:
        store = MemoryStore()
        async with running(store=store, clock=clock) as server:
            caller = Caller.of(server)
            start = server.hub.revision
            target = f"/api/v1/configmaps?watch=1&resourceVersion={start}&timeoutSeconds=60"
            watching = asyncio.create_task(caller.send("GET", target))
            informer = Informer(server.client("test"), ConfigMap, SeededChance(1), namespace="default")
            following = asyncio.create_task(informer.run())
            await clock.sleep(1)
            await put_map(store, "lost", "1")
            await lose_events(store)
            (event,) = [json.loads(line) for line in ((await watching).body or b"").splitlines()]
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
                "ERROR",
                410,
                "Expired",
            )
            await put_map(store, "later", "1")
            await clock.sleep(60)
            assert {each.metadata.name for each in informer.list()} >= {"later", "lost"}
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    run_virtual(scenario)


def test_a_write_whose_outcome_is_unknown_is_answered_as_such() -> None:
    class LosesAnswers(MemoryStore):
        async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
            result = await super().put(key, value, expected=expected)
            if key.endswith("/unlucky"):
                raise OutcomeUnknown("whether the write happened is not known: the answer was lost")
            return result

    async def scenario(clock: Clock) -> None:
        async with running(store=LosesAnswers(), clock=clock) as server:
            caller = Caller.of(server)
            path = "/api/v1/namespaces/default/configmaps"
            code, status = await caller.json("POST", path, {"metadata": {"name": "unlucky"}})
            assert (code, status["reason"]) == (504, "Timeout")
            assert "not known" in status["message"]
            assert "retryAfterSeconds" not in status.get("details", {})
            await clock.sleep(1)
            assert (await caller.json("GET", f"{path}/unlucky"))[0] == 200

    run_virtual(scenario)
