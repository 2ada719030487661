"""A load generator that costs less than what it loads: raw HTTP/1.1 over kept TLS connections.

`hammer` keeps connections busy with requests made beforehand and records how long each answer took; `listen` opens
watches and counts the events that arrive. Nothing is decoded: the server is what is measured.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.machinery.clock import Clock


def request(method: str, target: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """One request, ready for the wire."""
    head = f"{method} {target} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


@dataclass(slots=True)
class Result:
    """What a run of requests came to."""

    seconds: float
    latencies_ns: list[int] = field(repr=False)
    bytes_read: int = 0

    @property
    def rate(self) -> float:
        return len(self.latencies_ns) / self.seconds

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_ns)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e6


class _Connection(asyncio.Protocol):
    """Sends the next request as soon as the last is answered."""

    def __init__(
        self, requests: Iterator[bytes], expected: bytes, clock: Clock, done: asyncio.Future[None]
    ) -> None:
        self._requests = requests
        self._expected = expected
        self._clock = clock
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._missing = 0
        self._sent_ns = 0
        self.latencies_ns: list[int] = []
        self.bytes_read = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def _next(self) -> None:
        assert self._transport is not None
        following = next(self._requests, None)
        if following is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._sent_ns = self._clock.monotonic_ns()
        self._transport.write(following)

    def data_received(self, data: bytes) -> None:
        self.bytes_read += len(data)
        if self._missing:
            self._missing -= len(data)
            if self._missing <= 0:
                self._answered()
            return
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end]
        if not head.startswith(self._expected):
            self._fail(f"the server answered {self._buffer[:300]!r}")
            return
        at = head.find(b"Content-Length: ") + 16
        stop = head.find(b"\r", at)
        length = int(head[at : stop if stop > 0 else len(head)])
        self._missing = length - (len(self._buffer) - end - 4)
        self._buffer = b""
        if self._missing <= 0:
            self._answered()

    def _answered(self) -> None:
        self._missing = 0
        self.latencies_ns.append(self._clock.monotonic_ns() - self._sent_ns)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._fail(f"the server closed the connection: {exc}")

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(WorldError(why))


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, and how to be believed by it."""

    host: str
    port: int
    tls: ssl.SSLContext
    clock: Clock


async def hammer(
    target: Target, requests: Iterator[bytes], *, connections: int, expected: int = 200
) -> Result:
    """All requests, over that many connections, as fast as they are answered."""
    loop = asyncio.get_running_loop()
    status = b"HTTP/1.1 %d" % expected
    waits = [loop.create_future() for _ in range(connections)]
    started = target.clock.monotonic_ns()
    protocols = [
        (
            await loop.create_connection(
                lambda wait=wait: _Connection(requests, status, target.clock, wait),  # type: ignore[misc]
                target.host,
                target.port,
                ssl=target.tls,
            )
        )[1]
        for wait in waits
    ]
    await asyncio.gather(*waits)
    seconds = (target.clock.monotonic_ns() - started) / SECOND_NS
    latencies = [latency for protocol in protocols for latency in protocol.latencies_ns]
    return Result(seconds, latencies, sum(protocol.bytes_read for protocol in protocols))


class _Listener(asyncio.Protocol):
    """Reads a watch and counts events."""

    def __init__(self, request_: bytes, counter: Counter) -> None:
        self._request = request_
        self._counter = counter
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)
        self._counter.transports.append(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        # A mark may be cut in two by the network: what could be its beginning is looked at again.
        text = self._tail + data
        self._counter.add(text.count(_MARK))
        self._tail = text[-(len(_MARK) - 1) :]


_MARK = b'{"type":"'


class Counter:
    """Events that arrived, over all listeners."""

    def __init__(self) -> None:
        self.count = 0
        self.transports: list[asyncio.Transport] = []
        self._wanted = 0
        self._reached: asyncio.Future[None] | None = None

    def add(self, number: int) -> None:
        self.count += number
        if self._reached is not None and self.count >= self._wanted and not self._reached.done():
            self._reached.set_result(None)

    async def reach(self, wanted: int) -> None:
        self._wanted = wanted
        if self.count < wanted:
            self._reached = asyncio.get_running_loop().create_future()
            await self._reached

    def close(self) -> None:
        for transport in self.transports:
            transport.abort()


async def listen(target: Target, watch: str, number: int) -> Counter:
    """That many watches, open and waiting."""
    loop = asyncio.get_running_loop()
    counter = Counter()
    text = request("GET", watch)
    for start in range(0, number, 50):
        await asyncio.gather(
            *(
                loop.create_connection(
                    lambda: _Listener(text, counter), target.host, target.port, ssl=target.tls
                )
                for _ in range(start, min(start + 50, number))
            )
        )
    return counter
