"""SIGKILL in the middle of concurrent writes over HTTPS: nothing acknowledged is lost, nothing happens twice, and
watchers go on from where they were without a gap or a repetition."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from nodeward.machinery.clock import RealClock
from tests.contracts.store_etcd_server import EtcdServer, running_etcd
from tests.kill.api_process import ApiProcess
from tests.kill.ledger import KIND_OF, NAMESPACE, Ledger, Watcher, Writer, compare
from tests.patience import PATIENCE_SECONDS
from tests.rounds import rounds, seed_of, soak

WRITERS = 8
WATCHERS = 3


async def play(server: ApiProcess, etcd: EtcdServer | None, kills: int, seed: str) -> int:
    """All rounds; gives how many writes were acknowledged. Every fifth one kills etcd instead, where there is one."""
    chance = random.Random(seed)
    clock = RealClock()
    ledger = Ledger()
    await server.start()
    client = server.client(clock)
    start = (await client.list(dict, NAMESPACE, kind=KIND_OF)).resource_version
    watchers = [Watcher(client, start) for _ in range(WATCHERS)]
    follows: list[asyncio.Task[None]] = []
    marker: dict[str, Any] = {}
    for number in range(kills + 1):
        async with asyncio.timeout(PATIENCE_SECONDS):
            if not follows:
                follows = [asyncio.create_task(watcher.run()) for watcher in watchers]
            # What is written now comes after everything that was acknowledged before the kill.
            before = ledger.newest
            marker = await put_marker(client, marker, f"{seed}-marker-{number}")
            version = int(marker["metadata"]["resourceVersion"])
            assert version > before, "resourceVersions went back"
            for watcher in watchers:
                await first_of(watcher.reach(version), follows)
            listed = await client.list(dict, NAMESPACE, kind=KIND_OF)
            compare(ledger, watchers, listed.items)
            if number == kills:
                break
            ledger.goal, ledger.enough = ledger.count + chance.randint(1, 120), asyncio.Event()
            kills_etcd = etcd is not None and number % 5 == 4
            over = asyncio.Event()
            hands = [Writer(client, ledger, f"{seed}.{number}", who) for who in range(WRITERS)]
            writers = [asyncio.create_task(hand.run(over)) for hand in hands]
            await first_of(ledger.enough.wait(), writers)
            if etcd is not None and kills_etcd:
                etcd.kill()
                etcd.start()
                ledger.goal, ledger.enough = ledger.count + 1, asyncio.Event()
                await first_of(ledger.enough.wait(), writers)  # it carries on
                over.set()
                await asyncio.gather(*writers)
            else:
                await server.kill()
                await asyncio.gather(*writers, *follows)
                follows = []
                await server.start()
    for follow in follows:
        follow.cancel()
    await asyncio.gather(*follows, return_exceptions=True)
    await client.aclose()
    return ledger.count


async def first_of(wanted: Any, others: list[asyncio.Task[None]]) -> None:
    """Wait for `wanted`; whichever of the others fails meanwhile fails the test."""
    task = asyncio.ensure_future(wanted)
    waiting = {task, *others}
    while not task.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for finished in done:
            finished.result()


async def put_marker(client: Any, marker: dict[str, Any], write: str) -> dict[str, Any]:
    made: dict[str, Any]
    if not marker:
        made = await client.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "marker", "namespace": NAMESPACE},
                "data": {"write": write},
            }
        )
        return made
    marker["data"]["write"] = write
    made = await client.update(marker)
    return made


def play_and_stop(server: ApiProcess, kills: int, seed: str, etcd: EtcdServer | None = None) -> None:
    async def main() -> int:
        try:
            return await play(server, etcd, kills, seed)
        finally:
            await server.kill()

    assert asyncio.run(main()) >= kills


@soak
@pytest.mark.slow
def test_killing_the_server_loses_nothing_on_sqlite(tmp_path: Path) -> None:
    server = ApiProcess(tmp_path / "nodeward", ["up"], "--port")
    play_and_stop(server, rounds(6, 200), seed_of("api-kill-sqlite"))


@soak
@pytest.mark.slow
def test_killing_the_server_or_etcd_loses_nothing_on_etcd(tmp_path: Path) -> None:
    with running_etcd(tmp_path) as etcd:
        command = ["apiserver", "--etcd-servers", f"http://{etcd.endpoint}"]
        server = ApiProcess(tmp_path / "nodeward", command, "--secure-port")
        play_and_stop(server, rounds(6, 200), seed_of("api-kill-etcd"), etcd)
