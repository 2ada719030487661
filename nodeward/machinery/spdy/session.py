"""One SPDY session: streams that either end opens; each end reads, writes and closes its own direction.

Used for exec, attach and port-forward: by the kubelet's server, by the API server that translates WebSocket to SPDY,
and towards a CRI runtime. The caller brings received bytes, either through `run`, which goes on until the connection
ends, or through `feed` and `handle_next`, one frame at a time; bytes to send are handed to the `send` it was given.

What must stay true: SPDY as Kubernetes uses it has no flow control, so a stream that nobody reads holds up the whole
connection; that is what keeps a fast peer from filling the memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Final

from nodeward.machinery.spdy import frames
from nodeward.machinery.spdy.frames import (
    Data,
    Frame,
    FrameReader,
    GoAway,
    Opened,
    Packer,
    Ping,
    Replied,
    Reset,
)

#: Bytes of one stream that may wait to be read.
_MOST_WAITING: Final = 256 << 10
#: Streams a peer may have open.
_MOST_STREAMS: Final = 1000


class SpdyStream:
    """One stream of a session. It is over once both directions are."""

    def __init__(self, session: SpdySession, number: int, headers: Mapping[str, str]) -> None:
        self.number: Final = number
        self.headers: Final = headers
        self._session = session
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        #: the peer sends nothing more
        self.is_ended = False
        #: this end sends nothing more
        self._is_closed = False

    async def read(self) -> bytes:
        """Wait for data and return the next piece; empty at the end, or when the stream was reset."""
        while not self._waiting:
            if self.is_ended:
                return b""
            self._news.clear()
            await self._news.wait()
        return self.read_now()

    def read_now(self) -> bytes:
        """Return the next piece that has arrived; empty if none has."""
        if not self._waiting:
            return b""
        piece = self._waiting.popleft()
        self._waiting_bytes -= len(piece)
        if self._waiting_bytes <= _MOST_WAITING:
            self._room.set()
        return piece

    async def write(self, content: bytes) -> None:
        """Send, waiting while the peer does not read; do nothing once this end is closed."""
        for start in range(0, len(content), frames.MOST_DATA):
            if self._is_closed:
                return
            await self._session.send(frames.data(self.number, content[start : start + frames.MOST_DATA]))

    async def close(self) -> None:
        """Close this end; the peer may go on sending."""
        if not self._is_closed:
            self._is_closed = True
            await self._session.send(frames.data(self.number, b"", is_last=True))
            self._session.settle(self)

    async def reset(self) -> None:
        """Abandon both directions and tell the peer."""
        if not self.is_over:
            self.give_up()
            await self._session.send(frames.reset(self.number))
            self._session.settle(self)

    # -- called by the session

    async def take(self, content: bytes) -> None:
        """Keep received data; wait while too much of it is unread."""
        if not content or self.is_ended:
            return
        self._waiting.append(content)
        self._waiting_bytes += len(content)
        self._news.set()
        if self._waiting_bytes > _MOST_WAITING:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """Note that the peer sends nothing more."""
        self.is_ended = True
        self._news.set()
        self._session.settle(self)

    def give_up(self) -> None:
        """Note that both directions are over; unread data is dropped."""
        self._is_closed = self.is_ended = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._news.set()
        self._room.set()

    @property
    def is_over(self) -> bool:
        return self._is_closed and self.is_ended


class SpdySession:
    """One end of a connection. `accept` is called with each stream the peer opens; False refuses the stream."""

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[None]],
        accept: Callable[[SpdyStream], bool] = lambda stream: False,
        *,
        is_server: bool,
    ) -> None:
        self._send = send
        self._accept = accept
        self._parity = 0 if is_server else 1
        self._next = 2 if is_server else 1
        self._packer = Packer()
        self._reader = FrameReader()
        self._streams: dict[int, SpdyStream] = {}
        self._last = 0
        self._received: Iterator[Frame] = iter(())
        #: the peer has said good-bye
        self.is_over = False

    async def open(self, **headers: str) -> SpdyStream:
        """Open a stream. The peer's reply is not waited for: the peer reads everything in order."""
        number, self._next = self._next, self._next + 2
        stream = self._streams[number] = SpdyStream(self, number, headers)
        await self._send(self._packer.open(number, headers))
        return stream

    async def run(self, source: AsyncIterator[bytes]) -> None:
        """Handle what comes until the connection ends or the peer says good-bye. Raises `SpdyError`."""
        try:
            async for received in source:
                self.feed(received)
                while await self.handle_next():
                    pass
                if self.is_over:
                    return
        finally:
            for stream in list(self._streams.values()):
                stream.give_up() if stream.is_over else stream.end()
            self._streams.clear()

    def feed(self, received: bytes) -> None:
        """Take received bytes; call `handle_next` until it returns False before feeding more."""
        self._received = self._reader.feed(received)

    async def handle_next(self) -> bool:
        """Handle one frame of what was fed; False: there is none left, or the session is over."""
        frame = None if self.is_over else next(self._received, None)
        if frame is None:
            return False
        await self._handle(frame)
        return True

    async def go_away(self) -> None:
        await self._send(frames.go_away(self._last))

    async def send(self, data: bytes) -> None:
        await self._send(data)

    def settle(self, stream: SpdyStream) -> None:
        if stream.is_over:
            self._streams.pop(stream.number, None)

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case Opened(number, headers, is_last):
                await self._opened(number, headers, is_last)
            case Data(number, content, is_last):
                stream = self._streams.get(number)
                if stream is not None:
                    await stream.take(content)
                    if is_last:
                        stream.end()
            case Replied(number, True):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.end()
            case Reset(number):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    stream.give_up()
            case GoAway():
                self.is_over = True
            case Ping(id_) if id_ % 2 != self._parity:
                await self._send(frames.ping(id_))

    async def _opened(self, number: int, headers: Mapping[str, str], is_last: bool) -> None:
        is_wrong = number % 2 == self._parity or number <= self._last
        stream = SpdyStream(self, number, headers)
        if is_wrong or len(self._streams) >= _MOST_STREAMS:
            await self._send(frames.reset(number, 1))
            return
        self._last = number
        self._streams[number] = stream
        if not self._accept(stream):
            del self._streams[number]
            stream.give_up()
            await self._send(frames.reset(number, 3))
            return
        await self._send(self._packer.reply(number))
        if is_last:
            stream.end()
