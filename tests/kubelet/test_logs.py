"""Container logs: lines in CRI format, the last of them, those since, and what is written while somebody follows."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.errors import WorldError
from nodeward.base.timestamp import parse_rfc3339
from nodeward.kubelet.log_files import parse_line, shown_stamp, tail_start
from nodeward.kubelet.logs import read_log
from nodeward.kubelet.runtime.interface import LogOptions
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual


def line(second: int, text: str, *, stream: str = "stdout", tag: str = "F") -> str:
    return f"2026-11-15T06:00:{second:02d}.5Z {stream} {tag} {text}\n"


THREE = line(1, "one") + line(2, "two", stream="stderr") + line(3, "three")


def read(path: Path, options: LogOptions | None = None) -> bytes:
    async def read_all(clock: VirtualClock) -> bytes:
        return b"".join([text async for _, text in read_log(str(path), options or LogOptions(), clock)])

    return run_virtual(read_all)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_text(THREE)
    return path


def test_a_log_is_given_without_times_and_streams(log: Path) -> None:
    assert read(log) == b"one\ntwo\nthree\n"


def test_parts_of_a_long_line_are_one_line_again(log: Path) -> None:
    log.write_text(line(1, "be", tag="P") + line(1, "gin", tag="P:x") + line(2, "ning") + line(3, "next"))
    assert read(log) == b"beginning\nnext\n"


def test_times_are_shown_once_a_line_and_with_nine_digits(log: Path) -> None:
    log.write_text(line(1, "be", tag="P") + line(2, "gin") + line(3, "next"))
    assert read(log, LogOptions(has_timestamps=True)) == (
        b"2026-11-15T06:00:01.500000000Z begin\n2026-11-15T06:00:03.500000000Z next\n"
    )


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        (b"2026-11-15T06:00:01Z", b"2026-11-15T06:00:01.000000000Z"),
        (b"2026-11-15T06:00:01.123456789+02:00", b"2026-11-15T06:00:01.123456789+02:00"),
    ],
)
def test_times_keep_their_zone(stamp: bytes, shown: bytes) -> None:
    assert shown_stamp(stamp) == shown


@pytest.mark.parametrize(
    ("lines", "shown"), [(0, b""), (1, b"three\n"), (2, b"two\nthree\n"), (9, b"one\ntwo\nthree\n")]
)
def test_the_last_lines_are_given(log: Path, lines: int, shown: bytes) -> None:
    assert read(log, LogOptions(tail_lines=lines)) == shown


def test_no_more_bytes_are_given_than_asked_for(log: Path) -> None:
    assert read(log, LogOptions(limit_bytes=6)) == b"one\ntw"


def test_older_lines_are_left_out(log: Path) -> None:
    assert read(log, LogOptions(since_ns=parse_rfc3339("2026-11-15T06:00:02Z"))) == b"two\nthree\n"


def test_one_stream_can_be_asked_for(log: Path) -> None:
    assert read(log, LogOptions(streams=frozenset({"stderr"}))) == b"two\n"


def test_a_last_line_without_end_is_given_too(log: Path) -> None:
    log.write_text(THREE + "2026-11-15T06:00:04Z stdout F cut")
    assert read(log) == b"one\ntwo\nthree\ncut"


def test_what_is_no_log_line_is_passed_over(log: Path) -> None:
    log.write_bytes(b"garbage\n\n\xff\xfe stdout F x\n2026-11-15T06:00:04Z stdin F x\n" + THREE.encode())
    assert read(log) == b"one\ntwo\nthree\n"


def test_carriage_returns_are_text(log: Path) -> None:
    log.write_text(line(1, "10%\r20%\r"), newline="")
    assert read(log) == b"10%\r20%\r\n"


def test_a_line_longer_than_a_block_is_whole(log: Path) -> None:
    text = "x" * 200_000
    log.write_text(line(1, text) + line(2, "y"))
    assert read(log) == text.encode() + b"\ny\n"


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r'failed to open log file ".*/7.log": no such file or directory'):
        read(tmp_path / "7.log")


def write(path: Path, text: str, *, rotates: bool = False) -> None:
    if rotates:
        path.rename(path.with_suffix(".old"))
    with path.open("a") as file:
        file.write(text)


def follow(path: Path, *steps: str, rotates: bool = False, options: LogOptions | None = None) -> bytes:
    """Write one text after the other under the eyes of who follows; then the container ends."""

    async def run(clock: VirtualClock) -> bytes:
        running = True
        got: list[bytes] = []

        async def reader() -> None:
            source = read_log(str(path), options or LogOptions(follow=True), clock, lambda: running)
            got.extend([text async for _, text in source])

        task = asyncio.create_task(reader())
        for step in steps:
            await clock.sleep(1)
            write(path, step, rotates=rotates)
        await clock.sleep(1)
        assert not task.done(), "it must go on while the container runs"
        write(path, line(9, "last words"))
        running = False
        await task
        return b"".join(got)

    return run_virtual(run)


def test_following_gives_what_is_written_until_the_container_has_ended(log: Path) -> None:
    assert follow(log, line(4, "four"), line(5, "five")) == b"one\ntwo\nthree\nfour\nfive\nlast words\n"


def test_following_waits_for_the_rest_of_a_line(log: Path) -> None:
    half, rest = line(4, "half way")[:30], line(4, "half way")[30:]
    assert follow(log, half, rest) == b"one\ntwo\nthree\nhalf way\nlast words\n"


def test_following_goes_on_in_the_new_file_after_a_rotation(log: Path) -> None:
    assert follow(log, line(4, "new"), rotates=True) == b"one\ntwo\nthree\nnew\nlast words\n"


def test_following_the_last_line_is_not_limited_to_it(log: Path) -> None:
    options = LogOptions(follow=True, tail_lines=1)
    assert follow(log, line(4, "four"), options=options) == b"three\nfour\nlast words\n"


def test_following_from_the_end_gives_nothing_old(log: Path) -> None:
    async def run(clock: VirtualClock) -> list[bytes]:
        source = read_log(str(log), LogOptions(follow=True), clock, lambda: False, from_end=True)
        return [text async for _, text in source]

    assert run_virtual(run) == []


@given(
    texts=st.lists(
        st.text(st.characters(blacklist_characters="\n", codec="utf-8"), max_size=20), max_size=30
    ),
    wanted=st.integers(0, 35),
    ends=st.booleans(),
)
def test_the_start_of_the_tail_is_that_of_the_last_lines(texts: list[str], wanted: int, ends: bool) -> None:
    data = "\n".join(texts).encode() + (b"\n" if ends and texts else b"")
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    start = tail_start(io.BytesIO(data), wanted)
    expected = lines[max(len(lines) - wanted, 0) :] if wanted else []
    found = data[start:].split(b"\n") if start < len(data) else []
    if found and not found[-1]:
        found.pop()
    assert found == expected


def test_the_tail_of_a_large_file_is_found_without_reading_it_all() -> None:
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    file = Counting(b"a line of a log\n" * 1_000_000)
    assert tail_start(file, 10) == 16 * 999_990
    assert file.taken < 100_000


@given(st.binary(max_size=80))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    parsed = parse_line(data)
    assert parsed is None or parsed.stream in (1, 2)
