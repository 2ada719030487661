"""How an answer becomes bytes on a connection: its head, and the sink that a stream writes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from nodeward.apiserver.answer import Answer, Streaming

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
#: Header values are made from what clients sent; a line break in one would begin another header.
_LINE_BREAKS: Final = str.maketrans({"\r": " ", "\n": " ", "\0": " "})


def head(answer: Answer, extra: tuple[str, ...], *, keep_alive: bool) -> bytes:
    """The status line and the headers of an answer."""
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


class Outgoing(Protocol):
    """A connection as its stream sees it."""

    #: bytes handed to the transport so far, to tell a slow reader from one that does not read
    written: int


class StreamSink:
    """A stream's way to the socket, without waiting: in chunks, or for HTTP/1.0 until the connection closes."""

    __slots__ = ("_connection", "_done", "_is_chunked", "_is_open", "_stream", "_transport")

    def __init__(
        self,
        connection: Outgoing,
        transport: asyncio.Transport,
        stream: Streaming,
        done: Callable[[], None],
        *,
        is_chunked: bool,
    ) -> None:
        self._connection = connection
        self._transport = transport
        self._stream = stream
        self._done = done
        self._is_chunked = is_chunked
        self._is_open = True

    @property
    def buffered(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._is_open and data:
            self._connection.written += len(data)
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def finish(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._is_chunked:
                self._transport.write(b"0\r\n\r\n")
            self._stream.gone()
            self._done()

    def abort(self) -> None:
        if self._is_open:
            self._transport.abort()

    def lost(self) -> None:
        """The connection is gone, and with it whoever was reading."""
        if self._is_open:
            self._is_open = False
            self._stream.gone()
