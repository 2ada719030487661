"""The transport over sockets: HTTP/1.1, plain or TLS, with connections kept open between requests.

Requests go in, answers come out. At most `max_connections` requests are under way at a time, the rest wait in line;
streams (watches) have connections of their own that do not count, or a few of them would starve everybody else.

What must stay true: nobody is handed a connection another request still uses; a request that may have been
processed is never sent twice unless it only reads; after `aclose` no socket is left.

Called by `apiserver.subresources.log`, `kubelet.reporting.running` and `connecting`; calls `http_connection` and
`transport`.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import deque
from typing import Final
from urllib.parse import urlsplit

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.machinery.clock import Clock
from nodeward.machinery.http_connection import HttpClientConnection, HttpStream, NothingReceived
from nodeward.machinery.transport import ConnectionFailed, Request, Response, TransportTimeout

#: Methods that may be sent again when a kept connection turns out to be dead.
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_MAX_HEADER_BLOCKS: Final = 64
#: Requests in flight at most; further ones wait in order. Watches have connections of their own.
MAX_CONNECTIONS: Final = 64
#: What may stand in a request line: anything else would start a second request.
_TARGET: Final = re.compile(r"/[\x21-\x7e]*")
_HEADER: Final = re.compile(r"[!#-'*+\-.^_`|~0-9a-z]+: [\t\x20-\x7e\x80-\xff]*")

#: A kept connection older than this is not used again: something on the way may have forgotten it.
_IDLE_SECONDS: Final = 90.0
#: How long a clean good-bye may take before the connection is cut.
_CLOSE_SECONDS: Final = 1.0
#: Seconds of silence, seconds between probes, probes: a watch notices a dead peer within two minutes.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 3))


class HttpTransport:
    """Connections to one server, `http://host:port/prefix` or `https://...` (then `ssl_context` is needed)."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        ssl_context: ssl.SSLContext | None = None,
        server_name: str = "",
        max_connections: int = MAX_CONNECTIONS,
        request_timeout: float | None = 60.0,
        connect_timeout: float = 30.0,
        accept_gzip: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"server {url!r}: want http://HOST:PORT or https://HOST:PORT")
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise ConfigError(f"server {url!r}: {error}") from error
        if parts.scheme == "https" and ssl_context is None:
            ssl_context = ssl.create_default_context()
        self.url: Final = url
        self._host = parts.hostname
        self._port = port
        self._prefix = parts.path.rstrip("/")
        self._ssl = ssl_context if parts.scheme == "https" else None
        self._server_name = (server_name or parts.hostname) if self._ssl is not None else None
        self._peer = f"{self._host}:{port}"
        self._fixed_head = f"host: {parts.netloc.rpartition('@')[2]}\r\n"
        if accept_gzip:
            self._fixed_head += "accept-encoding: gzip\r\n"
        self._clock = clock
        self._max = max_connections
        self._request_timeout = request_timeout
        self._connect_timeout = connect_timeout
        #: Kept connections, the one used last at the end.
        self._idle: list[HttpClientConnection] = []
        self._all: dict[HttpClientConnection, None] = {}
        self._busy = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self._header_blocks: dict[tuple[tuple[str, str], ...], str] = {}

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        data = self._encode(request)
        is_first_try = True
        if self._busy >= self._max:
            await self._wait_in_line()
        else:
            self._busy += 1
        try:
            while True:
                connection = (self._take_idle() if is_first_try else None) or await self._connect()
                was_kept = connection.answered > 0
                try:
                    response = await connection.exchange(
                        data,
                        stream=stream,
                        is_head_request=request.method == "HEAD",
                        timeout=self._request_timeout,
                    )
                except NothingReceived:
                    if not (is_first_try and was_kept and request.method in _REPEATABLE):
                        raise
                    is_first_try = False
                    continue
                if response.stream is None:
                    self._keep(connection)
                elif isinstance(response.stream, HttpStream):
                    response.stream.when_arrived(self._keep)
                return response
        finally:
            self._leave()

    async def aclose(self) -> None:
        self._is_closed = True
        for place in self._line:
            if not place.done():
                place.set_exception(ConnectionFailed("the transport was closed"))
        self._line.clear()
        self._idle.clear()
        connections = list(self._all)
        for connection in connections:
            connection.close()
        try:
            async with self._clock.timeout(_CLOSE_SECONDS):
                for connection in connections:
                    await asyncio.shield(connection.lost)
        except TimeoutError:
            for connection in connections:
                connection.abort()
                await asyncio.shield(connection.lost)

    # -- connections ----------------------------------------------------------------------------------------------

    async def _wait_in_line(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._leave()  # it was our turn already: pass it on
            raise

    def _leave(self) -> None:
        """Hand the place to the next in line; the count stays the same then."""
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._busy -= 1

    def _take_idle(self) -> HttpClientConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_reusable:
                continue
            if self._clock.monotonic_ns() - connection.idle_since_ns > _IDLE_SECONDS * SECOND_NS:
                connection.close()
                continue
            return connection
        return None

    def _keep(self, connection: HttpClientConnection) -> None:
        if not connection.is_reusable:
            return
        if self._is_closed or len(self._idle) >= self._max:
            connection.close()
            return
        connection.idle_since_ns = self._clock.monotonic_ns()
        self._idle.append(connection)

    async def _connect(self) -> HttpClientConnection:
        self._check_open()
        loop = asyncio.get_running_loop()
        try:
            async with self._clock.timeout(self._connect_timeout):
                transport, connection = await loop.create_connection(
                    lambda: HttpClientConnection(self._peer, self._clock),
                    self._host,
                    self._port,
                    ssl=self._ssl,
                    server_hostname=self._server_name,
                )
        except TimeoutError as error:
            raise TransportTimeout(
                f"cannot connect to {self._peer} within {self._connect_timeout:g} s"
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise ConnectionFailed(
                f"the certificate of {self._peer} cannot be verified: {error.verify_message}"
            ) from error
        except OSError as error:
            raise ConnectionFailed(f"cannot connect to {self._peer}: {error}") from error
        _keep_alive(transport.get_extra_info("socket"))
        self._all[connection] = None
        connection.lost.add_done_callback(lambda _: self._all.pop(connection, None))
        try:
            self._check_open()
        except ConnectionFailed:
            connection.abort()
            raise
        return connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionFailed(f"the transport to {self._peer} was closed")

    # -- bytes ----------------------------------------------------------------------------------------------------

    def _encode(self, request: Request) -> bytes:
        target = self._prefix + request.target
        if not _TARGET.fullmatch(target):
            raise ConfigError(f"{target!r} cannot be a request target")
        key = tuple(request.headers.items())
        headers = self._header_blocks.get(key) or self._check_headers(key)
        body = request.body
        length = f"content-length: {len(body)}\r\n" if body or request.method in _WITH_BODY else ""
        head = f"{request.method} {target} HTTP/1.1\r\n{headers}{length}\r\n"
        return head.encode("latin-1") + body

    def _check_headers(self, headers: tuple[tuple[str, str], ...]) -> str:
        """Return the header lines; remembered, since a client sends the same few sets again and again."""
        lines = [f"{name}: {value}" for name, value in headers]
        for line in lines:
            if not _HEADER.fullmatch(line):
                raise ConfigError(f"{line!r} cannot be a header")
        block = self._fixed_head + "".join(f"{line}\r\n" for line in lines)
        if len(self._header_blocks) >= _MAX_HEADER_BLOCKS:
            self._header_blocks.clear()
        self._header_blocks[headers] = block
        return block


def _keep_alive(sock: socket.socket | None) -> None:
    """Let the kernel notice a peer that vanished without a word."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
