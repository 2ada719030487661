"""WebSockets on a real socket: the handshake, messages both ways, and peers that do not behave.

The peer's end is the `websockets` library without input and output, on a plain socket: what it says is ours to choose.
"""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol, State

from nodeward.machinery.clock import RealClock
from nodeward.machinery.http_upgrade import UpgradedConnection, upgrade
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import HttpServerConnection, Peer
from nodeward.machinery.serving.limits import Limits
from nodeward.machinery.serving.listener import Listener
from nodeward.machinery.serving.websocket import WebSocket, accept
from nodeward.machinery.transport import Request, Response
from tests.patience import PATIENCE_SECONDS

Handler = Callable[[WebSocket], Awaitable[None]]
KEY = base64.b64encode(bytes(range(16))).decode()
USUAL = {
    "connection": "keep-alive, Upgrade",
    "upgrade": "WebSocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": KEY,
    "sec-websocket-protocol": "old, new",
}


class Far:
    """The peer's end."""

    def __init__(self, wire: UpgradedConnection) -> None:
        self.wire = wire
        self.protocol = Protocol(CLIENT, state=State.OPEN)

    async def send(self, data: bytes) -> None:
        self.protocol.send_binary(data)
        await self.flush()

    async def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.wire.write(data)
        await self.wire.drained()

    async def frames(self) -> AsyncIterator[Frame]:
        while data := await self.wire.read():
            self.protocol.receive_data(data)
            for event in self.protocol.events_received():
                assert isinstance(event, Frame)
                yield event
            await self.flush()

    async def rest(self) -> list[tuple[Opcode, bytes]]:
        """Everything until the connection is closed."""
        return [(frame.opcode, bytes(frame.data)) async for frame in self.frames()]


