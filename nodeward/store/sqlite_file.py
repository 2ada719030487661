"""The file of the SQLite store: how it is laid out, made, recognised, locked and opened.

In: a path. Out: connections, the index of what is in the file, or an error that names the file and says what
to do. The file is a log: one row per revision, never updated, removed only by compaction.

What must stay true: a file that is not ours, or is damaged, is not written to (it is recognised by plain
reads, and read through a read-only connection before anything may write); a new file appears under its name
complete or not at all; two servers never have the same file open.

Called by `sqlite`, `sqlite_reader` and `sqlite_writer`; calls `interface` and `sqlite_index`.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from nodeward.base.errors import NodewardError
from nodeward.store.interface import StoreCorrupt, StoreUnavailable
from nodeward.store.sqlite_index import Entry, KeyIndex, LogBroken

#: "NdWd": marks a SQLite file as ours
APPLICATION_ID: Final = 0x4E645764
#: changes when the tables change
LAYOUT: Final = 1

#: `create_rv` is 0 in the row of a delete; `prev_rv` is the row this one replaces, 0 if there was no live one.
#: Both tables only grow at their end. Values have a table of their own, so that opening the store and compaction
#: need not wade through them; writing through the view fills both tables in one statement.
_SCHEMA: Final = f"""
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
CREATE TABLE log (
    rv INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    create_rv INTEGER NOT NULL,
    prev_rv INTEGER NOT NULL
);
CREATE TABLE value (rv INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE VIEW written AS
    SELECT rv, key, create_rv, prev_rv, bytes FROM log LEFT JOIN value USING (rv);
CREATE TRIGGER write INSTEAD OF INSERT ON written BEGIN
    INSERT INTO log VALUES (new.rv, new.key, new.create_rv, new.prev_rv);
    INSERT INTO value SELECT new.rv, new.bytes WHERE new.bytes IS NOT NULL;
END;
CREATE TABLE counters (compacted INTEGER NOT NULL, swept INTEGER NOT NULL);
INSERT INTO counters VALUES (0, 0);
COMMIT;
"""

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_BUSY_SECONDS: Final = 30.0
_RESTORE: Final = "restore it from a backup, or move it away to start empty; nothing in it was changed"


class Content(NamedTuple):
    """What is in a file: the newest entry of every key with its history since `compacted`."""

    keys: KeyIndex
    compacted: int
    swept: int


def wal_path(path: Path) -> Path:
    """SQLite's write-ahead log, next to the file."""
    return path.with_name(path.name + "-wal")


def file_bytes(path: Path) -> int:
    """Bytes on the disk: the database and its write-ahead log."""
    total = 0
    for file in (path, wal_path(path)):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


class FileLock:
    """An exclusive claim on a store's path, by way of a file next to it. The kernel drops it when we die.

    Whoever comes second is told that `shown` (the path, if nothing else is said) is in use, and to take `instead`.
    """

    def __init__(self, path: Path, *, shown: Path | None = None, instead: str = "a file of its own") -> None:
        self._path = path.with_name(path.name + ".lock")
        self._shown = shown or path
        self._instead = instead
        self._descriptor = -1

    def acquire(self) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot create {self._path}: {error.strerror}; the store's directory must exist and be writable"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreUnavailable(
                f"{self._shown} is in use by another server (process {holder}); "
                f"stop it, or give this one {self._instead}"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def check_or_create(path: Path) -> None:
    """Make sure that `path` is a file of ours, making an empty one if there is none. Needs the lock."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        header = b""
    except OSError as error:
        raise StoreUnavailable(f"cannot read {path}: {error.strerror}") from error
    if not header:
        leftover = wal_path(path)
        if leftover.exists() and leftover.stat().st_size:
            raise StoreCorrupt(
                f"{leftover} holds writes, but the database it belongs to, {path}, is gone; "
                "put the database back, or move the leftover away to start empty"
            )
        _create(path)
        return
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StoreCorrupt(f"{path} is not a Nodeward store (nor any SQLite database); {_RESTORE}")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise StoreCorrupt(
            f"{path} is a SQLite database of another program, not a Nodeward store; name another file"
        )
    layout = int.from_bytes(header[60:64], "big")
    if layout != LAYOUT:
        raise StoreCorrupt(
            f"{path} has layout {layout}, this version reads layout {LAYOUT}; use the version that wrote it"
        )


def _create(path: Path) -> None:
    """Build the empty store beside its place and move it there in one step."""
    draft = path.with_name(path.name + ".new")
    try:
        for leftover in (draft, wal_path(draft)):
            leftover.unlink(missing_ok=True)
        draft.touch(mode=0o600)  # secrets will be in it; SQLite gives its other files the same mode
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.executescript(_SCHEMA)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StoreUnavailable(f"cannot create {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise explain(error, path) from error


def connect(path: Path, *, mode: str, patience: float = _BUSY_SECONDS) -> sqlite3.Connection:
    """Return a connection in autocommit mode: "ro" to read, "rw" to write durably (never creating a file).

    `patience` is how many seconds it waits for others that have the file locked.
    """
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=patience,
            check_same_thread=False,
            cached_statements=256,
        )
        # FULL: a commit is on the disk when it returns. Checkpoints are made by a thread of their own.
        connection.executescript(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
            "PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY;"
        )
    except sqlite3.Error as error:
        if connection is not None:
            close_quietly(connection)
        raise explain(error, path) from error
    return connection


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Open the writer's connection; a read-only file is an error at once, which SQLite alone would not report."""
    connection = connect(path, mode="rw")
    try:
        connection.executescript("BEGIN IMMEDIATE; ROLLBACK;")
    except sqlite3.Error as error:
        close_quietly(connection)
        raise explain(error, path) from error
    return connection


def load(reader: sqlite3.Connection, path: Path) -> Content:
    """Replay the log; finds most kinds of damage on the way."""
    try:
        counters = reader.execute("SELECT compacted, swept FROM counters").fetchall()
        if len(counters) != 1:
            raise StoreCorrupt(f"{path} is damaged (no counters); {_RESTORE}")
        compacted, swept = counters[0]
        entries: dict[str, Entry] = {}
        for key, created, revision in reader.execute(
            "SELECT key, create_rv, rv FROM log WHERE rv <= ? ORDER BY rv", (compacted,)
        ):
            if created:
                entries[key] = (created, revision)
            else:
                entries.pop(key, None)
        # The newest revision may be a delete that was swept away: then compaction went up to it.
        rows = reader.execute(
            "SELECT rv, key, create_rv, prev_rv FROM log WHERE rv > ? ORDER BY rv", (compacted,)
        )
        keys = KeyIndex(entries, compacted, rows)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    except LogBroken as error:
        raise StoreCorrupt(f"{path} is damaged (revision {error} does not follow); {_RESTORE}") from error
    return Content(keys, compacted, swept)


def _is_damage(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(error: Exception, path: Path) -> NodewardError:
    """Return what a failed call to SQLite means for whoever asked the store."""
    if _is_damage(error):
        return StoreCorrupt(f"{path} is damaged ({error}); {_RESTORE}")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreUnavailable(f"{path}: {error} ({name})")


def close_quietly(connection: sqlite3.Connection) -> None:
    """Close a connection whose trouble, if any, has been told already."""
    with suppress(sqlite3.Error):
        connection.close()
