"""The two threads of the SQLite store: one that writes, one that checkpoints.

In: batches of rows from the event loop, in revision order, and errands (compaction, closing). Out: one call
on the loop per transaction, saying that it is durable or that it failed. The writer takes all that has queued
up into one transaction (group commit) and between transactions forgets a bounded piece of compacted history.

What must stay true: rows reach the disk in revision order, none is skipped: once a transaction fails,
everything handed over before the loop has heard of it (an older *generation*) is dropped, because it may
build on what failed. A statement is one trip into SQLite for a whole batch: each trip gives up the
interpreter lock and may wait long to get it back.

Called by `sqlite`; calls `sqlite_file`.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from nodeward.base.errors import NodewardError
from nodeward.store.sqlite_file import close_quietly, connect, connect_to_write, explain, wal_path

#: revision, key, create revision (0: delete), replaced revision (0: none), value
Row = tuple[int, str, int, int, bytes | None]

#: rows and bytes one transaction may have; more waits for the next
_TRANSACTION_ROWS: Final = 2048
_TRANSACTION_BYTES: Final = 16 << 20
#: rows one statement may have; statements are prepared once per number of rows
_STATEMENT_ROWS: Final = 128
#: revisions forgotten in one go
_SWEEP_STEP: Final = 128

_REPLACED: Final = "SELECT prev_rv FROM log WHERE rv > ? AND rv <= ? AND prev_rv > 0"

_CHECKPOINT_SECONDS: Final = 0.1
#: a reader from outside (somebody making a backup) is not waited for longer than this, and not again for a while
_CHECKPOINT_PATIENCE_SECONDS: Final = 0.05
_CHECKPOINT_RETRY_SECONDS: Final = 2.0
#: pages in the write-ahead log above which it is started again
_WAL_PAGES: Final = 1024
#: size above which its file is cut back as well
_WAL_BYTES: Final = 256 << 20


class RowBatch:
    """Rows handed over together."""

    __slots__ = ("generation", "rows", "size")

    def __init__(self, rows: list[Row], size: int, generation: int) -> None:
        self.rows = rows
        self.size = size
        self.generation = generation


class WriterTask:
    """Something other than rows to do on the writer's thread; the future hears when it is done."""

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], None], future: asyncio.Future[None]) -> None:
        self.work = work
        self.future = future


