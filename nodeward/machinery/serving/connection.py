"""HTTP/1.1 on a socket: bytes in, requests to the application, answers out.

One `HttpServerConnection` per connection, made by `listener`, on httptools' parser. Requests of one connection are
answered one after the other. What must stay true, whatever a peer sends:

* a request head larger than `Limits.max_head` is answered 431, a body larger than `max_body` 413, at once;
* a peer that is slow to send a request, or idle, is closed; a peer that does not read its answer is cut off after
  `stall_seconds`, and a watch that falls behind is cut off by the stream itself; only tunnels and patient streams,
  which hold back themselves, wait for as long as the peer's machine answers;
* what a request is never depends on who reads it: a length given twice or in two ways, folded headers and trailers
  that pose as headers are refused or passed over;
* a broken request is answered 400, after those before it, and the connection closed; the server lives on.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import httptools

from nodeward.api.errors import (
    bad_request,
    internal_error,
    method_not_allowed,
    request_entity_too_large,
)
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock, Timer
from nodeward.machinery.serving.answer import TEXT, Answer, Streaming, Tunnel, failure
from nodeward.machinery.serving.limits import Limits
from nodeward.machinery.serving.sending import Outgoing, RawSink, StreamSink, ask_when_silent, head, switching
from nodeward.machinery.transport import Request

LOG = logging.getLogger(__name__)

#: Answers from this size on are compressed when the client can take it, as kube-apiserver does.
GZIP_FROM: Final = 128 << 10
_GZIP_IN_THREAD: Final = 512 << 10
#: Requests read ahead of the one being answered.
_READ_AHEAD: Final = 16
#: Headers of which every value counts; of all others the first does, as in Go.
_REPEATED: Final = ("impersonate-group", "impersonate-extra-", "x-stream-protocol-version")


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
#: Looks at a request whose body is still to come; the answer, if there is one, is the end of it.
Screen = Callable[[Request, Peer], Answer | None]
#: A body of more bytes is not read before its request was looked at.
SCREENED_FROM: Final = 16 << 10


class HttpServerConnection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        application: Application,
        clock: Clock,
        connections: dict[HttpServerConnection, None],
        limits: Limits,
        screen: Screen | None = None,
    ) -> None:
        self._application = application
        self._screen = screen
        self._clock = clock
        self._connections = connections
        self._limits = limits
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._peer = Peer("")
        #: requests, or the refusal of what was none, and whether the connection stays open after
        self._queue: deque[tuple[Request | Answer, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._sink: StreamSink | RawSink | None = None
        #: what came after a request to switch protocols, until that is answered
        self._early: bytearray | None = None
        self._timer: Timer | None = None
        #: when the peer must have sent what we wait for; 0: it is our turn
        self._deadline_ns = 0
        self._outgoing: Outgoing = cast(Outgoing, None)
        self._taken = 0
        self._stall_ns = 0
        #: nobody is cut off for not reading
        self._is_patient = False
        #: no more is read (the last request was, or it made no sense)
        self._is_deaf = False
        self._is_closing = False
        self._is_stopping = False
        self._reset()

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outgoing = Outgoing(self._transport)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        address = transport.get_extra_info("peername")
        self._peer = Peer(str(address[0]) if address else "")
        if tls is not None:
            self._peer.certificate, self._peer.der = tls.getpeercert(), tls.getpeercert(True)
        addresses = (each._peer.address for each in self._connections)
        if self._limits.are_reached(len(self._connections), addresses, self._peer.address):
            self._is_closing = True
            self._transport.abort()
            return
        self._connections[self] = None
        self._expect(self._limits.head_seconds)
        self._timer = self._clock.call_later(self._limits.shortest_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_closing = True
        self._queue.clear()
        self._outgoing.discard()
        if self._sink is not None:
            self._sink.lost()
            self._sink = None
        # A request under way is finished all the same: half a request must never have happened.

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self._is_closing:
            if isinstance(self._sink, RawSink):
                self._sink.received(data)
            elif self._early is not None:
                self._keep_early(data)
            return
        if not self._wire_bytes:
            self._expect(self._limits.head_seconds)
        self._wire_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._is_deaf = True  # the request is in the queue; what follows it is not HTTP
            self._early = bytearray()
            self._keep_early(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            if not self._is_deaf:
                is_method = isinstance(error, httptools.HttpParserInvalidMethodError)
                why = method_not_allowed() if is_method else bad_request(f"malformed HTTP request: {error}")
                self._refuse(failure(why))
            return
        # Whatever the parser still holds back, and trailers and chunk extensions, must not outgrow the content.
        if self._wire_bytes > self._limits.max_head + 9 * self._body_bytes and not self._is_deaf:
            self._refuse(_too_large_head())

    def _keep_early(self, data: bytes) -> None:
        if self._early is not None:
            self._early += data
            if len(self._early) > self._limits.max_head:
                self.abort()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._outgoing.pause()
        self._note_progress()

    def resume_writing(self) -> None:
        self._outgoing.resume()
        if self._is_closing and self._outgoing.is_empty.is_set():
            self._transport.close()

    # -- the parser's side

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._body_bytes = 0
        self._head_bytes = 0
        self._wire_bytes = 0
        self._in_body = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            return  # a trailer comes after we decided by the headers
        self._head_bytes += len(name) + len(value)
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        known = self._headers.get(key)
        if known is None:
            self._headers[key] = text
        elif key.startswith(_REPEATED):
            self._headers[key] = f"{known}\n{text}"
        elif key == "host" and not self._is_deaf:
            self._refuse(failure(bad_request("too many Host headers")))

    def on_headers_complete(self) -> None:
        if self._is_deaf:
            return
        self._in_body = True
        self._wire_bytes = 1
        self._expect(self._limits.body_seconds)
        refusal = self._objection()
        if refusal is not None:
            self._refuse(refusal)
        elif self._headers.get("expect") and self._task is None and self._parser.get_http_version() == "1.1":
            self._outgoing.push(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _objection(self) -> Answer | None:
        """Return what is wrong with a request whose head we have; None if nothing is."""
        headers, version = self._headers, self._parser.get_http_version()
        if len(self._url) + self._head_bytes > self._limits.max_head:
            return _too_large_head()
        if version not in ("1.1", "1.0"):
            return Answer(505, b"505 HTTP Version Not Supported: unsupported protocol version", TEXT)
        if version == "1.1" and "host" not in headers:
            return failure(bad_request("missing required Host header"))
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            return Answer(501, b"501 Not Implemented: Unsupported transfer encoding", TEXT)
        if headers.get("expect", "100-continue").lower() != "100-continue":
            return Answer(417, b"417 Expectation Failed", TEXT)
        size = int(headers.get("content-length", "0"))
        if size > self._limits.max_body:
            return self._too_large_body()
        if self._screen is not None and (size > SCREENED_FROM or "transfer-encoding" in headers):
            # Whoever may not do what they ask for need not send us megabytes first.
            return self._screen(self._request(), self._peer)
        return None

    def on_body(self, body: bytes) -> None:
        if self._is_deaf:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.max_body:
            self._body = b""
            self._refuse(self._too_large_body())
        elif not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body

    def _too_large_body(self) -> Answer:
        return failure(request_entity_too_large(f"limit is {self._limits.max_body}"))

    def on_message_complete(self) -> None:
        if self._is_deaf:
            return
        request = self._request()
        keep_alive = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._is_deaf = not keep_alive
        self._take(request, keep_alive)
        self._reset()

    def _request(self) -> Request:
        """Return the request as far as it has come."""
        url = self._url
        if not url.startswith(b"/") and b"://" in url:
            url = b"/" + url.partition(b"://")[2].partition(b"/")[2]  # as one writes to a proxy
        path, _, query = url.partition(b"?")
        return Request(
            self._parser.get_method().decode("latin-1"),
            path.decode("latin-1"),
            query.decode("latin-1"),
            self._headers,
            bytes(self._body),
        )

    # -- answering

    def _take(self, turn: Request | Answer, keep_alive: bool) -> None:
        self._deadline_ns = 0
        self._queue.append((turn, keep_alive))
        if self._task is None:
            self._begin()
        elif len(self._queue) > _READ_AHEAD:
            self._transport.pause_reading()

    def _refuse(self, answer: Answer) -> None:
        """Answer what never became a request, after those before it; nothing more is read."""
        self._is_deaf = True
        if self._sink is not None:
            self._transport.abort()  # there is no end of the stream to wait for, and no place for an answer in it
        else:
            self._take(answer, False)

    def _begin(self) -> None:
        turn, keep_alive = self._queue.popleft()
        if isinstance(turn, Request):
            self._task = asyncio.create_task(self._answer(turn, keep_alive))
            return
        self._send(turn, turn.body, (), keep_alive=False, is_head=False)
        # Closing now would reset the connection under a peer that still sends, and it would never read why.
        self._expect(self._limits.linger_seconds)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._clock.call_later(self._limits.linger_seconds, self._close)

    async def _answer(self, request: Request, keep_alive: bool) -> None:
        try:
            answer = await self._application(request, self._peer)
        except Exception:  # the edge: whatever went wrong, this client hears 500 and the others nothing
            LOG.exception("%s %s failed", request.method, request.path)
            answer = failure(internal_error("the server has a bug; its log says more"))
        try:
            if answer.tunnel is not None:
                self._start_tunnel(answer, answer.tunnel)
            elif answer.stream is not None:
                self._start_stream(request, answer, answer.stream, keep_alive)
            elif not self._is_closing:
                await self._send_whole(request, answer, keep_alive and not self._is_stopping)
        except Exception:  # the answer is half sent: all that can still be said is that it broke off
            LOG.exception("the answer to %s %s failed", request.method, request.path)
            self.abort()

    def _start_stream(self, request: Request, answer: Answer, stream: Streaming, keep_alive: bool) -> None:
        if self._is_closing or self._is_stopping or request.method == "HEAD":
            stream.gone()
            if not self._is_closing:
                self._send(answer, b"", (), keep_alive=False, is_head=True)
                self._close()
            return
        is_chunked = self._parser.get_http_version() != "1.0"
        keep_alive = keep_alive and is_chunked
        extra = ("Transfer-Encoding: chunked",) if is_chunked else ()
        self._outgoing.push(head(answer, extra, keep_alive=keep_alive))

        def done() -> None:
            self._sink = None
            self._is_patient = False
            self._next(keep_alive)

        if answer.is_patient:
            self._be_patient()
        self._sink = StreamSink(self._outgoing, self._transport, stream, done, is_chunked=is_chunked)
        stream.start(self._sink)

    def _start_tunnel(self, answer: Answer, tunnel: Tunnel) -> None:
        if self._is_closing or self._is_stopping:
            tunnel.gone()
            self._close()
            return
        self._be_patient()
        self._outgoing.push(switching(answer))
        early, self._early = bytes(self._early or b""), None
        sink = self._sink = RawSink(self._outgoing, self._transport, tunnel, self._close)
        tunnel.start(sink)
        if early:
            sink.received(early)

    async def _send_whole(self, request: Request, answer: Answer, keep_alive: bool) -> None:
        body = answer.body
        encoding: tuple[str, ...] = ()
        if answer.size >= GZIP_FROM and "gzip" in request.headers.get("accept-encoding", ""):
            body = await self._compress(answer)
            encoding = ("Content-Encoding: gzip", "Vary: Accept-Encoding")
        if self._is_over():
            return
        self._send(answer, body, encoding, keep_alive=keep_alive, is_head=request.method == "HEAD")
        if not self._outgoing.is_empty.is_set():
            await self._outgoing.is_empty.wait()
        self._next(keep_alive)

    def _is_over(self) -> bool:
        return self._is_closing

    async def _compress(self, answer: Answer) -> bytes:
        whole = answer.whole()
        if len(whole) < _GZIP_IN_THREAD:
            return gzip.compress(whole, 1, mtime=0)
        with self._clock.hold("gzip"):
            return await asyncio.to_thread(gzip.compress, whole, 1, mtime=0)

    def _next(self, keep_alive: bool) -> None:
        self._task = None
        if self._is_closing:
            return
        if not keep_alive or self._is_stopping:
            self._close()
        elif self._queue:
            self._transport.resume_reading()
            self._begin()
        elif self._in_body:
            self._expect(self._limits.body_seconds)
        else:
            self._expect(self._limits.head_seconds if self._wire_bytes else self._limits.idle_seconds)

    def _send(
        self,
        answer: Answer,
        body: bytes | list[bytes],
        extra: tuple[str, ...],
        *,
        keep_alive: bool,
        is_head: bool,
    ) -> None:
        size = len(body) if isinstance(body, bytes) else sum(map(len, body))
        start = head(answer, (*extra, f"Content-Length: {size}"), keep_alive=keep_alive)
        if is_head:
            self._outgoing.push(start)
        elif isinstance(body, bytes) and size < 64 << 10:
            self._outgoing.push(start + body)
        elif isinstance(body, bytes):
            self._outgoing.push(start)
            self._outgoing.push(body)
        else:
            self._outgoing.push_all([start, *body])

    def _close(self) -> None:
        """Say good-bye once everything is handed over."""
        self._is_closing = True
        self._note_progress()
        if self._outgoing.is_empty.is_set():
            self._transport.close()

    # -- time

    def _expect(self, seconds: float) -> None:
        """Start the deadline for what the peer is to send next."""
        if self._task is None:
            self._deadline_ns = self._clock.monotonic_ns() + int(seconds * SECOND_NS)

    def _note_progress(self) -> None:
        self._taken = self._outgoing.pushed - self._outgoing.buffered
        self._stall_ns = self._clock.monotonic_ns() + int(self._limits.stall_seconds * SECOND_NS)

    def _be_patient(self) -> None:
        self._is_patient = True
        ask_when_silent(self._transport.get_extra_info("socket"))

    def _look(self) -> None:
        """Check deadlines: does the peer still send what it began, and read what it asked for?

        One timer that looks is much cheaper than one that is set for every request.
        """
        now = self._clock.monotonic_ns()
        if not self._outgoing.is_empty.is_set() and (not self._is_patient or self._is_closing):
            if self._outgoing.pushed - self._outgoing.buffered > self._taken:
                self._note_progress()
            elif now >= self._stall_ns:
                self.abort()
                return
        left = self._limits.shortest_seconds
        if self._deadline_ns and self._task is None and not self._is_closing:
            if now >= self._deadline_ns:
                self._is_closing = True
                self._transport.abort() if self._wire_bytes else self._transport.close()
            left = min(left, max(self._deadline_ns - now, 0) / SECOND_NS)
        # A closed transport may still hold what the peer does not read, so looking goes on until it is gone.
        self._timer = self._clock.call_later(max(left, 0.001), self._look)

    @property
    def buffered(self) -> int:
        """Bytes the peer has not taken yet."""
        return self._outgoing.buffered

    # -- shutting down

    def shutdown(self) -> None:
        """Finish what is under way, accept nothing more."""
        self._is_stopping = True
        if self._sink is not None:
            self._sink.finish()
        elif self._task is None:
            self._close()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._is_closing = True
        self._transport.abort()


def _too_large_head() -> Answer:
    return Answer(431, b"431 Request Header Fields Too Large", TEXT)
