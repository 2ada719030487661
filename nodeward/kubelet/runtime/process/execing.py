"""Commands inside a running container: started, fed, listened to, ended.

What must stay true: output is read only as fast as somebody takes it; when the command has ended, so does its output,
even if something it left behind keeps it open; nothing of it is left when the session is killed, no process, no file.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator
from typing import Final

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.kubelet.runtime.process import entering, launching, tree
from nodeward.kubelet.runtime.process.waiting import exit_status, read_all, readable, writable
from nodeward.machinery.clock import Clock

_CHUNK: Final = 32 * 1024
_USUAL_SIZE: Final = (24, 80)


class _Ends:
    """The files of a command: its ends, closed once it has them, and ours."""

    def __init__(self, request: ExecRequest) -> None:
        self.stdin = -1
        self.outputs: dict[int, int] = {}
        self.theirs: dict[int, int | str] = {0: os.devnull}
        self._to_close: list[int] = []
        if request.is_tty:
            self._open_terminal()
            return
        for stream in (1, 2):
            reading, writing = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reading, False)
            self.outputs[stream] = reading
            self._give(stream, writing)
        if request.has_stdin:
            reading, self.stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self.stdin, False)
            self._give(0, reading)

    def _open_terminal(self) -> None:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        set_size(ours, *_USUAL_SIZE)
        self.outputs[1] = ours
        self.stdin = os.dup(ours)
        self._to_close.append(theirs)
        self.theirs = dict.fromkeys((0, 1, 2), theirs)

    def _give(self, number: int, handle: int) -> None:
        self.theirs[number] = handle
        self._to_close.append(handle)

    def given(self) -> None:
        while self._to_close:
            os.close(self._to_close.pop())

    def close(self) -> None:
        self.given()
        for handle in (self.stdin, *self.outputs.values()):
            if handle >= 0:
                os.close(handle)
        self.stdin = -1
        self.outputs.clear()


class ProcessExec:
    """A command that runs in a container."""

    def __init__(self, clock: Clock, request: ExecRequest, pid: int, ends: _Ends, has_pidfd: bool) -> None:
        self._is_tty = request.is_tty
        self._ends = ends
        self._pid = pid
        self._status = asyncio.create_task(exit_status(clock, pid, has_pidfd))
        #: nothing is reported of it any more
        self.ended: Final = asyncio.Event()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(4)
        readers = [
            asyncio.create_task(self._read(stream, handle, queue))
            for stream, handle in self._ends.outputs.items()
        ]
        try:
            left = len(readers)
            while left:
                stream, data = await queue.get()
                if data:
                    yield stream, data
                else:
                    left -= 1
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)

    async def _read(self, stream: int, handle: int, queue: asyncio.Queue[tuple[int, bytes]]) -> None:
        """Everything from one file; empty at its end, or when the command has ended and nothing is left in it."""
        while True:
            try:
                data = os.read(handle, _CHUNK)
            except BlockingIOError:
                if self._status.done():
                    data = b""
                else:
                    more = asyncio.ensure_future(readable(handle))
                    try:
                        await asyncio.wait((more, self._status), return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        more.cancel()
                        await asyncio.gather(more, return_exceptions=True)
                    continue
            except OSError:
                data = b""  # a terminal that nobody has open any more
            await queue.put((stream, data))
            if not data:
                return

    async def write(self, data: bytes) -> None:
        while data and self._ends.stdin >= 0:
            try:
                data = data[os.write(self._ends.stdin, data) :]
            except BlockingIOError:
                await writable(self._ends.stdin)
            except OSError:
                return  # it reads no more

    async def close_stdin(self) -> None:
        handle = self._ends.stdin
        if handle < 0:
            return
        if self._is_tty:
            # A terminal has one file for both ways: its end is a character.
            await self.write(b"\x04")
        self._ends.stdin = -1
        os.close(handle)

    async def resize(self, width: int, height: int) -> None:
        if self._is_tty and 1 in self._ends.outputs:
            set_size(self._ends.outputs[1], height, width)

    async def wait(self) -> int:
        code = os.waitstatus_to_exitcode(await asyncio.shield(self._status))
        self._close()
        return code if code >= 0 else 128 - code

    async def kill(self) -> None:
        if not self._status.done():
            tree.kill_all(await asyncio.to_thread(tree.in_session, self._pid))
            await asyncio.shield(self._status)
        self._close()

    def _close(self) -> None:
        self._ends.close()
        self.ended.set()


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def start_exec(
    clock: Clock, request: ExecRequest, directory: str, main_pid: int, has_pidfd: bool = True
) -> ProcessExec:
    """Run a command in a container; a WorldError says why it cannot."""
    if not request.command:
        raise WorldError("no command given")
    ends = _Ends(request)
    told, failing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(told, False)
    kind = "tty" if request.is_tty else "plain"
    files = {**ends.theirs, 3: failing}
    try:
        pid = await asyncio.to_thread(
            launching.spawn, entering, (directory, str(main_pid), kind, *request.command), files
        )
    except WorldError:
        ends.close()
        os.close(told)
        raise
    finally:
        os.close(failing)
        ends.given()
    session = ProcessExec(clock, request, pid, ends, has_pidfd)
    failure = await read_all(told)
    if failure:
        await session.kill()
        raise WorldError(failure.decode("utf-8", "replace"))
    return session