class SqliteWriter:
    """The thread that owns the writing connection. `committed` and `failed` are called on the loop."""

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        *,
        swept: int,
        committed: Callable[[int], None],
        failed: Callable[[NodewardError], None],
    ) -> None:
        self._path = path
        self._loop = loop
        self._committed = committed
        self._failed = failed
        self._connection = connect_to_write(path)
        self._jobs: queue.SimpleQueue[RowBatch | WriterTask] = queue.SimpleQueue()
        self._generation = 0
        self._swept = swept
        self._sweep_until = swept
        self._stopping = False
        self._checkpointer = Checkpointer(path)
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)

    def start(self) -> None:
        self._checkpointer.start()
        self._thread.start()

    def write(self, batch: RowBatch) -> None:
        self._jobs.put(batch)

    async def compact(self, revision: int) -> None:
        """Note durably that history before `revision` is gone."""
        await self._send(
            lambda: self._execute("UPDATE counters SET compacted = MAX(compacted, ?)", (revision,))
        )

    def sweep(self, until: int) -> None:
        """Allow removal of rows not needed at or after revision `until`."""
        self._sweep_until = until
        self._jobs.put(RowBatch([], 0, 0))

    async def drain(self) -> None:
        """Wait until everything handed over before has been dealt with."""
        await self._send(lambda: None)

    async def stop(self) -> None:
        """End both threads and close their connections; the last one closed empties the write-ahead log."""
        await self._send(self._shut)

    async def _send(self, work: Callable[[], None]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put(WriterTask(work, future))
        await future

    # All below runs on the writer's thread.

    def _run(self) -> None:
        while not self._stopping:
            job = self._next_job()
            if isinstance(job, RowBatch):
                following = self._write_all(job)
                if following is not None:
                    self._do(following)
            elif job is not None:
                self._do(job)
            if not self._stopping and self._swept < self._sweep_until:
                self._sweep_some()

    def _next_job(self) -> RowBatch | WriterTask | None:
        """Return the next job, waiting for it only if there is nothing to sweep."""
        if self._swept >= self._sweep_until:
            return self._jobs.get()
        try:
            return self._jobs.get_nowait()
        except queue.Empty:
            return None

    def _write_all(self, first: RowBatch) -> WriterTask | None:
        """Write everything that is queued, in one transaction; gives back the errand that came after it, if any."""
        rows: list[Row] = []
        size = 0
        job: RowBatch | WriterTask = first
        errand: WriterTask | None = None
        while True:
            if isinstance(job, WriterTask):
                errand = job
                break
            if job.generation == self._generation:
                rows.extend(job.rows)
                size += job.size
            if len(rows) >= _TRANSACTION_ROWS or size >= _TRANSACTION_BYTES:
                break
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
        if rows:
            with self._checkpointer.turn:
                self._write(rows)
        return errand

    def _write(self, rows: list[Row]) -> None:
        try:
            if len(rows) <= _STATEMENT_ROWS:
                self._insert(rows)  # a single statement is a transaction of its own
            else:
                self._execute("BEGIN IMMEDIATE")
                for start in range(0, len(rows), _STATEMENT_ROWS):
                    self._insert(rows[start : start + _STATEMENT_ROWS])
                self._execute("COMMIT")
        except (sqlite3.Error, MemoryError) as error:
            if not self._is_on_disk(rows[-1][0]):
                self._generation += 1
                self._post(self._failed, explain(error, self._path))
                return
        self._post(self._committed, len(rows))
        self._checkpointer.wake()

    def _insert(self, rows: list[Row]) -> None:
        self._connection.execute(_INSERTS[len(rows)], tuple(chain.from_iterable(rows)))

    def _execute(self, statement: str, parameters: tuple[int, ...] = ()) -> None:
        self._connection.execute(statement, parameters)

    def _is_on_disk(self, revision: int) -> bool:
        """After an error: roll back what is open, and see whether the commit took place nevertheless."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._execute("ROLLBACK")
            found = self._connection.execute("SELECT 1 FROM log WHERE rv = ?", (revision,)).fetchone()
            return found is not None
        return False

    def _sweep_some(self) -> None:
        """Remove what the next few revisions replaced, and deletes among them: nothing at or after them needs it."""
        after = self._swept
        until = min(after + _SWEEP_STEP, self._sweep_until)
        try:
            self._execute("BEGIN IMMEDIATE")
            self._execute(f"DELETE FROM value WHERE rv IN ({_REPLACED})", (after, until))
            self._execute(f"DELETE FROM log WHERE rv IN ({_REPLACED})", (after, until))
            self._execute("DELETE FROM log WHERE rv > ? AND rv <= ? AND create_rv = 0", (after, until))
            self._execute("UPDATE counters SET swept = ?", (until,))
            self._execute("COMMIT")
        except sqlite3.Error:
            # No room to make room: go on when the next compaction asks for it. Nothing depends on the sweep.
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._execute("ROLLBACK")
            self._sweep_until = after
            return
        self._swept = until
        self._checkpointer.wake()

    def _do(self, errand: WriterTask) -> None:
        failure: NodewardError | None = None
        try:
            errand.work()
        except sqlite3.Error as error:
            failure = explain(error, self._path)
        self._post(_settle, errand.future, failure)

    def _shut(self) -> None:
        self._stopping = True
        self._checkpointer.stop()
        close_quietly(self._connection)

    def _post(self, callback: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(callback, *arguments)


def _settle(future: asyncio.Future[None], failure: NodewardError | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)


_INSERTS: Final = [
    "INSERT INTO written (rv, key, create_rv, prev_rv, bytes) VALUES "
    + ", ".join(["(?, ?, ?, ?, ?)"] * count)
    for count in range(_STATEMENT_ROWS + 1)
]


class Checkpointer:
    """Copies the write-ahead log into the database every 100 ms while there are writes.

    Almost all of it is copied while the writer goes on writing. Only when the log has become long is the writer held up
    for the last few pages, so that it starts the log from its beginning again: a log that is overwritten
    costs half as much to flush as one that grows.
    """

    def __init__(self, path: Path) -> None:
        #: held during a transaction, and while the log is brought back to its beginning
        self.turn = threading.Lock()
        self._wal = wal_path(path)
        self._connection = connect(path, mode="rw", patience=_CHECKPOINT_PATIENCE_SECONDS)
        self._busy = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sqlite-checkpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        if not self._busy.is_set():
            self._busy.set()

    def stop(self) -> None:
        self._stop.set()
        self._busy.set()
        self._thread.join()
        close_quietly(self._connection)

    def _run(self) -> None:
        pause = _CHECKPOINT_SECONDS
        while True:
            self._busy.wait()
            if self._stop.wait(pause):
                return
            self._busy.clear()
            pause = _CHECKPOINT_SECONDS
            try:
                is_hindered = self._copy()
            except (sqlite3.Error, OSError):
                is_hindered = True  # no room: everything stays in the log
            if is_hindered:
                pause = _CHECKPOINT_RETRY_SECONDS
                self._busy.set()

    def _copy(self) -> bool:
        """Copy the log, and start it again if it is long; whether somebody is in the way of that."""
        _, pages = self._checkpoint("PASSIVE")
        if pages < _WAL_PAGES:
            return False
        self._checkpoint("PASSIVE")  # what was written meanwhile, so that little is left
        is_swollen = os.stat(self._wal).st_size > _WAL_BYTES
        with self.turn:
            is_hindered, _ = self._checkpoint("TRUNCATE" if is_swollen else "RESTART")
        return is_hindered

    def _checkpoint(self, mode: str) -> tuple[bool, int]:
        """Copy pages; whether somebody was in the way, and how many pages there are in the log."""
        is_hindered, pages, _ = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return bool(is_hindered), int(pages)
