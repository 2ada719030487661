"""A connection that switches protocols, seen from the client: one request, its answer, then bytes both ways.

Used for exec, attach and port-forward: by the API server towards a kubelet, by the kubelet towards a CRI runtime.
`upgrade` connects, sends the request and reads the head of the answer. It returns an `UpgradedConnection`, whose bytes
mean whatever the two ends agreed on, or the `Response` of a server that did not switch.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

import httptools

from nodeward.machinery.clock import Clock
from nodeward.machinery.transport import ConnectionFailed, Request, Response, TransportTimeout

#: The most of a refusal that is read.
_MOST_REFUSAL: Final = 50_000
_MOST_HEAD: Final = 64 << 10
_PIECE: Final = 64 << 10
#: A peer that takes less than this of what was written is waited for.
_HIGH_WATER: Final = 256 << 10
#: How long an end may take that the other side is to agree to.
_GOODBYE_SECONDS: Final = 1.0


class UpgradedConnection:
    """Bytes both ways; `headers` are those of the answer that switched."""

    def __init__(
        self,
        headers: dict[str, str],
        early: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.headers: Final = headers
        self._early = early
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """Return what comes next; nothing once the other end has closed or is gone."""
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return await self._reader.read(_PIECE)
        except (OSError, ssl.SSLError):
            return b""

    def write(self, data: bytes) -> bool:
        """Send; True: wait for `drained` before more."""
        transport = self._writer.transport
        if transport.is_closing():
            return False
        self._writer.write(data)
        return transport.get_write_buffer_size() > _HIGH_WATER

    async def drained(self) -> None:
        try:
            await self._writer.drain()
        except (OSError, ssl.SSLError):
            return  # whoever reads notices

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


async def upgrade(
    host: str, port: int, tls: ssl.SSLContext | None, request: Request, clock: Clock, *, seconds: float = 30.0
) -> UpgradedConnection | Response:
    """Ask to switch. Raises `ConnectionFailed` when there is no answer."""
    writer: asyncio.StreamWriter | None = None
    switched: UpgradedConnection | None = None
    try:
        async with clock.timeout(seconds):
            goodbye = None if tls is None else _GOODBYE_SECONDS
            reader, writer = await asyncio.open_connection(host, port, ssl=tls, ssl_shutdown_timeout=goodbye)
            writer.transport.set_write_buffer_limits(high=_HIGH_WATER)
            writer.write(_encode(host, port, request))
            answer = _Answer()
            early = await answer.read(reader)
        if answer.status == 101:
            switched = UpgradedConnection(answer.headers, early, reader, writer)
            return switched
        return Response(answer.status, answer.headers, bytes(answer.body[:_MOST_REFUSAL]))
    except TimeoutError:
        raise TransportTimeout(f"{host}:{port} did not answer in {seconds:g} s") from None
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConnectionFailed(f"dial tcp {host}:{port}: {why}") from error
    except httptools.HttpParserError as error:
        raise ConnectionFailed(f"{host}:{port} did not answer in HTTP: {error}") from error
    finally:
        if writer is not None and switched is None:
            writer.close()


def _encode(host: str, port: int, request: Request) -> bytes:
    name = f"[{host}]" if ":" in host else host
    lines = [f"{request.method} {request.target} HTTP/1.1", f"host: {name}:{port}"]
    lines.extend(f"{key}: {line}" for key, value in request.headers.items() for line in value.split("\n"))
    return "\r\n".join((*lines, "", "")).encode("latin-1") + request.body


class _Answer:
    """The answer as far as it has come."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._is_whole = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    async def read(self, reader: asyncio.StreamReader) -> bytes:
        """Read it all, or up to a switch; gives what came after that."""
        received = 0
        while not self._is_whole:
            data = await reader.read(_PIECE)
            if not data:
                if not self.status:
                    raise ConnectionResetError("the connection was closed without an answer")
                return b""  # a body that ends with the connection, or breaks off
            received += len(data)
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as switch:
                return bytes(data[switch.args[0] :])
            if len(self.body) > _MOST_REFUSAL or received > _MOST_REFUSAL + _MOST_HEAD:
                return b""
        return b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self._is_whole = True
