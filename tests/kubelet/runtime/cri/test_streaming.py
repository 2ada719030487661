"""Streams of a runtime that does not do what it should: the caller hears what is wrong, and nothing hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.execution import StreamedExec
from nodeward.kubelet.runtime.cri.streaming import StreamingConnection, connect
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.machinery.clock import RealClock
from nodeward.machinery.spdy import frames
from nodeward.machinery.spdy.frames import Data, FrameReader, Opened, Ping
from tests.patience import PATIENCE_SECONDS

_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
_SUCCESS = b'{"status":"Success"}'

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def with_peer(peer: Peer, play: Callable[[str], Awaitable[None]]) -> None:
    """Play against a server that does whatever the peer does after the request's head."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await peer(reader, writer)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server, asyncio.timeout(PATIENCE_SECONDS):
            host, port = server.sockets[0].getsockname()
            await play(f"http://{host}:{port}/exec/token")

    asyncio.run(main())


async def command(url: str, *, is_running: bool = True) -> StreamedExec:
    connection: StreamingConnection = await connect(url, {}, RealClock())
    request = ExecRequest("u", "c", ("cat",), has_stdin=True)
    return await StreamedExec.start(connection, request, lambda: is_running)


def test_a_refused_stream_says_how_it_was_refused() -> None:
    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\nno such token\n")

    async def play(url: str) -> None:
        with pytest.raises(WorldError, match="HTTP 404 no such token"):
            await connect(url, {}, RealClock())

    with_peer(refuses, play)


def test_a_runtime_that_hangs_up_at_once_is_told() -> None:
    async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        return

    async def play(url: str) -> None:
        with pytest.raises(WorldError, match="closed without an answer"):
            await connect(url, {}, RealClock())

    with_peer(hangs_up, play)


def test_streams_that_are_nowhere_or_encrypted_are_told() -> None:
    async def main() -> None:
        with pytest.raises(WorldError, match="only http is supported"):
            await connect("https://127.0.0.1/exec/token", {}, RealClock())
        with pytest.raises(WorldError, match=r"does not open a stream at 127\.0\.0\.1:1"):
            await connect("http://127.0.0.1:1/exec/token", {}, RealClock())

    asyncio.run(main())


@pytest.mark.parametrize("is_running", [True, False])
def test_a_command_cut_off_has_failed_or_ended_with_its_container(is_running: bool) -> None:
    async def cuts_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_UPGRADED)

    async def play(url: str) -> None:
        session = await command(url, is_running=is_running)
        assert [piece async for piece in session.output()] == []
        if is_running:
            with pytest.raises(WorldError, match="without saying how it ended"):
                await session.wait()
        else:
            assert await session.wait() == 137

    with_peer(cuts_off, play)


def test_input_of_any_size_arrives_whole_and_pings_are_answered() -> None:
    sent = bytes(range(256)) * 1000

    async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_UPGRADED + frames.ping(2))
        frame_reader, kinds, heard = FrameReader(), dict[str, int](), bytearray()
        while True:
            for frame in frame_reader.feed(await reader.read(1 << 16)):
                match frame:
                    case Opened(number, headers, _):
                        kinds[headers["streamtype"]] = number
                    case Data(number, data, is_last):
                        assert number == kinds["stdin"]
                        heard += data
                        if is_last:
                            for at in range(0, len(heard), frames.MOST_DATA):
                                piece = bytes(heard[at : at + frames.MOST_DATA])
                                writer.write(frames.data(kinds["stdout"], piece))
                            writer.write(frames.data(kinds["error"], _SUCCESS, is_last=True))
                            return
                    case Ping(2):
                        writer.write(frames.data(kinds["stdout"], b"answered"))

    async def play(url: str) -> None:
        session = await command(url)
        await session.write(sent)
        output = session.output()
        assert await anext(output) == (1, b"answered")
        await session.close_stdin()
        assert b"".join([piece async for _, piece in output]) == sent
        assert await session.wait() == 0

    with_peer(echoes, play)