class Near:
    """Our end: a listener whose every request becomes a WebSocket."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.clock = RealClock()
        self.tasks: list[asyncio.Task[None]] = []
        limits = Limits(stall_seconds=0.2, idle_seconds=0.2, head_seconds=0.2)
        self.listener = Listener(self._answer, self.clock, limits)
        self.port = 0
        self._opened: list[UpgradedConnection] = []

    async def _answer(self, request: Request, peer: Peer) -> Answer:
        answer, socket, _ = accept(request, ("new", "old"), self.clock)
        if socket is not None:
            self.tasks.append(asyncio.ensure_future(self._run(socket)))
        return answer

    async def _run(self, socket: WebSocket) -> None:
        await self._handler(socket)

    async def ask(self, **headers: str) -> UpgradedConnection | Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = {name: value for name, value in {**USUAL, **given}.items() if value}
        answer = await upgrade("127.0.0.1", self.port, None, Request("GET", "/x", "", asked), self.clock)
        if isinstance(answer, UpgradedConnection):
            self._opened.append(answer)
        return answer

    async def stop(self) -> None:
        for wire in self._opened:
            wire.abort()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.listener.stop()

    async def far(self) -> Far:
        switched = await self.ask()
        assert isinstance(switched, UpgradedConnection)
        return Far(switched)

    @property
    def connection(self) -> HttpServerConnection:
        (found,) = self.listener.connections
        return found


@asynccontextmanager
async def near(handler: Handler) -> AsyncIterator[Near]:
    made = Near(handler)
    made.port = await made.listener.listen("127.0.0.1", 0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            yield made
        finally:
            await made.stop()


async def echo(socket: WebSocket) -> None:
    async for message in socket.messages():
        await socket.send(b"<" + message + b">")


async def silent(socket: WebSocket) -> None:
    await socket.over()


def test_the_best_protocol_both_know_is_agreed_on() -> None:
    async def run() -> None:
        async with near(silent) as ours:
            switched = await ours.ask()
            assert isinstance(switched, UpgradedConnection)
            assert switched.headers["sec-websocket-protocol"] == "new"
            assert switched.headers["sec-websocket-accept"]
            switched.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"sec_websocket_protocol": "klingon"}, "klingon is spoken here"),
        ({"sec_websocket_version": "8"}, "want WebSocket version 13"),
        ({"sec_websocket_key": ""}, "want WebSocket version 13 with a key"),
        ({"sec_websocket_key": "short"}, "malformed Sec-WebSocket-Key"),
    ],
)
def test_a_handshake_that_makes_no_sense_is_refused_in_words(headers: dict[str, str], text: str) -> None:
    async def run() -> None:
        async with near(silent) as ours:
            refused = await ours.ask(**headers)
            assert isinstance(refused, Response)
            assert refused.status == 400
            assert text in (refused.body or b"").decode()

    asyncio.run(run())


def test_messages_come_whole_however_they_were_cut() -> None:
    async def run() -> None:
        async with near(echo) as ours:
            far = await ours.far()
            far.protocol.send_binary(b"he", fin=False)
            far.protocol.send_continuation(b"llo", fin=True)
            whole = b"".join(far.protocol.data_to_send())
            for byte in whole:
                far.wire.write(bytes((byte,)))
                await ours.clock.yield_now()
            async for frame in far.frames():
                assert bytes(frame.data) == b"<hello>"
                break
            far.wire.abort()

    asyncio.run(run())


def test_what_was_sent_with_the_handshake_is_not_lost() -> None:
    async def run() -> None:
        async with near(echo) as ours:
            reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
            far = Protocol(CLIENT, state=State.OPEN)
            far.send_binary(b"early")
            lines = "".join(f"{name}: {value}\r\n" for name, value in USUAL.items())
            writer.write(f"GET /x HTTP/1.1\r\nhost: x\r\n{lines}\r\n".encode() + b"".join(far.data_to_send()))
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(9) == b"\x82\x07<early>"
            writer.transport.abort()

    asyncio.run(run())


def test_pings_are_answered() -> None:
    async def run() -> None:
        async with near(silent) as ours:
            far = await ours.far()
            far.protocol.send_ping(b"there?")
            await far.flush()
            async for frame in far.frames():
                assert (frame.opcode, bytes(frame.data)) == (Opcode.PONG, b"there?")
                break
            far.wire.abort()

    asyncio.run(run())


def test_a_peer_that_leaves_ends_the_messages() -> None:
    async def run() -> None:
        async with near(echo) as ours:
            for leave in ("close", "abort"):
                far = await ours.far()
                await far.send(b"x")
                if leave == "close":
                    far.protocol.send_close(1000)
                    await far.flush()
                else:
                    far.wire.abort()
                await ours.tasks[-1]

    asyncio.run(run())


def test_everything_sent_before_our_good_bye_arrives_though_the_peer_still_sends() -> None:
    async def hasty(socket: WebSocket) -> None:
        await socket.send(b"x" * 100_000)
        await socket.send(b"the end")
        socket.close()

    async def run() -> None:
        async with near(hasty) as ours:
            far = await ours.far()
            flood = Protocol(CLIENT, state=State.OPEN)
            flood.send_binary(b"y" * 2_000_000)
            far.wire.write(b"".join(flood.data_to_send()))  # and nobody will read it
            await ours.tasks[0]
            got = await far.rest()
            assert [data for opcode, data in got if opcode is Opcode.BINARY] == [b"x" * 100_000, b"the end"]
            assert got[-1] == (Opcode.CLOSE, struct.pack("!H", 1000))

    asyncio.run(run())


def test_a_huge_message_is_refused_before_it_is_here() -> None:
    async def run() -> None:
        async with near(echo) as ours:
            far = await ours.far()
            # The head of a message of an exabyte.
            far.wire.write(b"\x82\xff" + struct.pack("!Q", 1 << 60) + b"mask" + b"x" * 1000)
            (closed,) = await far.rest()
            assert closed[0] is Opcode.CLOSE
            assert closed[1][:2] == struct.pack("!H", 1009)
            await ours.tasks[0]

    asyncio.run(run())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x82\x05hello", id="not masked"),
        pytest.param(b"\xf2\x80mask", id="reserved bits"),
        pytest.param(b"\x83\x80mask", id="unknown opcode"),
        pytest.param(b"\x80\x80mask", id="a continuation of nothing"),
        pytest.param(b"\x89\xfe\x01\x00mask" + b"x" * 256, id="a ping that is too long"),
    ],
)
def test_a_peer_that_breaks_the_protocol_is_told_so_and_cut_off(data: bytes) -> None:
    async def run() -> None:
        async with near(echo) as ours:
            far = await ours.far()
            far.wire.write(data)
            (closed,) = await far.rest()
            assert (closed[0], closed[1][:2]) == (Opcode.CLOSE, struct.pack("!H", 1002))
            await ours.tasks[0]

    asyncio.run(run())


def test_a_peer_that_sends_more_than_is_read_has_to_wait() -> None:
    async def run() -> None:
        async with near(silent) as ours:
            far = await ours.far()
            for _ in range(64):
                far.protocol.send_binary(b"z" * 500_000)
            for data in far.protocol.data_to_send():
                far.wire.write(data)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await far.wire.drained()
            far.wire.abort()
            await ours.tasks[0]

    asyncio.run(run())


async def flood(far: Far, data: bytes) -> None:
    for _ in range(1000):
        far.wire.write(data)
        await far.wire.drained()


def test_a_flood_of_empty_messages_has_to_wait_too() -> None:
    async def run() -> None:
        async with near(silent) as ours:
            far = await ours.far()
            flooding = asyncio.create_task(flood(far, b"\x82\x80mask" * 50_000))
            done, _ = await asyncio.wait((flooding,), timeout=2)
            assert not done
            flooding.cancel()
            far.wire.abort()
            await ours.tasks[0]

    asyncio.run(run())


def test_a_peer_that_does_not_read_is_waited_for_and_costs_little() -> None:
    sent = 0

    async def talkative(socket: WebSocket) -> None:
        nonlocal sent
        for _ in range(1000):
            await socket.send(b"w" * 100_000)
            sent += 1
        socket.close()

    async def run() -> None:
        async with near(talkative) as ours:
            far = await ours.far()
            await ours.clock.sleep(0.6)  # three times as long as a peer may leave an answer untouched
            assert sent < 200
            assert ours.connection.buffered < 2 << 20
            got = await far.rest()
            assert len(got) == 1001, "it reads again, and everything comes"

    asyncio.run(run())
