"""Exec and attach over WebSocket: the streams of a command as channels of one connection (KEP-4006).

The first byte of a message says which stream it is of: 0 stdin, 1 stdout, 2 stderr, 3 how it ended (a `Status`), 4 the
size of the terminal; in version 5 of the protocol 255 closes the stream that follows. What must stay true: a command
whose caller is gone is killed; the caller hears how the command ended after all of its output.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from nodeward.api.codec import encode
from nodeward.api.meta import Status, StatusCause, StatusDetails
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ExecSession
from nodeward.kubelet.server.finding import Refused

LOG: Final = logging.getLogger(__name__)

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
#: With the newest first. Version 5 is spoken where the kubelet declares that it is (ExtendWebSocketsToKubelet).
PROTOCOLS: Final = (V5, V4)

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
STATUS: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255


class Wire(Protocol):
    """The caller's end: a WebSocket, or what translates to something else."""

    def messages(self) -> AsyncIterator[bytes]: ...

    async def send(self, message: bytes) -> None: ...

    async def over(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Which streams the caller wants."""

    has_stdin: bool = False
    has_stdout: bool = False
    has_stderr: bool = False
    is_tty: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str]) -> StreamOptions:
        stdin, stdout, stderr, tty = (query.get(name) == "1" for name in ("input", "output", "error", "tty"))
        if tty and stderr:
            stderr = False  # a terminal has one output
        if not (stdin or stdout or stderr):
            raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
        return cls(stdin, stdout, stderr, tty)


class _Size(msgspec.Struct, rename="pascal"):
    width: int = 0
    height: int = 0


_SIZE: Final = msgspec.json.Decoder(_Size)


def status_of(exit_code: int) -> Status:
    """How a command ended."""
    if exit_code == 0:
        return Status(status="Success")
    return Status(
        status="Failure",
        reason="NonZeroExitCode",
        message=f"command terminated with non-zero exit code: exit status {exit_code}",
        details=StatusDetails(causes=[StatusCause(reason="ExitCode", message=str(exit_code))]),
    )


def failure_of(why: str) -> Status:
    """That it came to no end."""
    return Status(
        status="Failure",
        reason="InternalError",
        message=f"Internal error occurred: {why}",
        details=StatusDetails(causes=[StatusCause(message=why)]),
        code=500,
    )


async def run_command(
    wire: Wire,
    options: StreamOptions,
    begin: Callable[[], Awaitable[ExecSession]],
    *,
    closes_streams: bool,
) -> None:
    """Begin a command and be its ends until it is over. `closes_streams`: version 5."""
    try:
        session = await begin()
    except WorldError as error:
        await wire.send(_status(failure_of(f"error executing command in container: {error}")))
        wire.close()
        return
    tasks = (
        asyncio.create_task(_hear(wire, session, options, closes_streams)),
        asyncio.create_task(_kill_when_over(wire, session)),
    )
    try:
        async for stream, data in session.output():
            if data and (options.has_stdout if stream == STDOUT else options.has_stderr):
                await wire.send(bytes((stream,)) + data)
        ended = status_of(await session.wait())
    except WorldError as error:
        ended = failure_of(f"error executing command in container: {error}")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.kill()
    await wire.send(_status(ended))
    wire.close()


async def show_output(
    wire: Wire, options: StreamOptions, source: AsyncIterator[tuple[int, bytes]], is_tty: bool
) -> None:
    """Be the output of a container that runs anyway, until it ends or the caller is gone."""

    async def show() -> None:
        async for stream, data in source:
            if options.has_stdout if stream == STDOUT or is_tty else options.has_stderr:
                await wire.send(bytes((stream,)) + data)

    showing = asyncio.create_task(show())
    leaving = asyncio.create_task(wire.over())
    try:
        await asyncio.wait((showing, leaving), return_when=asyncio.FIRST_COMPLETED)
        ended = status_of(0)
        if showing.done() and not showing.cancelled() and isinstance(showing.exception(), WorldError):
            ended = failure_of(f"error attaching to container: {showing.exception()}")
    finally:
        for task in (showing, leaving):
            task.cancel()
        await asyncio.gather(showing, leaving, return_exceptions=True)
    await wire.send(_status(ended))
    wire.close()


async def _hear(wire: Wire, session: ExecSession, options: StreamOptions, closes_streams: bool) -> None:
    try:
        async for message in wire.messages():
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == STDIN and options.has_stdin and data:
                await session.write(data)
            elif channel == RESIZE and options.is_tty:
                await _resize(session, data)
            elif channel == CLOSE and closes_streams and data[:1] == b"\0" and options.has_stdin:
                await session.close_stdin()
    except WorldError as error:
        LOG.debug("a command no longer reads: %s", error)


async def _resize(session: ExecSession, data: bytes) -> None:
    try:
        size = _SIZE.decode(data)
    except msgspec.MsgspecError:
        return  # nothing a caller says about its terminal is worth a command's life
    if 0 < size.width < 1 << 16 and 0 < size.height < 1 << 16:
        await session.resize(size.width, size.height)


async def _kill_when_over(wire: Wire, session: ExecSession) -> None:
    await wire.over()
    await session.kill()


def _status(status: Status) -> bytes:
    return bytes((STATUS,)) + encode(status)
