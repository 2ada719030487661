"""One HTTP/1.1 connection, seen from the client: one request at a time, its answer parsed by httptools.

Bytes of a whole request go in, a `Response` comes out; asked for a stream, the `Response` comes as soon as its head
has arrived and the rest is read as fast as the reader takes it: past a high-water mark the socket is not read.

What must stay true: a connection is used again only after an answer that was read to its end and allows it;
everything that breaks an exchange surfaces as `ConnectionFailed` in whoever waits for it, once.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Final

import httptools

from nodeward.base.invariant import invariant
from nodeward.machinery.clock import Clock
from nodeward.machinery.transport import ConnectionFailed, Response, TransportTimeout

#: Bytes of a stream kept for a slow reader before the socket is left alone, and where reading goes on.
_HIGH_WATER: Final = 1 << 18
_LOW_WATER: Final = 1 << 16

#: zlib: a gzip header is expected.
_GZIP: Final = 31


class NothingReceived(ConnectionFailed):
    """The connection ended before the first byte of an answer: if it was an old one, it may just have been stale."""


class HttpClientConnection(asyncio.Protocol):
    """A connection to `peer` (a name for messages)."""

    def __init__(self, peer: str, clock: Clock) -> None:
        self._peer = peer
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._stream: HttpStream | None = None
        self._wants_stream = False
        self._is_head_request = False
        self._received_any = False
        self._ends_with_connection = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._timeout = 0.0
        #: Answers read to their end.
        self.answered = 0
        #: When it was last put aside, on the monotonic clock; kept here for the pool.
        self.idle_since_ns = 0
        #: Set when the connection is gone and everything it held is released.
        self.lost: Final = self._loop.create_future()

    # -- for the pool ---------------------------------------------------------------------------------------------

    @property
    def is_reusable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and self._waiter is None

    async def exchange(
        self, data: bytes, *, stream: bool, is_head_request: bool, timeout: float | None
    ) -> Response:
        """Send a request and return its answer; a cancelled exchange ends the connection."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise NothingReceived(f"{self._peer} closed the connection")
        invariant(self._waiter is None and self._stream is None, "one request at a time per connection")
        waiter: asyncio.Future[Response] = self._loop.create_future()
        self._waiter = waiter
        self._wants_stream = stream
        self._is_head_request = is_head_request
        self._received_any = False
        transport.write(data)
        if timeout is None:
            timer = None
        else:
            self._timeout = timeout
            timer = self._clock.call_later(timeout, self._on_timeout)
        try:
            return await waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End the connection in good manners; `lost` follows."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection now; `lost` follows on the loop's next turn."""
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's, so a cast by assignment.
        self._transport = transport  # type: ignore[assignment]
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        if self._parser is None:
            return
        if self._waiter is None and self._stream is None:
            # Nobody asked: a server that says good-bye ("408 Request Timeout") before it hangs up.
            self.abort()
            return
        self._received_any = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            cause = error.__context__
            if isinstance(cause, ConnectionFailed):
                self._fail(cause)
            else:
                self._fail(ConnectionFailed(f"{self._peer} sent something that is not HTTP: {error}"))
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._parser = None
        if self._ends_with_connection and exc is None:
            self._complete()
        else:
            kind = ConnectionFailed if self._received_any else NothingReceived
            why = f": {exc}" if exc else ""
            self._fail(kind(f"{self._peer} closed the connection before the answer was complete{why}"))
        if not self.lost.done():
            self.lost.set_result(None)

    # -- httptools ------------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[str(name, "latin-1").lower()] = str(value, "latin-1")

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser is None:
            return
        status = parser.get_status_code()
        if 100 <= status < 200:
            if status == 101:
                raise ConnectionFailed(f"{self._peer} switched protocols, which nobody asked for")
            return
        if self._waiter is None:
            raise ConnectionFailed(f"{self._peer} sent an answer nobody asked for")
        self._status = status
        headers = self._headers
        self._ends_with_connection = (
            "content-length" not in headers
            and "chunked" not in headers.get("transfer-encoding", "").lower()
            and status not in (204, 304)
        )
        if self._is_head_request:
            # The parser cannot know that no body follows; this connection is not used again.
            self._complete()
            self.abort()
        elif self._wants_stream and 200 <= status < 300:
            self._stream = HttpStream(self, headers.get("content-encoding", ""))
            answer = Response(status, headers, None, self._stream)
            waiter, self._waiter = self._waiter, None
            self._headers = {}
            if waiter.done():
                self.abort()
            else:
                waiter.set_result(answer)

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.feed(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._status:
            self._complete()
        else:
            self._headers = {}  # 1xx: the real answer is still to come

    # -- endings --------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        stream, self._stream = self._stream, None
        waiter, self._waiter = self._waiter, None
        status, headers, parts = self._status, self._headers, self._parts
        self._status, self._headers, self._parts = 0, {}, []
        self._ends_with_connection = False
        self.answered += 1
        if self._parser is not None and not self._parser.should_keep_alive():
            self.close()
        if stream is not None:
            stream.finish(None)
        elif waiter is not None and not waiter.done():
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            encoding = headers.get("content-encoding")
            try:
                waiter.set_result(Response(status, headers, _decoded(body, encoding) if encoding else body))
            except ConnectionFailed as error:
                waiter.set_exception(error)
                self.abort()

    def _fail(self, error: ConnectionFailed) -> None:
        stream, self._stream = self._stream, None
        waiter, self._waiter = self._waiter, None
        if stream is not None:
            stream.finish(error)
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _on_timeout(self) -> None:
        self._fail(TransportTimeout(f"{self._peer} did not answer within {self._timeout:g} s"))
        self.abort()


def _decoded(body: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise ConnectionFailed(f"the server used content-encoding {encoding!r}, which was not offered")
    try:
        return zlib.decompress(body, _GZIP)
    except zlib.error as error:
        raise ConnectionFailed(f"the server sent a broken gzip body: {error}") from error


class HttpStream:
    """The body of an answer, part by part. Has one reader."""

    def __init__(self, connection: HttpClientConnection, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip"):
            raise ConnectionFailed(f"the server used content-encoding {encoding!r}, which was not offered")
        self._connection: HttpClientConnection | None = connection
        self._unzip = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        self._parts: list[bytes] = []
        self._size = 0
        self._is_paused = False
        self._is_closed = False
        self._error: ConnectionFailed | None = None
        self._wakeup: asyncio.Future[None] | None = None
        self._arrived_by: HttpClientConnection | None = None
        self._on_arrived: Callable[[HttpClientConnection], None] | None = None

    def when_arrived(self, callback: Callable[[HttpClientConnection], None]) -> None:
        """Call back, now or later, once the answer has arrived whole and its connection may serve again."""
        if self._arrived_by is not None:
            callback(self._arrived_by)
        else:
            self._on_arrived = callback

    def feed(self, data: bytes) -> None:
        if self._unzip is not None:
            try:
                data = self._unzip.decompress(data)
            except zlib.error as error:
                raise ConnectionFailed(f"the server sent a broken gzip body: {error}") from error
        if data and not self._is_closed:
            self._parts.append(data)
            self._size += len(data)
            if self._size > _HIGH_WATER and not self._is_paused and self._connection is not None:
                self._is_paused = True
                self._connection.pause_reading()
            self._wake()

    def finish(self, error: ConnectionFailed | None) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if error is None and self._unzip is not None and not self._unzip.eof:
            error = ConnectionFailed("the server sent a gzip body that breaks off")
        self._error = error
        if self._is_paused:
            self._is_paused = False
            connection.resume_reading()
        if error is None:
            if self._on_arrived is not None:
                self._on_arrived(connection)
            else:
                self._arrived_by = connection
        self._wake()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._parts:
            if self._is_closed:
                raise StopAsyncIteration
            if self._connection is None:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            invariant(self._wakeup is None, "a stream has one reader")
            self._wakeup = asyncio.get_running_loop().create_future()
            try:
                await self._wakeup
            finally:
                self._wakeup = None
        parts, self._parts, self._size = self._parts, [], 0
        if self._is_paused and self._connection is not None:
            self._is_paused = False
            self._connection.resume_reading()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def aclose(self) -> None:
        self._is_closed = True
        self._parts.clear()
        connection, self._connection = self._connection, None
        self._wake()
        if connection is not None:
            # The rest is unread, so the connection is of no more use.
            connection.abort()
            await asyncio.shield(connection.lost)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
