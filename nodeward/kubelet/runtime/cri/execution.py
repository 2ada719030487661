"""A command in a running container, with its input, output and terminal, over the runtime's streaming server.

Called by the CRI runtime: in goes an `ExecRequest`, out comes an `ExecSession`. Its output is read from the connection
(`streaming`) as it is asked for: a command whose output nobody takes waits.

What must stay true: output keeps the order in which it arrived, across standard output and standard error. Leaving
(`kill`) closes the streams; as everywhere with CRI the command itself goes on until it notices.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Final

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.calls import Calls
from nodeward.kubelet.runtime.cri.streaming import StreamingConnection, connect
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.machinery.clock import Clock
from nodeward.machinery.spdy.session import SpdyStream

_PROTOCOL: Final = "v4.channel.k8s.io"
#: The file descriptors of a command's output streams.
_OUTPUTS: Final = {"stdout": 1, "stderr": 2}
#: A command whose container has ended, perhaps before the command began.
_KILLED: Final = 137


async def execute(
    call: Calls, container_id: str, request: ExecRequest, is_running: Callable[[], bool], clock: Clock
) -> StreamedExec:
    """Start the command; `is_running` says whether the container still does. Raises WorldError."""
    answer = await call(
        "Exec",
        container_id=container_id,
        cmd=request.command,
        tty=request.is_tty,
        stdin=request.has_stdin,
        stdout=True,
        stderr=not request.is_tty,
    )
    connection = await connect(answer.url, {"x-stream-protocol-version": _PROTOCOL}, clock)
    return await StreamedExec.start(connection, request, is_running)


class StreamedExec:
    """A running command. `streams` are the open streams of its connection, by stream type."""

    def __init__(
        self, connection: StreamingConnection, streams: dict[str, SpdyStream], is_running: Callable[[], bool]
    ) -> None:
        self._connection = connection
        self._streams = streams
        self._is_running = is_running
        self._status = bytearray()
        self._is_over = False

    @classmethod
    async def start(
        cls, connection: StreamingConnection, request: ExecRequest, is_running: Callable[[], bool]
    ) -> StreamedExec:
        """Open the streams that the request asks for; the runtime starts the command when all are open."""
        types = ["error", *(["stdin"] if request.has_stdin else []), "stdout"]
        types.append("resize" if request.is_tty else "stderr")
        streams = {each: await connection.session.open(streamtype=each) for each in types}
        return cls(connection, streams, is_running)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while (piece := await self._next()) is not None:
            yield piece

    async def write(self, data: bytes) -> None:
        if "stdin" in self._streams and not self._is_over:
            await self._streams["stdin"].write(data)

    async def close_stdin(self) -> None:
        if "stdin" in self._streams and not self._is_over:
            await self._streams["stdin"].close()

    async def resize(self, width: int, height: int) -> None:
        if "resize" in self._streams and not self._is_over:
            text = json.dumps({"Width": width, "Height": height})
            await self._streams["resize"].write(f"{text}\n".encode())

    async def wait(self) -> int:
        """Wait for the end and return the exit code. Output that was not taken is lost."""
        while await self._next() is not None:
            pass
        try:
            return exit_code(bytes(self._status))
        except WorldError:
            if self._is_running():
                raise
            return _KILLED

    async def kill(self) -> None:
        self._is_over = True
        self._connection.close()

    async def _next(self) -> tuple[int, bytes] | None:
        """Return the next piece of output; None once the command has ended or the connection is over."""
        while not self._is_over:
            is_open = await self._connection.receive()
            # One frame has arrived at most, so at most one stream has data; all are read, or none could go on.
            for kind, stream in self._streams.items():
                data = stream.read_now()
                if kind == "error":
                    self._status += data
                elif data and kind in _OUTPUTS:
                    return _OUTPUTS[kind], data
            if not is_open or self._streams["error"].is_ended:
                await self.kill()
        return None


def exit_code(status: bytes) -> int:
    """What the last words of the error stream, a Kubernetes `Status`, say. Raises WorldError if it never ran."""
    try:
        told = json.loads(status)
    except ValueError:
        raise WorldError("the container runtime has ended the command without saying how it ended") from None
    if told.get("status") == "Success":
        return 0
    for cause in (told.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise WorldError(str(told.get("message") or "the command failed"))
