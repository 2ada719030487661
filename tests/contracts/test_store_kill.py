"""SIGKILL in the middle of concurrent writes: what was acknowledged is there, once, and watches go on without a gap."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nodeward.store.etcd import EtcdStore
from nodeward.store.interface import StoreEvent
from nodeward.store.sqlite import SqliteStore
from tests.contracts.store_etcd_server import EtcdServer, running_etcd
from tests.contracts.store_grounds import next_batch
from tests.contracts.store_writers import WRITERS, Ledger, write_forever
from tests.rounds import rounds, seed_of, soak

Acknowledged = list[tuple[int, str, str]]


def write_until_killed(file: Path, run: str, count: int) -> Acknowledged:
    """Have another process write until it has acknowledged `count` writes, kill it, and say all it acknowledged."""
    command = [sys.executable, "-m", "tests.contracts.store_writers", str(file), run]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        assert all(lines), "the writing process ended by itself"
        process.kill()
        lines.extend(process.stdout.readlines())  # what it had acknowledged before it died
    acknowledged: Acknowledged = []
    for line in lines:
        if line.endswith(b"\n"):
            revision, key, name = line.decode()[:-1].split(" ")
            acknowledged.append((int(revision), key, name))
    return acknowledged


@soak
@pytest.mark.slow
def test_killing_the_server_loses_nothing_on_sqlite(tmp_path: Path) -> None:
    kills, seed = rounds(10, 200), seed_of("store-kill")
    chance = random.Random(seed)
    file = tmp_path / "store.db"
    ledger = Ledger(1)

    async def look(acknowledged: Acknowledged) -> None:
        store = SqliteStore(file)
        await store.open()
        try:
            newest = await store.revision()
            assert newest >= max(revision for revision, _, _ in acknowledged)
            watch = store.watch("/k/", after=ledger.revision)
            while ledger.revision < newest:
                for event in await next_batch(watch):
                    ledger.add(event)
            await watch.aclose()
            ledger.check(acknowledged)
            page = await store.range("/k/")
            assert {item.key: item.value for item in page.items} == ledger.state
        finally:
            await store.close()

    total = 0
    for number in range(kills):
        acknowledged = write_until_killed(file, f"{seed}.{number}", chance.randint(1, 1500))
        total += len(acknowledged)
        asyncio.run(look(acknowledged))
    assert total >= kills


@soak
@pytest.mark.slow
def test_killing_etcd_loses_nothing_and_the_store_carries_on(tmp_path: Path) -> None:
    kills, seed = rounds(10, 200), seed_of("store-kill")
    chance = random.Random(seed)

    async def play(server: EtcdServer) -> None:
        store = EtcdStore([server.endpoint])
        await store.open()
        ledger = Ledger(await store.revision())
        acknowledged: Acknowledged = []
        enough = asyncio.Event()
        goal = 0

        def acknowledge(revision: int, key: str, name: str) -> None:
            acknowledged.append((revision, key, name))
            if len(acknowledged) >= goal:
                enough.set()

        watch = store.watch("/k/", after=ledger.revision)
        seen: list[StoreEvent] = []

        async def follow() -> None:
            async for batch in watch:
                seen.extend(batch)

        async with asyncio.TaskGroup() as group:
            follower = group.create_task(follow())
            writers = [
                group.create_task(write_forever(store, seed, writer, acknowledge))
                for writer in range(WRITERS)
            ]
            for _ in range(kills):
                enough.clear()
                goal = len(acknowledged) + chance.randint(1, 300)
                await enough.wait()
                server.kill()
                server.start()
            for writer in writers:
                writer.cancel()
            await asyncio.wait(writers)
            newest = await store.revision()
            while watch.revision < newest:
                await watch.request_progress()
                await asyncio.wait({follower}, timeout=0.01)
            await watch.aclose()
        for event in seen:
            ledger.add(event)
        ledger.check(acknowledged)
        assert len(acknowledged) >= kills
        page = await store.range("/k/")
        assert {item.key: item.value for item in page.items} == ledger.state
        await store.close()

    with running_etcd(tmp_path) as server:
        asyncio.run(play(server))
