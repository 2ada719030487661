"""One SPDY connection: streams that are opened by either end, read, written, and closed on each side by itself.

The connection brings bytes to `run` and takes them from `send`. SPDY as Kubernetes uses it has no flow control, so a
stream nobody reads holds up the connection: that is what keeps a fast peer from filling the memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from nodeward.machinery.spdy import frames
from nodeward.machinery.spdy.frames import Data, Frame, FrameReader, GoAway, Opened, Packer, Ping, Reset

#: Bytes of one stream that may wait to be read.
_MOST_WAITING: Final = 256 << 10
#: Streams a peer may have open.
_MOST_STREAMS: Final = 1000


class SpdyStream:
    """One stream of a connection."""

    def __init__(self, session: SpdySession, number: int, headers: Mapping[str, str]) -> None:
        self.number: Final = number
        self.headers: Final = headers
        self._session = session
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        #: nothing more comes
        self._is_ended = False
        #: nothing more is sent
        self._is_closed = False

    async def read(self) -> bytes:
        """What comes next; nothing at the end, or when it was given up."""
        while not self._waiting:
            if self._is_ended:
                return b""
            self._news.clear()
            await self._news.wait()
        piece = self._waiting.popleft()
        self._waiting_bytes -= len(piece)
        if self._waiting_bytes <= _MOST_WAITING:
            self._room.set()
        return piece

    async def write(self, content: bytes) -> None:
        """Waits while the peer does not take it; does nothing once the stream is closed."""
        for start in range(0, len(content), frames.MOST_DATA):
            if self._is_closed:
                return
            await self._session.send(frames.data(self.number, content[start : start + frames.MOST_DATA]))

    async def close(self) -> None:
        """Nothing more is sent; the other side may go on."""
        if not self._is_closed:
            self._is_closed = True
            await self._session.send(frames.data(self.number, b"", is_last=True))
            self._session.settle(self)

    async def reset(self) -> None:
        """Give it up, both ways."""
        if not (self._is_closed and self._is_ended):
            self.give_up()
            await self._session.send(frames.reset(self.number))
            self._session.settle(self)

    # -- the session's side

    async def take(self, content: bytes) -> None:
        """More came; waits until somebody reads."""
        if not content or self._is_ended:
            return
        self._waiting.append(content)
        self._waiting_bytes += len(content)
        self._news.set()
        if self._waiting_bytes > _MOST_WAITING:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        self._is_ended = True
        self._news.set()
        self._session.settle(self)

    def give_up(self) -> None:
        self._is_closed = self._is_ended = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._news.set()
        self._room.set()

    @property
    def is_over(self) -> bool:
        return self._is_closed and self._is_ended


class SpdySession:
    """One end of a connection. `took` is told of each stream the peer opens, and says whether it is wanted."""

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[None]],
        took: Callable[[SpdyStream], bool] = lambda stream: False,
        *,
        is_server: bool,
    ) -> None:
        self._send = send
        self._took = took
        self._parity = 0 if is_server else 1
        self._next = 2 if is_server else 1
        self._packer = Packer()
        self._reader = FrameReader()
        self._streams: dict[int, SpdyStream] = {}
        self._last = 0

    async def open(self, **headers: str) -> SpdyStream:
        """A stream of ours. The peer is not waited for: whatever it makes of it, it reads it in order."""
        number, self._next = self._next, self._next + 2
        stream = self._streams[number] = SpdyStream(self, number, headers)
        await self._send(self._packer.open(number, headers))
        return stream

    async def run(self, source: AsyncIterator[bytes]) -> None:
        """Until the connection is over, or the peer says good-bye. Raises `SpdyError` for what is no SPDY."""
        try:
            async for received in source:
                for frame in self._reader.feed(received):
                    if isinstance(frame, GoAway):
                        return
                    await self._handle(frame)
        finally:
            for stream in list(self._streams.values()):
                stream.give_up() if stream.is_over else stream.end()
            self._streams.clear()

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
            case Reset(number):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    stream.give_up()
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
        if not self._took(stream):
            del self._streams[number]
            stream.give_up()
            await self._send(frames.reset(number, 3))
            return
        await self._send(self._packer.reply(number))
        if is_last:
            stream.end()
