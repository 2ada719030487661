"""What every store promises (`nodeward/store/interface.py`), promise by promise, on each kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeward.base.invariant import InvariantBroken
from nodeward.store.interface import (
    Compacted,
    FutureRevision,
    KeyValue,
    Revision,
    Store,
    StoreEvent,
    StoreUnavailable,
)
from tests.contracts.store_etcd_server import running_etcd
from tests.contracts.store_grounds import (
    EtcdGrounds,
    Ground,
    is_silent,
    memory_ground,
    next_batch,
    read_events,
    sqlite_ground,
)
from tests.patience import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def etcd_grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdGrounds]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield EtcdGrounds(server)


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    if request.param == "memory":
        return memory_ground(tmp_path)
    if request.param == "sqlite":
        return sqlite_ground(tmp_path)
    grounds: EtcdGrounds = request.getfixturevalue("etcd_grounds")
    return grounds(tmp_path)


async def fill(store: Store, *keys: str) -> list[int]:
    """Create keys whose value is their name; the revisions they got."""
    revisions = []
    for key in keys:
        result = await store.put(key, key.encode(), expected=0)
        assert result.succeeded
        revisions.append(int(result.revision))
    return revisions


def test_a_created_key_is_read_back_with_its_revisions(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        result = await store.put("/a", b"one", expected=0)
        assert (result.succeeded, result.revision, result.current) == (True, before + 1, None)
        assert await store.get("/a") == KeyValue("/a", b"one", result.revision, result.revision)
        assert await store.revision() == before + 1

    ground.run(scenario)


def test_an_update_keeps_the_create_revision(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        created = await store.put("/a", b"one", expected=0)
        updated = await store.put("/a", b"two", expected=created.revision)
        assert updated.succeeded
        assert await store.get("/a") == KeyValue("/a", b"two", created.revision, updated.revision)

    ground.run(scenario)


def test_a_missing_key_is_none(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        assert await store.get("/nothing") is None

    ground.run(scenario)


def test_creating_what_exists_is_refused_and_shows_what_is_there(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        first = await store.put("/a", b"one", expected=0)
        second = await store.put("/a", b"two", expected=0)
        assert not second.succeeded
        assert second.current == KeyValue("/a", b"one", first.revision, first.revision)
        assert second.revision == await store.revision() == first.revision

    ground.run(scenario)


def test_a_write_expecting_an_older_revision_is_refused(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        first = await store.put("/a", b"one", expected=0)
        second = await store.put("/a", b"two", expected=first.revision)
        third = await store.put("/a", b"three", expected=first.revision)
        assert not third.succeeded
        assert third.current == KeyValue("/a", b"two", first.revision, second.revision)
        gone = await store.delete("/a", expected=first.revision)
        assert not gone.succeeded
        assert gone.current == third.current

    ground.run(scenario)


def test_a_write_to_a_missing_key_expecting_a_revision_is_refused(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        put = await store.put("/a", b"one", expected=5)
        delete = await store.delete("/a", expected=5)
        assert (put.succeeded, put.current) == (False, None)
        assert (delete.succeeded, delete.current) == (False, None)

    ground.run(scenario)


def test_deleting_with_expected_zero_never_happens(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        missing = await store.delete("/a", expected=0)
        assert (missing.succeeded, missing.revision, missing.current) == (False, before, None)
        await fill(store, "/a")
        present = await store.delete("/a", expected=0)
        assert not present.succeeded
        assert present.current == await store.get("/a") is not None

    ground.run(scenario)


def test_a_delete_shows_what_was_removed_and_takes_a_revision(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        created = await store.put("/a", b"one", expected=0)
        deleted = await store.delete("/a", expected=created.revision)
        assert deleted.succeeded
        assert deleted.revision == created.revision + 1
        assert deleted.current == KeyValue("/a", b"one", created.revision, created.revision)
        assert await store.get("/a") is None

    ground.run(scenario)


def test_a_key_created_again_has_a_new_create_revision(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        created = await store.put("/a", b"one", expected=0)
        await store.delete("/a", expected=created.revision)
        again = await store.put("/a", b"two", expected=0)
        assert await store.get("/a") == KeyValue("/a", b"two", again.revision, again.revision)

    ground.run(scenario)


def test_of_many_writers_expecting_the_same_revision_one_wins(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        created = await store.put("/a", b"", expected=0)
        results = await asyncio.gather(
            *(store.put("/a", b"%d" % writer, expected=created.revision) for writer in range(20))
        )
        winners = [number for number, result in enumerate(results) if result.succeeded]
        assert len(winners) == 1
        now = await store.get("/a")
        assert now is not None
        assert now.value == b"%d" % winners[0]
        assert {result.current for result in results if not result.succeeded} == {now}

    ground.run(scenario)


def test_concurrent_writes_to_different_keys_all_happen_with_their_own_revision(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        results = await asyncio.gather(*(store.put(f"/k/{n:03}", b"%d" % n, expected=0) for n in range(100)))
        assert sorted(result.revision for result in results) == list(range(before + 1, before + 101))
        page = await store.range("/k/")
        assert [(item.value, item.mod_revision) for item in page.items] == [
            (b"%d" % n, result.revision) for n, result in enumerate(results)
        ]

    ground.run(scenario)


def test_a_chain_of_writes_each_waiting_for_the_last_one(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        async def count(key: str) -> None:
            expected = 0
            for step in range(20):
                result = await store.put(key, b"%d" % step, expected=expected)
                assert result.succeeded
                expected = result.revision

        await asyncio.gather(*(count(f"/chain/{n}") for n in range(5)))
        assert [item.value for item in (await store.range("/chain/")).items] == [b"19"] * 5

    ground.run(scenario)


def test_values_up_to_a_mebibyte_and_empty_ones_are_kept(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        big = bytes(range(256)) * 4096
        await store.put("/big", big, expected=0)
        await store.put("/empty", b"", expected=0)
        page = await store.range("/")
        assert [(item.key, item.value) for item in page.items] == [("/big", big), ("/empty", b"")]

    ground.run(scenario)


def test_a_range_is_the_prefix_in_byte_order(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        keys = ["/p/b", "/p/a", "/p", "/q", "/p/\U0010ffff", "/p/é", "/p/\ud7ff", "/p/\ue000", "/p0", "/o"]
        await fill(store, *keys)
        page = await store.range("/p/")
        wanted = sorted((key for key in keys if key.startswith("/p/")), key=str.encode)
        assert [item.key for item in page.items] == wanted
        assert (page.revision, page.remaining) == (await store.revision(), 0)
        assert [item.key for item in (await store.range("")).items] == sorted(keys)
        assert [item.key for item in (await store.range("/p/\U0010ffff")).items] == ["/p/\U0010ffff"]

    ground.run(scenario)


def test_pages_joined_at_one_revision_are_the_whole_range_of_that_revision(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        keys = [f"/k/{n:03}" for n in range(25)]
        revisions = await fill(store, *keys)
        first = await store.range("/k/", limit=10)
        assert first.remaining == 15
        # The world moves on between the pages.
        await store.delete("/k/012", expected=revisions[12])
        await store.put("/k/020", b"changed", expected=revisions[20])
        await fill(store, "/k/0111", "/k/zzz")
        seen = list(first.items)
        page = first
        while page.remaining:
            following = page.items[-1].key + "\x00"
            page = await store.range("/k/", start=following, limit=10, revision=first.revision)
            seen.extend(page.items)
        assert [item.key for item in seen] == keys
        assert [item.value for item in seen] == [key.encode() for key in keys]

    ground.run(scenario)


def test_a_start_outside_the_prefix_does_not_widen_it(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        await fill(store, "/a/1", "/b/1", "/b/2", "/c/1")
        assert [item.key for item in (await store.range("/b/", start="/a/")).items] == ["/b/1", "/b/2"]
        beyond = await store.range("/b/", start="/c/")
        assert (list(beyond.items), beyond.revision, beyond.remaining) == ([], await store.revision(), 0)
        with pytest.raises(FutureRevision):
            await store.range("/b/", start="/c/", revision=beyond.revision + 1)

    ground.run(scenario)


def test_a_range_at_an_old_revision_sees_that_state(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        empty = await store.revision()
        (created,) = await fill(store, "/a")
        updated = (await store.put("/a", b"new", expected=created)).revision
        await store.delete("/a", expected=updated)
        assert list((await store.range("/a", revision=empty)).items) == []
        assert [item.value for item in (await store.range("/a", revision=created)).items] == [b"/a"]
        at_update = await store.range("/a", revision=updated)
        assert list(at_update.items) == [KeyValue("/a", b"new", *_revisions(created, updated))]
        assert at_update.revision == updated
        assert list((await store.range("/a")).items) == []

    ground.run(scenario)


def _revisions(created: int, modified: int) -> tuple[Revision, Revision]:
    return Revision(created), Revision(modified)


def test_a_range_in_the_future_is_an_error(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        now = await store.revision()
        with pytest.raises(FutureRevision):
            await store.range("/", revision=now + 1)
        with pytest.raises(FutureRevision):
            await store.compact(now + 1)

    ground.run(scenario)


def test_compaction_keeps_the_state_at_its_revision_and_forgets_what_was_before(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        created, other = await fill(store, "/a", "/b")
        updated = (await store.put("/a", b"2", expected=created)).revision
        removed = (await store.delete("/b", expected=other)).revision
        last = (await store.put("/a", b"3", expected=updated)).revision
        await store.compact(removed)
        with pytest.raises(Compacted) as caught:
            await store.range("/", revision=updated)
        assert caught.value.requested == updated
        at_compaction = await store.range("/", revision=removed)
        assert [(item.key, item.value) for item in at_compaction.items] == [("/a", b"2")]
        assert [(item.key, item.value) for item in (await store.range("/")).items] == [("/a", b"3")]
        assert await store.revision() == last
        await store.compact(removed)  # already done
        await store.compact(created)

    ground.run(scenario)


def test_a_watch_delivers_what_happens_after_its_start_once_and_in_order(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/w/", after=await store.revision())
        created = await store.put("/w/a", b"1", expected=0)
        await store.put("/elsewhere", b"", expected=0)
        updated = await store.put("/w/a", b"2", expected=created.revision)
        deleted = await store.delete("/w/a", expected=updated.revision)
        again = await store.put("/w/a", b"3", expected=0)
        assert await read_events(watch, 4) == [
            StoreEvent(created.revision, "/w/a", b"1", True),
            StoreEvent(updated.revision, "/w/a", b"2", False),
            StoreEvent(deleted.revision, "/w/a", None, False),
            StoreEvent(again.revision, "/w/a", b"3", True),
        ]
        assert watch.revision >= again.revision
        assert await is_silent(watch)
        await watch.aclose()

    ground.run(scenario)


def test_a_watch_from_an_old_revision_replays_and_then_follows(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        revisions = await fill(store, "/w/a", "/v/b", "/w/c", "/w/d")
        watch = store.watch("/w/", after=revisions[0])
        assert [event.key for event in await read_events(watch, 2)] == ["/w/c", "/w/d"]
        await fill(store, "/w/e")
        assert [event.key for event in await read_events(watch, 1)] == ["/w/e"]
        whole = store.watch("", after=before)
        assert [event.revision for event in await read_events(whole, 5)] == [*revisions, revisions[-1] + 1]
        await watch.aclose()
        await whole.aclose()

    ground.run(scenario)


def test_a_watch_from_a_future_revision_skips_what_comes_before_it(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/", after=await store.revision() + 2)
        revisions = await fill(store, "/a", "/b", "/c")
        assert [event.revision for event in await read_events(watch, 1)] == revisions[2:]
        await watch.aclose()

    ground.run(scenario)


def test_progress_tells_of_writes_elsewhere(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/quiet/", after=await store.revision())
        (last,) = await fill(store, "/loud/a")
        assert await is_silent(watch)
        assert watch.revision >= last
        await watch.aclose()

    ground.run(scenario)


def test_a_watch_after_a_compacted_revision_says_so(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        first, second, third = await fill(store, "/a", "/b", "/c")
        await store.delete("/a", expected=first)
        await store.compact(third)
        late = store.watch("/", after=second)
        with pytest.raises(Compacted) as caught:
            await next_batch(late)
        assert caught.value.requested == second
        in_time = store.watch("/", after=third)
        (event,) = await read_events(in_time, 1)
        assert event.is_delete
        await late.aclose()
        await in_time.aclose()

    ground.run(scenario)


def test_what_was_compacted_before_the_start_is_refused_with_a_revision_that_can_be_read(
    ground: Ground,
) -> None:
    last = 0

    async def write_and_compact(store: Store) -> None:
        nonlocal last
        revisions = await fill(store, "/a", "/b", "/c")
        last = (await store.delete("/b", expected=revisions[1])).revision
        await store.compact(last)

    async def start_again(store: Store) -> None:
        with pytest.raises(Compacted) as caught:
            await store.range("/", revision=1)
        assert (caught.value.requested, caught.value.compacted) == (1, last)
        oldest = await store.range("/", revision=caught.value.compacted)
        assert [item.key for item in oldest.items] == ["/a", "/c"]
        watch = store.watch("/", after=oldest.revision)
        (following,) = await fill(store, "/d")
        assert [event.revision for event in await read_events(watch, 1)] == [following]
        await watch.aclose()

    ground.run(write_and_compact)
    ground.run(start_again)


def test_compaction_between_the_first_read_and_the_watch_is_noticed_and_a_new_read_helps(
    ground: Ground,
) -> None:
    async def scenario(store: Store) -> None:
        (first,) = await fill(store, "/a")
        page = await store.range("/", revision=first)
        await fill(store, "/b")
        await store.delete("/a", expected=first)
        await store.compact(await store.revision())
        watch = store.watch("/", after=page.revision)
        with pytest.raises(Compacted) as caught:
            await next_batch(watch)
        await watch.aclose()
        page = await store.range("/")
        assert caught.value.compacted <= page.revision
        assert [item.key for item in page.items] == ["/b"]
        watch = store.watch("/", after=page.revision)
        (following,) = await fill(store, "/c")
        assert [event.revision for event in await read_events(watch, 1)] == [following]
        await watch.aclose()

    ground.run(scenario)


def test_compaction_while_a_watch_is_down_is_noticed_if_events_were_lost_and_only_then(
    ground: Ground,
) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/", after=await store.revision())
        (first,) = await fill(store, "/a")
        assert len(await read_events(watch, 1)) == 1
        await watch.aclose()
        await store.compact(first)
        unharmed = store.watch("/", after=first)
        second, third = await fill(store, "/b", "/c")
        assert [event.revision for event in await read_events(unharmed, 2)] == [second, third]
        await unharmed.aclose()
        await store.compact(third)
        harmed = store.watch("/", after=first)
        with pytest.raises(Compacted) as caught:
            await next_batch(harmed)
        assert (caught.value.requested, caught.value.compacted) == (first, third)
        await harmed.aclose()

    ground.run(scenario)


def test_compaction_of_a_reader_that_fell_behind_is_told_to_it(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        slow = store.watch("/", after=before)
        for start in range(0, 10_000, 500):
            await asyncio.gather(*(store.put(f"/{n}", b"", expected=0) for n in range(start, start + 500)))
        await store.compact(before + 9_000)
        with pytest.raises(Compacted) as caught:
            await next_batch(slow)
        assert caught.value.compacted >= before + 9_000
        await slow.aclose()

    ground.run(scenario)


def test_a_watch_that_keeps_up_survives_compaction(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/", after=await store.revision())
        for number in range(5):
            (revision,) = await fill(store, f"/{number}")
            assert [event.revision for event in await read_events(watch, 1)] == [revision]
            await store.compact(revision)
        await watch.aclose()

    ground.run(scenario)


def test_a_slow_reader_gets_every_event_late(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        slow = store.watch("/", after=before)
        for start in range(0, 10_000, 500):
            await asyncio.gather(*(store.put(f"/{n}", b"", expected=0) for n in range(start, start + 500)))
        seen: list[int] = []
        while len(seen) < 10_000:
            seen.extend(event.revision for event in await next_batch(slow))
        assert seen == list(range(before + 1, before + 10_001))
        await slow.aclose()

    ground.run(scenario)


def test_a_closed_watch_ends_even_while_it_is_waited_for(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.revision()
        watch = store.watch("/", after=before)

        async def read_all() -> int:
            return len([batch async for batch in watch if batch])

        reader = asyncio.ensure_future(read_all())
        await store.put("/a", b"", expected=0)
        other = store.watch("/", after=before)
        await read_events(other, 1)
        await other.aclose()
        await watch.aclose()
        await watch.aclose()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reader <= 1

    ground.run(scenario)


def test_a_closed_store_ends_its_watches_and_refuses_everything(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        watch = store.watch("/", after=await store.revision())
        waiting = asyncio.ensure_future(next_batch(watch))
        await store.put("/a", b"", expected=0)
        assert len(await waiting) == 1
        waiting = asyncio.ensure_future(next_batch(watch))
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable):
            await waiting
        with pytest.raises(StoreUnavailable):
            await store.get("/a")
        with pytest.raises(StoreUnavailable):
            await store.put("/a", b"", expected=0)
        with pytest.raises(StoreUnavailable):
            await store.delete("/a", expected=1)
        with pytest.raises(StoreUnavailable):
            await store.range("/")
        with pytest.raises(StoreUnavailable):
            await store.revision()

    ground.run(scenario)


def test_a_store_opened_again_has_what_was_acknowledged(ground: Ground) -> None:
    revisions: list[int] = []

    async def write(store: Store) -> None:
        revisions.extend(await fill(store, "/a", "/b"))
        revisions.append((await store.delete("/b", expected=revisions[1])).revision)

    async def look(store: Store) -> None:
        assert await store.revision() == revisions[2]
        assert [item.mod_revision for item in (await store.range("")).items] == [revisions[0]]
        watch = store.watch("", after=revisions[0])
        assert [event.revision for event in await read_events(watch, 2)] == revisions[1:]
        await watch.aclose()
        refused = await store.put("/a", b"", expected=0)
        assert not refused.succeeded
        updated = await store.put("/a", b"", expected=revisions[0])
        assert updated.revision == revisions[2] + 1

    ground.run(write)
    ground.run(look)


def test_the_size_grows_with_what_is_stored(ground: Ground) -> None:
    async def scenario(store: Store) -> None:
        before = await store.size()
        # Files grow in steps, so not every write shows.
        for number in range(80):
            await store.put(f"/{number}", bytes(1 << 18), expected=0)
            if await store.size() >= before + (1 << 20):
                return
        pytest.fail("20 MiB were written, and the size does not show it")

    ground.run(scenario)


@pytest.mark.parametrize("key", ["", "/a\x00", "/half-a-pair\ud800"])
def test_what_is_no_key_is_never_written(ground: Ground, key: str) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(InvariantBroken):
            await store.put(key, b"", expected=0)
        assert (await store.put("/fine", b"", expected=0)).succeeded

    ground.run(scenario)
