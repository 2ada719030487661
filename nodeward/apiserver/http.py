"""HTTP/1.1 on a socket: bytes in, requests to the application, answers out.

One `HttpConnection` per connection, on httptools' parser. Requests of one connection are answered one after the other.
What must stay true, whatever a peer sends:

* a request head larger than `MAX_HEAD` is answered 431, a body larger than the application's limit 413;
* a peer that is slow to send a request, or idle, is closed; a peer that does not read stops being read from, and a
  watch it does not read is cut off by the stream itself;
* a broken request is answered 400 and the connection closed; the server lives on.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, cast

import httptools

from nodeward.api.errors import bad_request, internal_error, request_entity_too_large
from nodeward.apiserver.answer import Answer, failure
from nodeward.machinery.clock import Clock, Timer
from nodeward.machinery.transport import Request

LOG = logging.getLogger(__name__)

MAX_HEAD: Final = 64 << 10
#: A request may take this long to arrive; a connection may idle this long between two.
HEAD_SECONDS: Final = 30.0
BODY_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 120.0
#: Answers from this size on are compressed when the client can take it, as kube-apiserver does.
GZIP_FROM: Final = 128 << 10
_GZIP_IN_THREAD: Final = 512 << 10

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


class Peer:
    """The other end of a connection: its address, and what its certificate says."""

    __slots__ = ("address", "certificate", "der", "identity")

    def __init__(
        self, address: str, certificate: dict[str, Any] | None = None, der: bytes | None = None
    ) -> None:
        self.address = address
        self.certificate = certificate
        self.der = der
        #: whatever authentication makes of the certificate, once per connection
        self.identity: object | None = None


Application = Callable[[Request, Peer], Awaitable[Answer]]


class HttpConnection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        application: Application,
        clock: Clock,
        connections: dict[HttpConnection, None],
        *,
        max_body: int,
    ) -> None:
        self._application = application
        self._clock = clock
        self._connections = connections
        self._max_body = max_body
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._peer = Peer("")
        self._queue: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._sink: _ChunkedSink | None = None
        self._timer: Timer | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._closing = False
        self._reset()

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        address = transport.get_extra_info("peername")
        self._peer = Peer(str(address[0]) if address else "")
        if tls is not None:
            self._peer.certificate, self._peer.der = tls.getpeercert(), tls.getpeercert(True)
        self._connections[self] = None
        self._arm(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.pop(self, None)
        self._disarm()
        self._closing = True
        self._can_write.set()
        if self._sink is not None:
            self._sink.lost()
            self._sink = None
        # A request under way is finished all the same: half a request must never have happened.

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(failure(bad_request("this path does not upgrade connections")))
            return
        except httptools.HttpParserError as error:
            self._refuse(failure(bad_request(f"malformed HTTP request: {error}")))
            return
        if not self._in_body and self._head_bytes > MAX_HEAD:
            self._refuse(Answer(431, b"Request Header Fields Too Large", "text/plain; charset=utf-8"))

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # -- the parser's side

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = 0
        self._in_body = False
        self._too_large = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        # Groups to impersonate may come several times; everything else is taken once.
        if key in self._headers and key.startswith("impersonate-"):
            text = f"{self._headers[key]}\n{text}"
        self._headers[key] = text

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._arm(BODY_SECONDS)
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > self._max_body:
            self._too_large = True
        elif self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._too_large:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._max_body:
            self._too_large = True
            self._body.clear()
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._too_large:
            limit = f"limit is {self._max_body}"
            self._refuse(failure(request_entity_too_large(limit)))
            return
        path, _, query = self._url.partition(b"?")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(
            self._parser.get_method().decode("latin-1"),
            path.decode("latin-1"),
            query.decode("latin-1"),
            self._headers,
            body,
        )
        self._queue.append((request, self._parser.should_keep_alive()))
        self._reset()
        self._disarm()
        if self._task is None:
            self._begin()
        elif len(self._queue) > 16:
            self._transport.pause_reading()

    # -- answering

    def _begin(self) -> None:
        request, keep_alive = self._queue.popleft()
        self._task = asyncio.create_task(self._answer(request, keep_alive))

    async def _answer(self, request: Request, keep_alive: bool) -> None:
        try:
            answer = await self._application(request, self._peer)
        except asyncio.CancelledError:
            return
        except Exception:  # the edge: whatever went wrong, this client hears 500 and the others nothing
            LOG.exception("%s %s failed", request.method, request.path)
            answer = failure(internal_error("the server has a bug; its log says more"))
        if self._closing:
            if answer.stream is not None:
                answer.stream.gone()
            return
        if answer.stream is not None:
            self._send_head(answer, ("Transfer-Encoding: chunked",), keep_alive=True)
            self._sink = _ChunkedSink(self._transport, answer.stream, self._stream_done)
            answer.stream.start(self._sink)
            return
        body = answer.body
        encoding: tuple[str, ...] = ()
        if answer.size >= GZIP_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            body = await self._compress(answer)
            encoding = ("Content-Encoding: gzip", "Vary: Accept-Encoding")
        if self._is_closing():
            return
        self._send(answer, body, encoding, keep_alive, is_head=request.method == "HEAD")
        if not self._can_write.is_set():
            await self._can_write.wait()
        self._next(keep_alive)

    async def _compress(self, answer: Answer) -> bytes:
        whole = answer.whole()
        if len(whole) < _GZIP_IN_THREAD:
            return gzip.compress(whole, 1, mtime=0)
        with self._clock.hold("gzip"):
            return await asyncio.to_thread(gzip.compress, whole, 1, mtime=0)

    def _is_closing(self) -> bool:
        return self._closing

    def _next(self, keep_alive: bool) -> None:
        self._task = None
        if self._closing:
            return
        if not keep_alive:
            self._close()
        elif self._queue:
            self._transport.resume_reading()
            self._begin()
        else:
            self._arm(IDLE_SECONDS)

    def _stream_done(self) -> None:
        self._sink = None
        self._next(keep_alive=True)

    def _send_head(self, answer: Answer, extra: tuple[str, ...], *, keep_alive: bool) -> None:
        self._transport.write(_head(answer, extra, keep_alive))

    def _send(
        self,
        answer: Answer,
        body: bytes | list[bytes],
        extra: tuple[str, ...],
        keep_alive: bool,
        *,
        is_head: bool,
    ) -> None:
        size = len(body) if isinstance(body, bytes) else sum(map(len, body))
        head = _head(answer, (*extra, f"Content-Length: {size}"), keep_alive)
        if is_head:
            self._transport.write(head)
        elif isinstance(body, bytes) and size < 64 << 10:
            self._transport.write(head + body)
        elif isinstance(body, bytes):
            self._transport.writelines((head, body))
        else:
            self._transport.writelines((head, *body))

    def _refuse(self, answer: Answer) -> None:
        """Answer a request that never became one, and close."""
        self._send(answer, answer.body, (), keep_alive=False, is_head=False)
        self._close()

    def _close(self) -> None:
        self._closing = True
        self._disarm()
        self._transport.close()

    # -- time

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self._clock.call_later(seconds, self._expired)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        if self._task is None and self._sink is None:
            self._closing = True
            self._transport.abort() if self._in_body or self._url else self._transport.close()

    # -- shutting down

    def shutdown(self) -> None:
        """Finish what is under way, accept nothing more."""
        if self._sink is not None:
            self._sink.finish()
        if self._task is None:
            self._close()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._closing = True
        self._transport.abort()


def _head(answer: Answer, extra: tuple[str, ...], keep_alive: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Unknown')}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-cache, private",
        *extra,
    ]
    lines.extend(f"{name}: {value}" for name, value in answer.headers.items())
    if not keep_alive:
        lines.append("Connection: close")
    return "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


class _ChunkedSink:
    """A stream's way to the socket: chunked transfer, no waiting."""

    __slots__ = ("_done", "_is_open", "_stream", "_transport")

    def __init__(self, transport: asyncio.Transport, stream: Any, done: Callable[[], None]) -> None:
        self._transport = transport
        self._stream = stream
        self._done = done
        self._is_open = True

    @property
    def buffered(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._is_open and data:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self) -> None:
        if self._is_open:
            self._is_open = False
            self._transport.write(b"0\r\n\r\n")
            self._stream.gone()
            self._done()

    def abort(self) -> None:
        if self._is_open:
            self._transport.abort()

    def lost(self) -> None:
        if self._is_open:
            self._is_open = False
            self._stream.gone()
