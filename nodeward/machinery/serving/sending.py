"""How an answer becomes bytes on a connection: its head, the way out, and the sink that a stream writes to.

What must stay true: bytes leave in the order they were pushed, and the transport is handed only as much as it can
pass on soon. A TLS transport forgets to count what it has encrypted, so whatever is handed over at once is memory that
nobody sees; here it waits where it is counted.

Called by `connection`; calls `answer`.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from nodeward.machinery.serving.answer import JSON, Answer, Streaming, Tunnel

#: The most that is handed to the transport at once.
_PIECE: Final = 256 << 10
#: Seconds of silence, seconds between probes, probes.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 3))
_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
#: Header values are made from what clients sent; a line break in one would begin another header.
_LINE_BREAKS: Final = str.maketrans({"\r": " ", "\n": " ", "\0": " "})
#: How most answers begin.
_USUAL: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"


def head(answer: Answer, extra: tuple[str, ...], *, keep_alive: bool) -> bytes:
    """Return the status line and the headers of an answer."""
    if keep_alive and answer.status == 200 and not answer.headers and answer.content_type == JSON:
        return _USUAL + "\r\n".join((*extra, "", "")).encode("latin-1")
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Unknown')}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-cache, private",
        *extra,
    ]
    lines.extend(f"{name}: {value.translate(_LINE_BREAKS)}" for name, value in answer.headers.items())
    if not keep_alive:
        lines.append("Connection: close")
    return "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


class Outgoing:
    """What is on its way to a peer."""

    __slots__ = ("_backlog", "_backlog_bytes", "_is_flowing", "_transport", "is_empty", "pushed")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._backlog: deque[bytes | memoryview] = deque()
        self._backlog_bytes = 0
        self._is_flowing = True
        #: set while everything pushed has been handed over and more may follow
        self.is_empty = asyncio.Event()
        self.is_empty.set()
        self.pushed = 0

    @property
    def buffered(self) -> int:
        """Bytes pushed and, as far as one can tell, not taken by the peer."""
        return self._backlog_bytes + self._transport.get_write_buffer_size()

    def push(self, data: bytes) -> None:
        self.pushed += len(data)
        if len(data) <= _PIECE and self._is_flowing and not self._backlog:
            self._transport.write(data)
            return
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        self._flush()

    def push_all(self, parts: list[bytes]) -> None:
        """Write small parts together, in few writes, and a large part as it is, without copying it."""
        gathered: list[bytes] = []
        size = 0
        for part in parts:
            if len(part) >= _PIECE:
                self.push(b"".join(gathered))
                self.push(part)
                gathered.clear()
                size = 0
                continue
            gathered.append(part)
            size += len(part)
            if size >= _PIECE:
                self.push(b"".join(gathered))
                gathered.clear()
                size = 0
        if gathered:
            self.push(b"".join(gathered))

    def pause(self) -> None:
        self._is_flowing = False
        self.is_empty.clear()

    def resume(self) -> None:
        self._is_flowing = True
        self._flush()

    def discard(self) -> None:
        """Drop everything: the peer is gone."""
        self._backlog.clear()
        self._backlog_bytes = 0
        self.is_empty.set()

    def _flush(self) -> None:
        while self._backlog and self._is_flowing:
            data = self._backlog.popleft()
            if len(data) > _PIECE:
                view = memoryview(data)
                self._backlog.appendleft(view[_PIECE:])
                data = view[:_PIECE]
            self._backlog_bytes -= len(data)
            self._transport.write(data)
        if self._backlog or not self._is_flowing:
            self.is_empty.clear()
        else:
            self.is_empty.set()


def switching(answer: Answer) -> bytes:
    """Return the head of an answer that switches protocols."""
    lines = ["HTTP/1.1 101 Switching Protocols"]
    lines.extend(f"{name}: {value.translate(_LINE_BREAKS)}" for name, value in answer.headers.items())
    return "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


def ask_when_silent(connection: socket.socket | None) -> None:
    """Have the system ask a silent peer whether it is still there; a machine that is gone is noticed in two minutes."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class StreamSink:
    """A stream's way to the socket, without waiting: in chunks, or for HTTP/1.0 until the connection closes."""

    __slots__ = ("_done", "_is_chunked", "_is_open", "_outgoing", "_stream", "_transport")

    def __init__(
        self,
        outgoing: Outgoing,
        transport: asyncio.Transport,
        stream: Streaming | Tunnel,
        done: Callable[[], None],
        *,
        is_chunked: bool,
    ) -> None:
        self._outgoing = outgoing
        self._transport = transport
        self._stream = stream
        self._done = done
        self._is_chunked = is_chunked
        self._is_open = True

    @property
    def buffered(self) -> int:
        return self._outgoing.buffered

    def write(self, data: bytes) -> None:
        if self._is_open and data:
            self._outgoing.push(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def finish(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._is_chunked:
                self._outgoing.push(b"0\r\n\r\n")
            self._stream.gone()
            self._done()

    def abort(self) -> None:
        if self._is_open:
            self._transport.abort()

    def lost(self) -> None:
        """Note that the connection is gone, and with it the reader."""
        if self._is_open:
            self._is_open = False
            self._stream.gone()


class RawSink(StreamSink):
    """A tunnel's way back to the peer: bytes as they are, and a say in what is read."""

    __slots__ = ("_tunnel",)

    def __init__(
        self, outgoing: Outgoing, transport: asyncio.Transport, tunnel: Tunnel, close: Callable[[], None]
    ) -> None:
        super().__init__(outgoing, transport, tunnel, close, is_chunked=False)
        self._tunnel = tunnel

    def received(self, data: bytes) -> None:
        if self._is_open:
            self._tunnel.received(data)

    def pause(self) -> None:
        if self._is_open:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._is_open:
            self._transport.resume_reading()

    async def drained(self) -> None:
        await self._outgoing.is_empty.wait()
