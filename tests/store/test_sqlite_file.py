"""What becomes of files that are not ours, damaged, in use, or half there."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from nodeward.base.errors import NodewardError
from nodeward.store.interface import StoreCorrupt, StoreUnavailable
from nodeward.store.sqlite import SqliteStore


def fill(file: Path, count: int = 200) -> None:
    async def play() -> None:
        store = SqliteStore(file)
        await store.open()
        await asyncio.gather(*(store.put(f"/k/{n:04}", b"v" * 2000, expected=0) for n in range(count)))
        await store.close()

    asyncio.run(play())


def read_all(file: Path) -> int:
    """How many keys there are; raises what opening and reading raise."""

    async def play() -> int:
        store = SqliteStore(file)
        await store.open()
        try:
            return len((await store.range("")).items)
        finally:
            await store.close()

    return asyncio.run(play())


def refused(file: Path, kind: type[NodewardError]) -> str:
    """Opening is refused, the file stays as it is byte for byte; what the error says."""
    before = {
        path.name: path.read_bytes() for path in file.parent.iterdir() if path.name.startswith(file.name)
    }
    with pytest.raises(kind) as caught:
        read_all(file)
    for name, content in before.items():
        assert (file.parent / name).read_bytes() == content, f"{name} was changed"
    return str(caught.value)


def test_a_text_file_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"Buy milk.\n" * 100)
    message = refused(file, StoreCorrupt)
    assert str(file) in message
    assert "not a Nodeward store" in message


def test_a_short_file_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(b"SQLite format 3\x00")
    assert str(file) in refused(file, StoreCorrupt)


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE log (rv INTEGER PRIMARY KEY, key TEXT)")
    connection.commit()
    connection.close()
    assert "another program" in refused(file, StoreCorrupt)


def test_a_newer_layout_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    fill(file, 1)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "layout 99" in refused(file, StoreCorrupt)


@pytest.mark.parametrize("keep_share", [0.1, 0.5, 0.9])
def test_a_file_cut_short_is_refused_or_found_out_when_read(tmp_path: Path, keep_share: float) -> None:
    file = tmp_path / "store.db"
    fill(file)
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * keep_share)])
    assert str(file) in refused(file, StoreCorrupt)


def test_damaged_pages_are_found_out_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    fill(file)
    content = bytearray(file.read_bytes())
    for start in range(8192, len(content), 8192):
        content[start : start + 64] = b"\xff" * 64
    file.write_bytes(content)
    message = refused(file, StoreCorrupt)
    assert str(file) in message
    assert "restore" in message


def test_a_log_with_a_missing_revision_is_refused_untouched(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    fill(file, 5)
    connection = sqlite3.connect(file)
    connection.execute("DELETE FROM log WHERE rv = 3")
    connection.commit()
    connection.close()
    assert "does not follow" in refused(file, StoreCorrupt)


def test_a_write_ahead_log_without_its_database_is_not_thrown_away(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    (tmp_path / "store.db-wal").write_bytes(b"writes that were acknowledged")
    assert "store.db-wal" in refused(file, StoreCorrupt)
    assert not file.exists()


def test_an_empty_file_becomes_an_empty_store(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.touch()
    assert read_all(file) == 0
    fill(file, 3)
    assert read_all(file) == 3


def test_a_draft_left_by_a_crash_does_not_matter(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    (tmp_path / "store.db.new").write_bytes(b"half a database")
    fill(file, 3)
    assert read_all(file) == 3


def test_a_copy_made_while_the_store_is_open_holds_what_was_acknowledged(tmp_path: Path) -> None:
    """The file and its write-ahead log, as a crash of the machine would leave them."""
    file = tmp_path / "store.db"
    copy = tmp_path / "copy.db"

    async def play() -> None:
        store = SqliteStore(file)
        await store.open()
        for number in range(20):
            await store.put(f"/{number}", b"", expected=0)
        shutil.copy(file, copy)
        shutil.copy(tmp_path / "store.db-wal", tmp_path / "copy.db-wal")
        await store.close()

    asyncio.run(play())
    assert read_all(copy) == 20


def test_two_servers_cannot_open_one_file(tmp_path: Path) -> None:
    file = tmp_path / "store.db"

    async def play() -> None:
        first = SqliteStore(file)
        await first.open()
        second = SqliteStore(file)
        with pytest.raises(StoreUnavailable, match=r"store\.db is in use by another server \(process \d+\)"):
            await second.open()
        await first.put("/a", b"", expected=0)
        await first.close()
        await second.open()
        assert await second.get("/a") is not None
        await second.close()

    asyncio.run(play())


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="must exist"):
        read_all(tmp_path / "nowhere" / "store.db")


def test_a_store_that_was_refused_can_be_opened_once_the_trouble_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(b"not a store")

    async def play() -> None:
        store = SqliteStore(file)
        with pytest.raises(StoreCorrupt):
            await store.open()
        file.unlink()
        await store.open()
        assert (await store.put("/a", b"", expected=0)).succeeded
        await store.close()

    asyncio.run(play())


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    modes: dict[str, int] = {}

    async def play() -> None:
        store = SqliteStore(file)
        await store.open()
        await store.put("/secret", b"", expected=0)
        modes.update(modes_in(tmp_path))
        await store.close()

    asyncio.run(play())
    assert set(modes.values()) == {0o600}
    assert {"store.db", "store.db-wal", "store.db.lock"} <= set(modes)


def modes_in(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
