"""Just enough of SPDY/3.1 to talk to a runtime's streaming server: open streams, send and receive data.

Every CRI runtime serves exec over SPDY; WebSocket, which some serve too, cannot close a command's standard input in
the versions containerd 1.6 knows. Frames go in and out of an open connection; nothing is known here of commands.

The peers are Go programs with one implementation, which has no flow control and whose answers' headers nobody needs:
both are left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from nodeward.base.errors import WorldError

#: A frame that speaks about the connection or a stream, version 3; its other shape is data of a stream.
_CONTROL: Final = 0x8003
_SYN_STREAM: Final = 1
_SYN_REPLY: Final = 2
_RST_STREAM: Final = 3
_PING: Final = 6
_GOAWAY: Final = 7
_FIN: Final = 1

_HEADER: Final = struct.Struct("!HHI")
_WORD: Final = struct.Struct("!I")
#: of one frame; what is longer is sent in pieces
_MOST_DATA: Final = 32 * 1024
_MOST_HEADER_LINES: Final = 100


class Spdy:
    """One connection that speaks SPDY."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # SPDY has a dictionary for this, which zlib's own header says is not used here.
        self._packer = zlib.compressobj(1)
        self._last_stream = -1

    def open_stream(self, headers: Mapping[str, str]) -> int:
        """A new stream, in both directions; its number."""
        self._last_stream += 2
        block = [_WORD.pack(len(headers))]
        for text in (part for pair in headers.items() for part in pair):
            block += (_WORD.pack(len(text)), text.encode("ascii"))
        packed = self._packer.compress(b"".join(block)) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack("!IIH", self._last_stream, 0, 0) + packed
        self._writer.write(_HEADER.pack(_CONTROL, _SYN_STREAM, len(body)) + body)
        return self._last_stream

    async def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        """Waits while the peer does not read."""
        for start in range(0, max(len(data), 1), _MOST_DATA):
            piece = data[start : start + _MOST_DATA]
            is_end = is_last and start + _MOST_DATA >= len(data)
            self._writer.write(struct.pack("!II", stream, (_FIN if is_end else 0) << 24 | len(piece)) + piece)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise WorldError(f"the container runtime has closed the stream: {error}") from None

    async def receive(self) -> tuple[int, bytes, bool] | None:
        """The next data: stream, bytes, whether they are the stream's last. None: the connection is over."""
        while True:
            try:
                head = await self._reader.readexactly(_HEADER.size)
                first, second, rest = _HEADER.unpack(head)
                body = await self._reader.readexactly(rest & 0xFFFFFF)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            flags = rest >> 24
            if not first & 0x8000:
                return (first << 16 | second, body, bool(flags & _FIN))
            if second == _RST_STREAM:
                return (_WORD.unpack_from(body)[0], b"", True)
            if second == _SYN_REPLY and flags & _FIN:
                return (_WORD.unpack_from(body)[0], b"", True)
            if second == _PING and not _WORD.unpack_from(body)[0] % 2:
                self._writer.write(head + body)
            elif second == _GOAWAY:
                return None

    async def close(self) -> None:
        self._writer.close()
        # The peer may have been faster.
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


async def upgrade(url: str, headers: Mapping[str, str]) -> Spdy:
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
    try:
        status = (await reader.readline()).decode("latin-1").strip()
        for _ in range(_MOST_HEADER_LINES):
            if await reader.readline() in (b"\r\n", b"\n", b""):
                break
    except (OSError, ValueError) as error:
        status = str(error)
    if status.split(" ")[1:2] != ["101"]:
        writer.close()
        raise WorldError(f"the container runtime does not open a stream: {status}")
    return Spdy(reader, writer)
