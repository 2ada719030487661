"""The durable store in one file: SQLite, group commit, nothing to install.

In: conditional writes. Out: pages, watches. All decisions are taken on the event loop's thread against an
index in memory (key -> create and mod revision) that already counts the writes on their way to the disk; the
writer's thread only appends rows (`sqlite_writer.py`). Values are not kept in memory, but for those not
committed yet and the most recent events. Reads are made on the loop's thread in short pieces: SQLite
gives up the interpreter lock at every row, so a reading thread and the loop would fight over it row by row.

What must stay true: revisions are contiguous; `_feed.revision` is the newest committed one and reads go no
further; a write is answered, and watchers are told, only after its transaction is on the disk; when a
transaction fails, every write not yet on the disk fails and the index is again what is on the disk.

Called by `opening`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Final

from nodeward.base.errors import NodewardError
from nodeward.base.invariant import invariant
from nodeward.store.feed import Feed, let_others_run
from nodeward.store.interface import (
    Compacted,
    FutureRevision,
    KeyValue,
    Page,
    Revision,
    StoreClosed,
    StoreEvent,
    StoreWatch,
    ValueTooLarge,
    WriteResult,
)
from nodeward.store.keys import check_key, prefix_end
from nodeward.store.recent import RecentEvents
from nodeward.store.sqlite_file import (
    FileLock,
    check_or_create,
    close_quietly,
    connect,
    file_bytes,
    load,
)
from nodeward.store.sqlite_index import Entry
from nodeward.store.sqlite_reader import PIECE_ROWS, SqliteReader
from nodeward.store.sqlite_writer import Row, RowBatch, SqliteWriter

_LARGEST_BYTES: Final = 256 << 20


class _Write:
    """A write on its way to the disk."""

    __slots__ = ("future", "row")

    def __init__(self, row: Row, future: asyncio.Future[None]) -> None:
        self.row = row
        self.future = future


class SqliteStore:
    """A `Store` in the file `path`. `hold` keeps a virtual clock from running on while the writer's thread works."""

    def __init__(
        self, path: str | Path, *, hold: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._path = Path(path)
        self._hold = hold
        self._lock = FileLock(self._path)
        self._opened = False

    @property
    def is_shared(self) -> bool:
        return False

    async def open(self) -> None:
        invariant(not self._opened, "a store is opened once; make a new one over the same file")
        self._lock.acquire()
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            check_or_create(self._path)
            connection = connect(self._path, mode="ro")
            undo.callback(close_quietly, connection)
            content = load(connection, self._path)
            self._loop = asyncio.get_running_loop()
            self._reader = SqliteReader(connection, self._path)
            self._writer = SqliteWriter(
                self._path,
                self._loop,
                swept=content.swept,
                committed=self._on_committed,
                failed=self._on_failed,
            )
            undo.pop_all()
        self._keys = content.keys  # as they will be when all that is on its way has arrived
        self._compacted = content.compacted
        self._swept = content.swept  # how far the writer may remove what compaction forgot
        self._feed = Feed(self, Revision(content.keys.newest))
        self._recent = RecentEvents(content.keys.newest)
        self._outbox: list[_Write] = []  # not handed to the writer yet
        self._in_flight: deque[_Write] = deque()  # not known to be on the disk, in revision order
        self._pending: dict[str, _Write] = {}  # the newest of those, by key
        self._settled: list[asyncio.Future[None]] = []  # woken when a transaction ends
        self._generation = 0
        self._reading: list[int] = []  # revisions that must not be swept away just now
        self._holding = ExitStack()
        self._opened = True
        self._writer.start()
        self._forget()

    async def close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        self._flush()
        with self._hold():
            await self._writer.drain()
            self._feed.close()
            self._wake_settled()
            self._reader.close()
            await self._writer.stop()
        self._lock.release()

    def _check_open(self) -> None:
        if not self._opened:
            raise StoreClosed(f"the store {self._path} is closed")

    # Writing.

    async def put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        self._check_open()
        if len(value) > _LARGEST_BYTES:
            raise ValueTooLarge(f"{len(value)} bytes for {key}; SQLite takes {_LARGEST_BYTES}")
        while True:
            entry = self._keys.get(key)
            if (entry[1] if entry is not None else 0) == expected:
                break
            if key not in self._pending:
                return WriteResult(False, self._feed.revision, self._read(key, entry))
            await self._transaction_end()
        if entry is None:
            check_key(key)
        created, revision = self._keys.put(key, entry)
        await self._submit((revision, key, created, expected, value))
        return WriteResult(True, Revision(revision), None)

    async def delete(self, key: str, *, expected: int) -> WriteResult:
        self._check_open()
        while True:
            entry = self._keys.get(key)
            if entry is not None and entry[1] == expected:
                break
            if key not in self._pending:
                return WriteResult(False, self._feed.revision, self._read(key, entry))
            await self._transaction_end()
        removed = self._read(key, entry)
        revision = self._keys.delete(key, entry)
        await self._submit((revision, key, 0, expected, None))
        return WriteResult(True, Revision(revision), removed)

    def _read(self, key: str, entry: Entry | None) -> KeyValue | None:
        """Return the version the index speaks of, from the disk or from among those on their way there."""
        if entry is None:
            return None
        pending = self._pending.get(key)
        # A pending write of a key that is in the index is a put, so it has a value.
        value = self._reader.value(entry[1]) if pending is None else pending.row[4] or b""
        return _key_value(key, entry, value)

    def _submit(self, row: Row) -> asyncio.Future[None]:
        """Send a row on its way. All rows of one turn of the loop are handed to the writer together."""
        future = self._loop.create_future()
        write = _Write(row, future)
        self._pending[row[1]] = write
        if not self._in_flight:
            self._holding.enter_context(self._hold())
        self._in_flight.append(write)
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(write)
        return future

    def _flush(self) -> None:
        outbox, self._outbox = self._outbox, []
        if outbox:
            rows = [write.row for write in outbox]
            size = sum([len(row[4]) for row in rows if row[4] is not None])
            self._writer.write(RowBatch(rows, size, self._generation))

    def _on_committed(self, count: int) -> None:
        """Handle that the oldest `count` writes are durable: notify watchers, then writers."""
        in_flight, pending = self._in_flight, self._pending
        done = [in_flight.popleft() for _ in range(count)]
        events = []
        for write in done:
            revision, key, created, _, value = write.row
            events.append(StoreEvent(Revision(revision), key, value, created == revision))
            if pending.get(key) is write:
                del pending[key]
        newest = events[-1].revision
        self._recent.extend(events, newest)
        self._feed.publish(events, newest)
        for write in done:
            if not write.future.done():
                write.future.set_result(None)
        self._end_transaction()

    def _on_failed(self, reason: NodewardError) -> None:
        """Handle a failed transaction: no write in flight was committed, nor will be."""
        failed, self._in_flight = self._in_flight, deque()
        self._pending.clear()
        self._outbox.clear()
        self._keys.undo_to(self._feed.revision)
        self._generation += 1
        for write in failed:
            if not write.future.done():
                write.future.set_exception(type(reason)(*reason.args))
        self._end_transaction()

    def _end_transaction(self) -> None:
        if not self._in_flight:
            self._holding.close()
        self._wake_settled()

    def _wake_settled(self) -> None:
        settled, self._settled = self._settled, []
        for waiter in settled:
            if not waiter.done():
                waiter.set_result(None)

    async def _transaction_end(self) -> None:
        """Wait until the writer has finished a transaction, well or badly."""
        waiter = self._loop.create_future()
        self._settled.append(waiter)
        await waiter
        self._check_open()

    # Reading.

    async def get(self, key: str) -> KeyValue | None:
        self._check_open()
        if key not in self._pending:
            return self._read(key, self._keys.get(key))
        entry = self._keys.entry_at(key, self._feed.revision)
        return _key_value(key, entry, self._reader.value(entry[1])) if entry is not None else None

    async def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        self._check_open()
        current = self._feed.revision
        if revision > current:
            raise FutureRevision(revision, current)
        if revision and revision < self._compacted:
            raise Compacted(revision, self._compacted)
        at = Revision(revision or current)
        self._reading.append(at)
        try:
            found, following = await self._keys.range_at(max(prefix, start), prefix_end(prefix), at, limit)
            values: list[bytes] = []
            while len(values) < len(found):
                piece = found[len(values) : len(values) + PIECE_ROWS]
                values.extend(self._reader.values([entry[1] for _, entry in piece]))
                if len(values) < len(found):
                    await let_others_run()
                    self._check_open()
        finally:
            self._reading.remove(at)
            self._forget()
        items = [_key_value(key, entry, value) for (key, entry), value in zip(found, values, strict=True)]
        return Page(items, at, following)

    def watch(self, prefix: str, *, after: int) -> StoreWatch:
        self._check_open()
        return self._feed.watch(prefix, after)

    async def events_after(self, prefix: str, after: int, step: int) -> tuple[Sequence[StoreEvent], Revision]:
        if after < self._compacted:
            raise Compacted(after, self._compacted)
        if after < self._recent.base:
            return self._reader.log(prefix, after, min(after + step, self._feed.revision))
        return self._recent.after(prefix, after), self._recent.newest

    async def revision(self) -> Revision:
        self._check_open()
        return self._feed.revision

    # Upkeep.

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self._feed.revision:
            raise FutureRevision(revision, self._feed.revision)
        if revision <= self._compacted:
            return
        with self._hold():
            await self._writer.compact(revision)
        self._compacted = max(self._compacted, revision)
        self._forget()

    def _forget(self) -> None:
        """Let go of what neither the newest compaction nor a read under way needs."""
        until = min([self._compacted, *self._reading])
        if until > self._swept and self._opened:
            self._swept = until
            self._keys.forget_before(until)
            self._writer.sweep(until)

    async def size(self) -> int:
        """Bytes of the database file and its write-ahead log."""
        self._check_open()
        return file_bytes(self._path)


def _key_value(key: str, entry: Entry, value: bytes) -> KeyValue:
    return KeyValue(key, value, Revision(entry[0]), Revision(entry[1]))
