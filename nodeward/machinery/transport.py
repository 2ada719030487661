"""How a request reaches an API server: the seam between the client and the wire.

A `Request` goes in, a `Response` comes out; whether sockets, TLS or nothing but a function call lie between is the
transport's secret. What must stay true: a transport never looks inside bodies, raises `ConnectionFailed` or
`TransportTimeout` (both the world's errors) for everything that kept an answer from coming, and answers every HTTP
status, good or bad, as a `Response`.

Used by the client; implemented by `http_transport` and by the API server in process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from nodeward.base.errors import WorldError


class ConnectionFailed(WorldError):
    """The server could not be reached, or went away before the answer was complete."""


class TransportTimeout(ConnectionFailed):
    """The server did not answer in the time it was given."""


@dataclass(slots=True)
class Request:
    """One HTTP request. `query` is already encoded, without the question mark; header names are lower case."""

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(slots=True)
class Response:
    """One HTTP answer: `body` is all of it, or, if a stream was asked for and granted, `stream` brings it in parts.

    Exactly one of the two is set. Chunks end anywhere, not at line ends. Whoever gets a stream must finish it or
    call its `aclose`.
    """

    status: int
    headers: dict[str, str]
    body: bytes | None = None
    stream: ResponseStream | None = None


class ResponseStream(Protocol):
    """The parts of an answer that has no end yet. Iterating raises `ConnectionFailed` if it breaks off."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Stop reading and release what the stream holds; idempotent."""
        ...


class Transport(Protocol):
    """A way to one API server."""

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        """Send and wait for the answer; with `stream`, for its head only (2xx: `stream` set, else `body`)."""
        ...

    async def aclose(self) -> None:
        """Release everything; idempotent. Streams still open end with `ConnectionFailed`."""
        ...
