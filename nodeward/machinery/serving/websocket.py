"""WebSocket connections of a server: the handshake, and whole messages both ways (RFC 6455).

`accept` looks at a request and gives the answer that switches, with the `WebSocket` to talk through. Framing is the
`websockets` library's, which does no input or output itself. What must stay true: a peer that sends faster than we
read is not read from (and asked now and then whether it is still there, which nobody would notice otherwise); one that
does not read is waited for (`send`) and never fills the memory; after our good-bye the
peer's is waited for, because closing under a peer that still sends would take from it what it has not read yet.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final

from websockets.frames import Frame, Opcode
from websockets.protocol import SERVER, Protocol, State
from websockets.utils import accept_key

from nodeward.api.errors import bad_request
from nodeward.machinery.clock import Clock, Timer
from nodeward.machinery.serving.answer import Answer, TunnelSink, failure
from nodeward.machinery.transport import Request

#: The peer is not read from while more than this waits for us.
_MOST_WAITING: Final = 1 << 20
#: What a message costs beside its bytes: millions of empty ones are many, too.
_OVERHEAD: Final = 64
MOST_MESSAGE: Final = 4 << 20
_NORMAL: Final = 1000
#: How often a peer that is not read from is asked for a sign of life.
_ASK_SECONDS: Final = 1.0
#: How long the peer's good-bye is waited for.
_LINGER_SECONDS: Final = 5.0


class WebSocket:
    """One connection. Implements `Tunnel`; the side of the handler is `messages`, `send` and `close`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._linger: Timer | None = None
        #: set while the peer is not read from
        self._asking: Timer | None = None
        self._protocol = Protocol(SERVER, state=State.OPEN, max_size=MOST_MESSAGE)
        self._sink: TunnelSink | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._parts: list[bytes] = []
        self._has_news = asyncio.Event()
        self._is_over = asyncio.Event()

    # -- the connection's side

    def start(self, sink: TunnelSink) -> None:
        self._sink = sink
        self._flush()

    def received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._flush()
        if self._protocol.state is not State.OPEN:
            self._stop_listening()
        if self._protocol.close_rcvd is not None or self._protocol.parser_exc is not None:
            self._end()

    def gone(self) -> None:
        self._stop_listening()
        self._sink = None
        for timer in (self._linger, self._asking):
            if timer is not None:
                timer.cancel()

    # -- the handler's side

    @property
    def is_over(self) -> bool:
        """Nothing more comes, and nothing more is sent."""
        return self._is_over.is_set()

    async def over(self) -> None:
        """Wait until the peer has gone."""
        await self._is_over.wait()

    async def messages(self) -> AsyncIterator[bytes]:
        """Return what the peer sends, until it is gone."""
        while True:
            while self._waiting:
                message = self._waiting.popleft()
                self._waiting_bytes -= len(message) + _OVERHEAD
                if self._waiting_bytes <= _MOST_WAITING:
                    self._resume()
                yield message
            if self._is_over.is_set():
                return
            self._has_news.clear()
            await self._has_news.wait()

    async def send(self, message: bytes) -> None:
        """Send a binary message, waiting while the peer does not read; do nothing once it is gone."""
        if self._is_over.is_set() or self._protocol.state is not State.OPEN:
            return
        self._protocol.send_binary(message)
        self._flush()
        if self._sink is not None:
            await self._sink.drained()

    def close(self, code: int = _NORMAL, reason: str = "") -> None:
        """Say good-bye; the connection ends when the peer has answered that."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            self._flush()
        self._stop_listening()
        self._resume()
        if self._sink is not None:
            self._linger = self._clock.call_later(_LINGER_SECONDS, self._end)

    # -- inside

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT) and not self._is_over.is_set():
            self._parts.append(bytes(frame.data))
            if frame.fin:
                message = b"".join(self._parts)
                self._parts.clear()
                self._waiting.append(message)
                self._waiting_bytes += len(message) + _OVERHEAD
                self._has_news.set()
                if self._waiting_bytes > _MOST_WAITING:
                    self._pause()

    def _pause(self) -> None:
        if self._asking is None and self._sink is not None:
            self._sink.pause()
            self._asking = self._clock.call_later(_ASK_SECONDS, self._ask)

    def _resume(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
            if self._sink is not None:
                self._sink.resume()

    def _ask(self) -> None:
        """Send a ping: if the peer is gone, sending fails and the connection ends."""
        self._asking = None
        if self._protocol.state is State.OPEN and self._sink is not None:
            self._protocol.send_ping(b"")
            self._flush()
            self._asking = self._clock.call_later(_ASK_SECONDS, self._ask)

    def _flush(self) -> None:
        if self._sink is not None:
            for data in self._protocol.data_to_send():
                self._sink.write(data)

    def _stop_listening(self) -> None:
        self._is_over.set()
        self._has_news.set()

    def _end(self) -> None:
        self._stop_listening()
        if self._sink is not None:
            self._sink.finish()


def _is_key(text: str) -> bool:
    """Tell whether the key is sixteen bytes in base64."""
    try:
        return len(base64.b64decode(text, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False


def wants_websocket(request: Request) -> bool:
    """Tell whether a request asks to switch to WebSocket."""
    return (
        request.headers.get("upgrade", "").lower() == "websocket"
        and "upgrade" in request.headers.get("connection", "").lower()
    )


def accept(request: Request, protocols: Sequence[str], clock: Clock) -> tuple[Answer, WebSocket | None, str]:
    """Return the answer to a handshake; with it, if it is accepted, the connection and the protocol agreed on.

    `protocols` are those we speak, the best first.
    """
    headers = request.headers
    key = headers.get("sec-websocket-key", "")
    if headers.get("sec-websocket-version") != "13" or not key:
        return failure(bad_request("unable to upgrade: want WebSocket version 13 with a key")), None, ""
    offered = [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",") if name.strip()]
    agreed = next((name for name in protocols if name in offered), "")
    if offered and not agreed:
        known = ", ".join(protocols)
        return (
            failure(
                bad_request(f"unable to upgrade: none of {', '.join(offered)} is spoken here; {known} are")
            ),
            None,
            "",
        )
    if not _is_key(key):
        return failure(bad_request("unable to upgrade: malformed Sec-WebSocket-Key")), None, ""
    answer_headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_key(key),
    }
    if agreed:
        answer_headers["Sec-WebSocket-Protocol"] = agreed
    socket = WebSocket(clock)
    return Answer(101, headers=answer_headers, tunnel=socket), socket, agreed
