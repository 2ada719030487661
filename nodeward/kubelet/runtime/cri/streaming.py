"""A connection to the runtime's streaming server: SPDY, read frame by frame as somebody asks for it.

Every CRI runtime serves commands over SPDY; WebSocket, which some serve too, cannot close a command's standard input
in the versions containerd 1.6 knows.

What must stay true: no more than a buffer is read ahead, so a command whose output nobody takes waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from nodeward.base.errors import WorldError
from nodeward.machinery.spdy import frames
from nodeward.machinery.spdy.frames import Data, Frame, FrameReader, GoAway, Packer, Ping, Replied, Reset

_READ_BYTES: Final = 64 * 1024
_MOST_HEADER_LINES: Final = 100


class Streaming:
    """Several streams in one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._packer = Packer()
        self._frames = FrameReader()
        self._waiting: deque[Frame] = deque()
        self._last_stream = -1

    def open_stream(self, headers: Mapping[str, str]) -> int:
        """A new stream, in both directions; its number."""
        self._last_stream += 2
        self._writer.write(self._packer.open(self._last_stream, headers))
        return self._last_stream

    async def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        """Waits while the peer does not read. Raises WorldError."""
        pieces = [data[at : at + frames.MOST_DATA] for at in range(0, len(data), frames.MOST_DATA)]
        for piece in pieces:
            self._writer.write(frames.data(stream, piece))
        if is_last:
            self._writer.write(frames.data(stream, b"", is_last=True))
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise WorldError(f"the container runtime has closed the stream: {error}") from None

    async def receive(self) -> tuple[int, bytes, bool] | None:
        """The next data: stream, bytes, whether they are the stream's last. None: the connection is over.

        Raises WorldError for what is no SPDY.
        """
        while True:
            while self._waiting:
                match self._waiting.popleft():
                    case Data(stream, data, is_last):
                        return stream, data, is_last
                    case Reset(stream) | Replied(stream, True):
                        return stream, b"", True
                    case Ping(number) if number % 2 == 0:
                        self._writer.write(frames.ping(number))
                    case GoAway():
                        return None
            try:
                received = await self._reader.read(_READ_BYTES)
            except ConnectionError:
                return None
            if not received:
                return None
            self._waiting.extend(self._frames.feed(received))

    async def close(self) -> None:
        self._writer.close()
        # The peer may have been faster.
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


async def connect(url: str, headers: Mapping[str, str]) -> Streaming:
    """Connect to `url` and change over to SPDY. Raises WorldError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise WorldError(f"the container runtime offers its streams at {url}: only http is supported")
    try:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    except OSError as error:
        raise WorldError(
            f"the container runtime's streams at {parts.netloc} cannot be reached: {error}"
        ) from None
    lines = [
        f"POST {parts.path or '/'} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        "Content-Length: 0",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
    status = ""
    try:
        status = (await reader.readline()).decode("latin-1").strip()
        for _ in range(_MOST_HEADER_LINES):
            if await reader.readline() in (b"\r\n", b"\n", b""):
                break
    except (OSError, ValueError) as error:
        status = str(error)
    finally:
        is_open = status.split(" ")[1:2] == ["101"]
        if not is_open:
            writer.close()
    if not is_open:
        raise WorldError(f"the container runtime does not open a stream: {status or 'it hung up'}")
    return Streaming(reader, writer)
