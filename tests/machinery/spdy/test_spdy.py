"""SPDY: two ends of one connection, and an end that speaks nonsense."""

from __future__ import annotations

import asyncio
import itertools
import struct
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.spdy import frames
from nodeward.machinery.spdy.frames import (
    DICTIONARY,
    Data,
    Frame,
    FrameReader,
    GoAway,
    Opened,
    Packer,
    Ping,
    Replied,
    Reset,
    SpdyError,
)
from nodeward.machinery.spdy.session import SpdySession, SpdyStream
from nodeward.machinery.virtual_loop import run_virtual


def read(*received: bytes) -> list[Frame]:
    reader = FrameReader()
    return [frame for data in received for frame in reader.feed(data)]


def test_the_words_both_ends_begin_with_are_those_of_the_specification() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_frames_are_read_as_they_were_written() -> None:
    packer = Packer()
    first, second = {"streamtype": "error", "port": "80"}, {"streamtype": "data", "port": "80", "empty": ""}
    written = (
        packer.open(1, first)
        + packer.open(3, second)
        + packer.reply(1)
        + frames.data(3, b"abc", is_last=True)
        + frames.reset(1)
        + frames.ping(7)
        + frames.go_away(3)
    )
    assert read(written) == [
        Opened(1, first, False),
        Opened(3, second, False),
        Replied(1, False),
        Data(3, b"abc", True),
        Reset(1),
        Ping(7),
        GoAway(3),
    ]


@given(cuts=st.lists(st.integers(0, 200), max_size=20))
def test_it_does_not_matter_how_the_bytes_are_cut(cuts: list[int]) -> None:
    packer = Packer()
    whole = (
        packer.open(1, {"a": "b"}) + frames.data(1, b"x" * 50) + packer.open(3, {"a": "c"}) + frames.ping(1)
    )
    places = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    found = read(*(whole[start:end] for start, end in itertools.pairwise(places)))
    text = b"".join(frame.data for frame in found if isinstance(frame, Data))
    others = [frame for frame in found if not isinstance(frame, Data)]
    assert text == b"x" * 50
    assert others == [Opened(1, {"a": "b"}, False), Opened(3, {"a": "c"}, False), Ping(1)]


def test_data_is_handed_on_before_its_frame_is_complete() -> None:
    head = struct.pack("!II", 5, 1 << 24 | 0xFFFFFF)
    assert read(head + b"abc") == [Data(5, b"abc", False)]


def packed(block: bytes) -> bytes:
    body = struct.pack("!IIH", 1, 0, 0) + zlib.compress(block)
    return struct.pack("!HHI", 0x8003, 1, len(body)) + body


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\x80\x02\x00\x01\x00\x00\x00\x00", "SPDY version 2", id="old"),
        pytest.param(b"\x80\x03\x00\x01\x00\xff\xff\xff", "too large", id="large"),
        pytest.param(b"\x80\x03\x00\x06\x00\x00\x00\x01x", "too short", id="short"),
        pytest.param(b"\x80\x03\x00\x01\x00\x00\x00\x0cxxxxxxxxxxxx", "cannot be read", id="garbage"),
        pytest.param(packed(bytes(300 << 10)), "are too large", id="a bomb"),
        pytest.param(packed(b"\0\0\0\1\xff\xff\xff\xff"), "cut short", id="a lie"),
        pytest.param(packed(b"\0\0\0\1"), "too short", id="nothing there"),
    ],
)
def test_nonsense_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(SpdyError, match=why):
        read(data)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_bytes_break_the_reader(parts: list[bytes]) -> None:
    try:
        found = read(*parts)
    except SpdyError:
        return
    assert all(isinstance(frame, tuple) for frame in found)


class Pipe:
    """Two sessions that talk to each other."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[SpdyStream] = asyncio.Queue()
        self._to_server: asyncio.Queue[bytes] = asyncio.Queue(4)
        self._to_client: asyncio.Queue[bytes] = asyncio.Queue(4)
        self.client = SpdySession(self._to_server.put, is_server=False)
        self.server = SpdySession(self._to_client.put, self._took, is_server=True)
        self._tasks = (
            asyncio.create_task(self.client.run(self._read(self._to_client))),
            asyncio.create_task(self.server.run(self._read(self._to_server))),
        )

    def _took(self, stream: SpdyStream) -> bool:
        self.taken.put_nowait(stream)
        return stream.headers.get("streamtype") != "unwanted"

    @staticmethod
    async def _read(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
        while data := await queue.get():
            yield data

    async def cut(self) -> None:
        """The connection is gone, for both."""
        await self._to_client.put(b"")
        await self._to_server.put(b"")
        await asyncio.gather(*self._tasks)


def test_streams_carry_bytes_both_ways_and_end_on_each_side_by_itself() -> None:
    async def run(clock: VirtualClock) -> None:
        pipe = Pipe()
        ours = await pipe.client.open(streamtype="data", port="80")
        theirs = await pipe.taken.get()
        assert theirs.headers == {"streamtype": "data", "port": "80"}
        await ours.write(b"x" * 100_000)
        await ours.close()
        got = b""
        while piece := await theirs.read():
            got += piece
        assert got == b"x" * 100_000
        await theirs.write(b"answer")
        await theirs.close()
        assert await ours.read() == b"answer"
        assert await ours.read() == b""
        await pipe.cut()

    run_virtual(run)


def test_a_stream_that_is_not_wanted_or_is_reset_ends_for_both() -> None:
    async def run(clock: VirtualClock) -> None:
        pipe = Pipe()
        unwanted = await pipe.client.open(streamtype="unwanted")
        assert await unwanted.read() == b""
        await pipe.taken.get()
        ours = await pipe.client.open(streamtype="data")
        theirs = await pipe.taken.get()
        await theirs.reset()
        assert await ours.read() == b""
        await ours.write(b"into the void")
        await pipe.cut()

    run_virtual(run)


def test_whoever_reads_hears_when_the_connection_is_gone() -> None:
    async def run(clock: VirtualClock) -> None:
        pipe = Pipe()
        ours = await pipe.client.open(streamtype="data")
        theirs = await pipe.taken.get()
        await theirs.write(b"last words")
        await clock.sleep(1)
        await pipe.cut()
        assert await ours.read() == b"last words"
        assert await ours.read() == b""

    run_virtual(run)


def test_a_stream_nobody_reads_holds_up_its_sender() -> None:
    async def run(clock: VirtualClock) -> None:
        pipe = Pipe()
        ours = await pipe.client.open(streamtype="data")
        theirs = await pipe.taken.get()
        writing = asyncio.create_task(ours.write(bytes(10 << 20)))
        await clock.sleep(1)
        assert not writing.done()
        total = 0
        while total < 10 << 20:
            total += len(await theirs.read())
        await writing
        await pipe.cut()

    run_virtual(run)


def test_a_peer_cannot_open_streams_of_ours_or_one_twice() -> None:
    async def run(clock: VirtualClock) -> None:
        sent: list[bytes] = []
        taken: list[int] = []

        async def send(data: bytes) -> None:
            sent.append(data)

        def took(stream: SpdyStream) -> bool:
            taken.append(stream.number)
            return True

        async def received() -> AsyncIterator[bytes]:
            packer = Packer()
            for number in (2, 3, 3, 1):
                yield packer.open(number, {})

        await SpdySession(send, took, is_server=True).run(received())
        assert taken == [3]
        assert [frame for frame in read(*sent) if isinstance(frame, Reset)] == [Reset(2), Reset(3), Reset(1)]

    run_virtual(run)
