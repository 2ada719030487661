"""Calling the members of an etcd cluster: one channel each, the next one when one does not answer.

In: requests. Out: answers, or one of three outcomes: etcd refused (`EtcdRefused`, with etcd's text), nobody
answered in time (`StoreUnavailable`, nothing known about the last attempt), or, for a caller that must know,
a single failed attempt (`EtcdConnectionLost`).

What must stay true: a call is only ever repeated here if repeating it is harmless, which the caller says by
using `ask`.

Called by `etcd`, `etcd_stream` and `opening`; calls `grpc_stream` and `messages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from nodeward.base.errors import ConfigError, NodewardError
from nodeward.store.etcd_wire import messages
from nodeward.store.etcd_wire.grpc_stream import GrpcStream
from nodeward.store.interface import StoreClosed, StoreUnavailable

#: One attempt may take this long. A write caught by a change of leader is never answered: try again soon. A page of a
#: range may be tens of megabytes: give it time.
_ATTEMPT_SECONDS: Final = {"Range": 5.0, "Txn": 2.0, "Compact": 5.0, "Status": 2.0}
#: a call as a whole, with all its attempts
CALL_SECONDS: Final = 15.0
_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 0.5

#: A member that was stopped or cut off is found out within seconds rather than TCP's minutes.
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.http2.ping_timeout_ms", 2_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
    # Channels to the same member must not share a connection with those of another store in this process.
    ("grpc.use_local_subchannel_pool", 1),
)

#: the member may be able to answer later, or another one now; the call may or may not have had an effect
_TRANSIENT: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)

#: a member that has lost the others refuses, instead of keeping us waiting
_METADATA: Final = (("hasleader", "true"),)


class EtcdRefused(NodewardError):
    """etcd answered that it will not do this; `code` and the text are etcd's."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class EtcdConnectionLost(NodewardError):
    """An attempt failed on the way; whether etcd acted on it is not known."""


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """PEM files: whom to trust, and, together, who we are."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(_read(self.ca), _read(self.key), _read(self.cert))


def _read(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {file}: {error.strerror}; it should be a PEM file for etcd"
        ) from error


class _Member:
    """One endpoint: its channel and the calls it offers."""

    def __init__(self, endpoint: str, tls: EtcdTls | None) -> None:
        self.endpoint = endpoint
        # Streams are read by a thread of their own (see `tap.py`), hence a channel of the other kind for them.
        if tls is None:
            self.channel = grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
            self.stream_channel = grpc.insecure_channel(endpoint, options=_OPTIONS)
        else:
            credentials = tls.credentials()
            self.channel = grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)
            self.stream_channel = grpc.secure_channel(endpoint, credentials, options=_OPTIONS)
        self.calls: dict[str, Any] = {
            "Range": self._unary("KV/Range", messages.RangeRequest, messages.RangeResponse),
            "Txn": self._unary("KV/Txn", messages.TxnRequest, messages.TxnResponse),
            "Compact": self._unary("KV/Compact", messages.CompactionRequest, messages.CompactionResponse),
            "Status": self._unary("Maintenance/Status", messages.StatusRequest, messages.StatusResponse),
        }
        self.watch: Any = self.stream_channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=messages.WatchRequest.SerializeToString,
            response_deserializer=messages.WatchResponse.FromString,
        )

    def _unary(self, path: str, request: Any, response: Any) -> Any:
        return self.channel.unary_unary(
            f"/etcdserverpb.{path}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )


class RetryPauses:
    """Growing pauses between attempts, until the time for the whole call is over."""

    def __init__(self, closing: asyncio.Event, seconds: float) -> None:
        self._closing = closing
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + seconds
        self._pause = _FIRST_PAUSE_SECONDS

    @property
    def remaining(self) -> float:
        return self._end - self._loop.time()

    async def wait(self, reason: Exception) -> None:
        """Wait before the next attempt; raises if there shall be none."""
        if self.remaining <= self._pause or self._closing.is_set():
            raise StoreUnavailable(f"etcd does not answer: {reason}") from reason
        await pause(self._closing, self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)


async def pause(closing: asyncio.Event, seconds: float) -> None:
    """Let some time pass, or less if the store is closed meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            await closing.wait()
    except TimeoutError:
        pass


class EtcdMembers:
    """The cluster as one thing to call. Attempts go to the member that worked last."""

    def __init__(
        self, endpoints: Sequence[str], tls: EtcdTls | None, call_seconds: float = CALL_SECONDS
    ) -> None:
        self.call_seconds = call_seconds
        self._endpoints = tuple(endpoints)
        self._members = [_Member(endpoint, tls) for endpoint in endpoints]
        self._preferred = 0
        self._under_way = 0
        self._all_done = asyncio.Event()
        self.closing = asyncio.Event()

    def __str__(self) -> str:
        return ",".join(self._endpoints)

    async def attempt(self, call: str, request: Any, at_most: float) -> Any:
        """One attempt at one member, within `at_most` seconds. Raises `EtcdRefused` or `EtcdConnectionLost`."""
        if self.closing.is_set():
            raise StoreClosed("the store is closed")
        number = self._preferred
        member = self._members[number]
        seconds = max(min(_ATTEMPT_SECONDS[call], at_most), 0.001)
        self._under_way += 1
        try:
            return await member.calls[call](request, timeout=seconds, metadata=_METADATA)
        except grpc.aio.AioRpcError as error:
            details = error.details() or error.code().name
            if error.code() in _TRANSIENT:
                self.avoid(number)
                raise EtcdConnectionLost(f"{member.endpoint}: {details}") from error
            raise EtcdRefused(error.code(), details) from error
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._all_done.set()

    async def ask(self, call: str, request: Any, seconds: float | None = None) -> Any:
        """Attempts until somebody answers: for calls that may be repeated without harm."""
        pauses = RetryPauses(self.closing, self.call_seconds if seconds is None else seconds)
        while True:
            try:
                return await self.attempt(call, request, pauses.remaining)
            except EtcdConnectionLost as error:
                await pauses.wait(error)

    def watch(self) -> tuple[int, GrpcStream]:
        """Return a new watch stream at the preferred member, and that member's number."""
        member = self._members[self._preferred]
        return self._preferred, GrpcStream(lambda requests: member.watch(requests, metadata=_METADATA))

    def avoid(self, number: int) -> None:
        """Prefer the next member, unless somebody else has moved on already."""
        if self._preferred == number:
            self._preferred = (number + 1) % len(self._members)

    async def close(self) -> None:
        """No new attempts; those under way are waited for (they have a time limit)."""
        self.closing.set()
        while self._under_way:
            self._all_done.clear()
            await self._all_done.wait()
        for member in self._members:
            await member.channel.close(None)
            member.stream_channel.close()
