"""Waiting without a thread: until a process ends, until a file can be read or written.

A process is waited for through a file of the kernel (pidfd), which also makes sure that it is that process and no
later one with its number; on kernels without, it is looked for every 50 ms.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nodeward.kubelet.runtime.process.tree import start_ticks
from nodeward.machinery.clock import Clock, Timer

LOOK_SECONDS: Final = 0.05


class ProcessWatch:
    """One process, told from later ones by when it started. `ended` is called once, unless closed first."""

    def __init__(
        self, clock: Clock, pid: int, ticks: int, ended: Callable[[], None], has_pidfd: bool = True
    ) -> None:
        self._clock = clock
        self._pid = pid
        self._ticks = ticks
        self._ended = ended
        self._handle = -1
        self._timer: Timer | None = None
        if has_pidfd:
            with suppress(OSError):
                self._handle = os.pidfd_open(pid)
        if start_ticks(pid) != ticks:
            self._close_handle()
            self._timer = clock.call_later(0, self._tell)
        elif self._handle >= 0:
            asyncio.get_running_loop().add_reader(self._handle, self._tell)
        else:
            self._timer = clock.call_later(LOOK_SECONDS, self._look)

    def send(self, number: int) -> None:
        """A signal, to this process and no other."""
        with suppress(ProcessLookupError):
            if self._handle >= 0:
                signal.pidfd_send_signal(self._handle, number)
            elif start_ticks(self._pid) == self._ticks:
                os.kill(self._pid, number)

    def close(self) -> None:
        self._close_handle()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if start_ticks(self._pid) == self._ticks:
            self._timer = self._clock.call_later(LOOK_SECONDS, self._look)
        else:
            self._tell()

    def _tell(self) -> None:
        self.close()
        self._ended()

    def _close_handle(self) -> None:
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1


async def exit_status(clock: Clock, pid: int, has_pidfd: bool = True) -> int:
    """Wait for a child of ours and give its wait status."""
    ended = asyncio.Event()
    # A child keeps its number until it is waited for.
    watch = ProcessWatch(clock, pid, start_ticks(pid), ended.set, has_pidfd)
    try:
        await ended.wait()
    finally:
        watch.close()
    return _collect(pid)


def _collect(pid: int) -> int:
    """It is dead, so this does not wait."""
    return os.waitpid(pid, 0)[1]


async def readable(handle: int) -> None:
    """Until there is something to read, or nothing more will come."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(handle, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(handle)


async def writable(handle: int) -> None:
    """Until there is room to write."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(handle, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(handle)


async def read_all(handle: int) -> bytes:
    """Everything until the end; `handle` does not block, and is closed."""
    parts: list[bytes] = []
    try:
        while True:
            try:
                data = os.read(handle, 65536)
            except BlockingIOError:
                await readable(handle)
                continue
            if not data:
                return b"".join(parts)
            parts.append(data)
    finally:
        os.close(handle)


def reap(pid: int) -> None:
    """A supervisor is nobody's child; where it became ours (an agent that is process 1), nobody else would do this."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
