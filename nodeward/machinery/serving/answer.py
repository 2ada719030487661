"""What a handler gives back: a status, headers, and a body or a stream that goes on.

The HTTP edge and the in-process loopback both send answers; handlers know neither.

Made by the handlers of the API server and the kubelet; sent by `sending`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from nodeward.api.codec import encode
from nodeward.api.errors import ApiError
from nodeward.api.meta import Status, StatusDetails

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class ResponseSink(Protocol):
    """Where a stream writes. Nothing here waits: a stream checks `buffered` and drops a peer that does not read."""

    @property
    def buffered(self) -> int:
        """Bytes written and not yet taken by the other side."""
        ...

    def write(self, data: bytes) -> None: ...

    def finish(self) -> None:
        """End the stream in good order."""
        ...

    def abort(self) -> None:
        """Cut the other side off."""
        ...


class Streaming(Protocol):
    """A body that goes on: started once with its sink, told once when the other side is gone."""

    def start(self, sink: ResponseSink) -> None: ...

    def gone(self) -> None:
        """Release everything: the peer left, or the stream was finished. May be called before `start`."""
        ...


class TunnelSink(ResponseSink, Protocol):
    """The way back of a tunnel. `buffered` says when to stop asking the other end for more."""

    def pause(self) -> None:
        """Read no more from the peer for now."""
        ...

    def resume(self) -> None: ...

    async def drained(self) -> None:
        """Wait until the peer has taken enough that more may be written."""
        ...


class Tunnel(Protocol):
    """Bytes both ways, after the protocol was switched: what an `Answer` of 101 goes on with."""

    def start(self, sink: TunnelSink) -> None: ...

    def received(self, data: bytes) -> None:
        """Take bytes from the peer."""
        ...

    def gone(self) -> None:
        """Release everything: the peer left, or the tunnel was finished. May be called before `start`."""
        ...


@dataclass(slots=True)
class Answer:
    """One answer. `body` may be several pieces, which are sent as one."""

    status: int
    body: bytes | list[bytes] = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Streaming | None = None
    #: a stream that heeds `ResponseSink.buffered`: whoever reads it slowly, or not for a while, is waited for
    is_patient: bool = False
    #: with status 101 only
    tunnel: Tunnel | None = None

    @property
    def size(self) -> int:
        return len(self.body) if isinstance(self.body, bytes) else sum(map(len, self.body))

    def whole(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else b"".join(self.body)


def failure(error: ApiError) -> Answer:
    """Return a refused request."""
    status = error.status
    headers: dict[str, str] = {}
    if status.details is not None and status.details.retry_after_seconds:
        headers["Retry-After"] = str(status.details.retry_after_seconds)
    return Answer(status.code, encode(status), headers=headers)


def success(code: int = 200, details: StatusDetails | None = None) -> Answer:
    """Return a `Status` of success for a request without an object to answer with."""
    status = Status(
        kind="Status", api_version="v1", status="Success", details=details, code=code if code != 200 else 0
    )
    return Answer(code, encode(status))
