"""A command in a running container, with its input, output and terminal, over the runtime's streaming server.

In goes an `ExecRequest`, out comes an `ExecSession`. Its output is read from the connection as it is asked for: a
command whose output nobody takes waits.

Leaving (`kill`) closes the streams. As everywhere with CRI the command itself goes on until it notices.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Final

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.calls import Calls
from nodeward.kubelet.runtime.cri.streaming import Streaming, connect
from nodeward.kubelet.runtime.interface import ExecRequest

_PROTOCOL: Final = "v4.channel.k8s.io"
_STDOUT: Final = 1
_STDERR: Final = 2
#: A command whose container has ended, perhaps before the command began.
_KILLED: Final = 137


async def execute(
    call: Calls, container_id: str, request: ExecRequest, is_running: Callable[[], bool]
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
    streaming = await connect(answer.url, {"X-Stream-Protocol-Version": _PROTOCOL})
    return StreamedExec(streaming, request, is_running)


class StreamedExec:
    """A running command."""

    def __init__(self, streaming: Streaming, request: ExecRequest, is_running: Callable[[], bool]) -> None:
        self._streaming = streaming
        self._is_running = is_running
        self._status = bytearray()
        self._is_over = False
        self._error = streaming.open_stream({"streamtype": "error"})
        self._stdin = streaming.open_stream({"streamtype": "stdin"}) if request.has_stdin else 0
        self._outputs = {streaming.open_stream({"streamtype": "stdout"}): _STDOUT}
        self._resize = 0
        if request.is_tty:
            self._resize = streaming.open_stream({"streamtype": "resize"})
        else:
            self._outputs[streaming.open_stream({"streamtype": "stderr"})] = _STDERR

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while (piece := await self._next()) is not None:
            yield piece

    async def write(self, data: bytes) -> None:
        if self._stdin and not self._is_over and data:
            await self._streaming.send(self._stdin, data)

    async def close_stdin(self) -> None:
        if self._stdin and not self._is_over:
            await self._streaming.send(self._stdin, b"", is_last=True)
            self._stdin = 0

    async def resize(self, width: int, height: int) -> None:
        if self._resize and not self._is_over:
            text = json.dumps({"Width": width, "Height": height})
            await self._streaming.send(self._resize, f"{text}\n".encode())

    async def wait(self) -> int:
        """Output that was not taken is lost."""
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
        await self._streaming.close()

    async def _next(self) -> tuple[int, bytes] | None:
        while not self._is_over:
            received = await self._streaming.receive()
            if received is None:
                break
            stream, data, is_last = received
            if stream == self._error:
                self._status += data
                if is_last:
                    break
            elif data and stream in self._outputs:
                return self._outputs[stream], data
        if not self._is_over:
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
