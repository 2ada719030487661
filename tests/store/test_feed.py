"""Watches of a feed when things go wrong: events lost upstream, readers that sleep, progress that has to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from nodeward.store.feed import UNREAD_LIMIT, Feed
from nodeward.store.interface import Compacted, Revision, StoreEvent
from nodeward.store.recent import RecentEvents


class Upstream:
    """A history that is nothing but recent events, with a newest revision that may be ahead of the feed."""

    def __init__(self, revision: int = 1, *, max_events: int = 4096) -> None:
        self.newest = revision
        self.recent = RecentEvents(revision, max_events=max_events)

    async def revision(self) -> Revision:
        return Revision(self.newest)

    async def events_after(self, prefix: str, after: int, step: int) -> tuple[Sequence[StoreEvent], Revision]:
        if after < self.recent.base:
            raise Compacted(after, self.recent.base)
        return self.recent.after(prefix, after), self.recent.newest


def publish(feed: Feed, upstream: Upstream, *keys: str) -> None:
    events = [StoreEvent(Revision(feed.revision + 1 + n), key, b"", True) for n, key in enumerate(keys)]
    upstream.newest = events[-1].revision
    upstream.recent.extend(events, events[-1].revision)
    feed.publish(events, events[-1].revision)


def test_a_live_watch_ends_when_events_it_needed_are_lost_but_first_delivers_what_it_has() -> None:
    async def play() -> None:
        upstream = Upstream()
        feed = Feed(upstream)
        watch = feed.watch("/", 1)
        from_later = feed.watch("/", 50)
        publish(feed, upstream, "/a")
        feed.lose_until(Revision(50))
        publish(feed, upstream, "/b")
        assert [event.key for event in await anext(watch)] == ["/a"]
        with pytest.raises(Compacted) as caught:
            await anext(watch)
        assert (caught.value.requested, caught.value.compacted) == (2, 50)
        assert [event.revision for event in await anext(from_later)] == [51]

    asyncio.run(play())


def test_progress_waits_until_the_feed_has_come_to_the_newest_revision() -> None:
    async def play() -> None:
        upstream = Upstream()
        feed = Feed(upstream)
        watch = feed.watch("/quiet/", 1)
        upstream.newest = 3
        await watch.request_progress()
        reading = asyncio.ensure_future(anext(watch))
        feed.publish([StoreEvent(Revision(2), "/loud/a", b"", True)], Revision(2))
        await asyncio.wait({reading}, timeout=0)
        assert not reading.done()
        feed.publish([StoreEvent(Revision(3), "/loud/b", b"", True)], Revision(3))
        assert list(await reading) == []
        assert watch.revision == 3

    asyncio.run(play())


def test_the_lowest_revision_asked_for_is_told_when_it_is_reached() -> None:
    async def play() -> None:
        feed = Feed(Upstream())
        watch = feed.watch("/quiet/", 1)
        for revision in (4, 3, 9):
            watch.progress_at(revision)
        reading = asyncio.ensure_future(anext(watch))
        feed.publish([], Revision(2))
        await asyncio.wait({reading}, timeout=0)
        assert not reading.done()
        feed.publish([], Revision(3))
        assert list(await reading) == []
        assert watch.revision == 3
        watch.progress_at(3)
        assert list(await anext(watch)) == []
        watch.progress_at(5)
        reading = asyncio.ensure_future(anext(watch))
        feed.publish([StoreEvent(Revision(4), "/quiet/a", b"", True)], Revision(4))
        assert [event.revision for event in await reading] == [4]
        feed.publish([], Revision(5))
        assert list(await anext(watch)) == []

    asyncio.run(play())


def test_a_reader_that_sleeps_is_cut_off_from_live_events_and_reads_history_later() -> None:
    async def play() -> None:
        upstream = Upstream(max_events=UNREAD_LIMIT + 10)
        feed = Feed(upstream)
        watch = feed.watch("/", 1)
        for _ in range(UNREAD_LIMIT + 1):
            publish(feed, upstream, "/a")
        assert len(watch._unread) == 0
        assert watch.revision == 1
        assert len(await anext(watch)) == UNREAD_LIMIT + 1
        publish(feed, upstream, "/b")
        assert [event.key for event in await anext(watch)] == ["/b"]

    asyncio.run(play())


def test_a_reader_that_sleeps_too_long_is_told_so() -> None:
    async def play() -> None:
        upstream = Upstream(max_events=10)
        feed = Feed(upstream)
        watch = feed.watch("/", 1)
        for _ in range(UNREAD_LIMIT + 1):
            publish(feed, upstream, "/a")
        with pytest.raises(Compacted):
            await anext(watch)

    asyncio.run(play())


def test_prefixes_that_contain_each_other_each_get_an_event_once() -> None:
    async def play() -> None:
        upstream = Upstream()
        feed = Feed(upstream)
        watches = [feed.watch(prefix, 1) for prefix in ("", "/", "/a", "/a/b", "/a", "/a/b/c/d")]
        publish(feed, upstream, "/a/b", "/c")
        counts = [len(watch._unread) for watch in watches]
        assert counts == [2, 2, 1, 1, 1, 0]
        await watches[2].aclose()
        publish(feed, upstream, "/a/b")
        assert [len(watch._unread) for watch in watches] == [3, 3, 0, 2, 2, 0]

    asyncio.run(play())


def test_recent_events_are_bounded_by_number_and_by_bytes() -> None:
    by_number = RecentEvents(1, max_events=3)
    by_bytes = RecentEvents(1, max_bytes=10)
    for revision in range(2, 12):
        event = StoreEvent(Revision(revision), "/a", b"1234", True)
        by_number.extend([event], event.revision)
        by_bytes.extend([event], event.revision)
    assert (by_number.base, [event.revision for event in by_number.after("/", 8)]) == (8, [9, 10, 11])
    assert (by_bytes.base, [event.revision for event in by_bytes.after("/", 9)]) == (9, [10, 11])
