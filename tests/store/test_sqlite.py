"""What is particular to the SQLite store: failing disks, threads, history on disk, sweeping."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeward.store.interface import Compacted, Page, StoreUnavailable
from nodeward.store.sqlite import SqliteStore


def run(file: Path, scenario: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def play() -> None:
        store = SqliteStore(file)
        await store.open()
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(play())


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """As good as a full disk: the system refuses to make any file longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_when_the_disk_is_full_writes_fail_and_nothing_of_them_remains(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        kept = await store.put("/kept", b"before", expected=0)
        doomed = await store.put("/doomed", b"before", expected=0)
        with no_file_larger_than(200_000):
            results = await asyncio.gather(
                store.put("/big", bytes(1_000_000), expected=0),
                store.put("/kept", b"after", expected=kept.revision),
                store.delete("/doomed", expected=doomed.revision),
                return_exceptions=True,
            )
        assert [type(result) for result in results] == [StoreUnavailable] * 3
        assert await store.revision() == doomed.revision
        assert await store.get("/big") is None
        items = (await store.range("")).items
        assert [(item.key, item.value) for item in items] == [("/doomed", b"before"), ("/kept", b"before")]
        # The same writes work once there is room again, and take up the revisions where they were.
        again = await store.put("/kept", b"after", expected=kept.revision)
        assert (again.succeeded, again.revision) == (True, doomed.revision + 1)
        assert (await store.delete("/doomed", expected=doomed.revision)).succeeded

    run(tmp_path / "store.db", scenario)

    async def look(store: SqliteStore) -> None:
        assert [(item.key, item.value) for item in (await store.range("")).items] == [("/kept", b"after")]

    run(tmp_path / "store.db", look)


def test_writes_that_build_on_a_failed_one_fail_with_it(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        watch = store.watch("/", after=await store.revision())
        with no_file_larger_than(200_000):
            first = asyncio.ensure_future(store.put("/a", bytes(1_000_000), expected=0))
            while store._keys.get("/a") is None:
                await asyncio.wait({first}, timeout=0)
            entry = store._keys.get("/a")
            assert entry is not None
            second = asyncio.ensure_future(store.put("/a", b"second", expected=entry[1]))
            contender = asyncio.ensure_future(store.put("/a", b"contender", expected=0))
            await asyncio.wait({first, second})
        assert isinstance(first.exception(), StoreUnavailable)
        assert isinstance(second.exception(), StoreUnavailable)
        # Who was about to be refused because of the first gets the key now that there was no first.
        assert (await contender).succeeded
        (events,) = [await anext(aiter(watch))]
        assert [event.value for event in events] == [b"contender"]

    run(tmp_path / "store.db", scenario)


def test_a_refusal_waits_for_the_write_it_is_refused_for(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        first, second = await asyncio.gather(
            store.put("/a", b"first", expected=0), store.put("/a", b"second", expected=0)
        )
        assert (first.succeeded, second.succeeded) == (True, False)
        assert second.current is not None
        assert (second.current.value, second.revision) == (b"first", first.revision)

    run(tmp_path / "store.db", scenario)


def test_reads_do_not_see_what_is_not_durable_yet(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        created = await store.put("/a", b"old", expected=0)
        update = asyncio.ensure_future(store.put("/a", b"new", expected=created.revision))
        create = asyncio.ensure_future(store.put("/b", b"new", expected=0))
        while store._keys.get("/b") is None:
            await asyncio.wait({create}, timeout=0)
        if not update.done():
            before = await store.get("/a")
            assert before is not None
            assert before.value == b"old"
            assert await store.get("/b") is None
            assert [item.value for item in (await store.range("/")).items] == [b"old"]
        await asyncio.gather(update, create)
        assert [item.value for item in (await store.range("/")).items] == [b"new", b"new"]

    run(tmp_path / "store.db", scenario)


def test_a_cancelled_writer_harms_nobody(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        tasks = [asyncio.ensure_future(store.put(f"/{n}", b"", expected=0)) for n in range(10)]
        while store._keys.get("/9") is None:
            await asyncio.wait(tasks, timeout=0)
        tasks[3].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[3], asyncio.CancelledError)
        # It had been accepted, so it happened.
        assert len((await store.range("/")).items) == 10
        refused = await store.put("/3", b"", expected=0)
        assert not refused.succeeded

    run(tmp_path / "store.db", scenario)


def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        tasks = [asyncio.ensure_future(store.put(f"/{n}", b"", expected=0)) for n in range(50)]
        while store._keys.get("/49") is None:
            await asyncio.wait(tasks, timeout=0)
        await store.close()
        assert all(result.succeeded for result in await asyncio.gather(*tasks))

    run(tmp_path / "store.db", scenario)

    async def look(store: SqliteStore) -> None:
        assert len((await store.range("/")).items) == 50

    run(tmp_path / "store.db", look)


def test_the_clock_is_held_exactly_while_a_write_is_with_the_thread(tmp_path: Path) -> None:
    holds = 0

    @contextmanager
    def hold() -> Iterator[None]:
        nonlocal holds
        holds += 1
        yield
        holds -= 1

    async def play() -> None:
        store = SqliteStore(tmp_path / "store.db", hold=hold)
        await store.open()
        tasks = [asyncio.ensure_future(store.put(f"/{n}", b"", expected=0)) for n in range(5)]
        while store._keys.get("/4") is None:
            await asyncio.wait(tasks, timeout=0)
        assert holds == 1 or all(task.done() for task in tasks)
        await asyncio.gather(*tasks)
        assert holds == 0
        await store.compact(await store.revision())
        assert holds == 0
        await store.close()
        assert holds == 0

    asyncio.run(play())


def test_a_watch_older_than_memory_is_read_from_the_disk(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        before = await store.revision()
        for start in range(0, 6000, 1000):
            await asyncio.gather(
                *(store.put(f"/{n % 2}/{n}", bytes(2048), expected=0) for n in range(start, start + 1000))
            )
        assert store._recent.base > before
        watch = store.watch("/1/", after=before)
        seen: list[int] = []
        while len(seen) < 3000:
            seen.extend(event.revision for event in await anext(aiter(watch)))
        assert seen == list(range(before + 2, before + 6001, 2))

    run(tmp_path / "store.db", scenario)


def test_compaction_removes_the_rows_nobody_can_ask_for(tmp_path: Path) -> None:
    file = tmp_path / "store.db"

    async def scenario(store: SqliteStore) -> None:
        for number in range(100):
            expected = 0
            for _ in range(5):
                expected = (await store.put(f"/{number}", b"x", expected=expected)).revision
            if number % 2:
                await store.delete(f"/{number}", expected=expected)
        await store.compact(await store.revision())

    async def look(store: SqliteStore) -> None:
        assert await store.revision() == 551
        assert len((await store.range("/")).items) == 50
        watch = store.watch("/", after=100)
        with pytest.raises(Compacted):
            await anext(aiter(watch))
        assert (await store.put("/new", b"", expected=0)).revision == 552

    run(file, scenario)
    # Whatever the first run left to do is done by the next ones.
    for _ in range(2):
        run(file, sweep)
    connection = sqlite3.connect(file)
    (rows,) = connection.execute("SELECT COUNT(*) FROM log").fetchone()
    (values,) = connection.execute("SELECT COUNT(*) FROM value").fetchone()
    connection.close()
    assert (rows, values) == (50, 50)
    run(file, look)


async def sweep(store: SqliteStore) -> None:
    """Wait for the sweep, which runs in small steps between other work of the same thread."""
    while store._writer._swept < store._writer._sweep_until:
        await store._writer.drain()


def finish(reading: Coroutine[None, None, Page]) -> Page:
    """Go on with a read that only ever stops to give others a turn."""
    while True:
        try:
            reading.send(None)
        except StopIteration as end:
            page: Page = end.value
            return page


def test_a_long_read_keeps_its_revision_though_everything_is_compacted_meanwhile(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        results = await asyncio.gather(*(store.put(f"/{n:05}", b"old", expected=0) for n in range(3000)))
        reading = store.range("/")
        reading.send(None)  # it has read its first piece and gives others a turn
        for start in range(0, 3000, 500):
            await asyncio.gather(
                *(
                    store.put(f"/{n:05}", b"new", expected=results[n].revision)
                    for n in range(start, start + 500)
                )
            )
        await store.compact(await store.revision())
        await sweep(store)
        page = finish(reading)
        assert {item.value for item in page.items} == {b"old"}
        assert len(page.items) == 3000
        assert {item.value for item in (await store.range("/")).items} == {b"new"}
        await sweep(store)
        assert store._writer._swept == await store.revision()

    run(tmp_path / "store.db", scenario)


def test_large_values_are_read_whole_in_several_pieces(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore) -> None:
        before = await store.revision()
        for number in range(12):
            await store.put(f"/{number:02}", bytes([number]) * 1_000_000, expected=0)
        page = await store.range("/")
        assert [item.value[0] for item in page.items] == list(range(12))
        watch = store.watch("/", after=before)
        seen: list[int] = []
        while len(seen) < 12:
            seen.extend(event.value[0] for event in await anext(aiter(watch)) if event.value)
        assert seen == list(range(12))

    run(tmp_path / "store.db", scenario)
