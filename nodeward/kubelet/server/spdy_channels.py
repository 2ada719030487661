"""Exec and attach over SPDY: a stream for each of the command's, as the channels of a WebSocket.

What kubelets spoke before KEP-4006, and still do with callers that know nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from nodeward.kubelet.server.channels import (
    CLOSE,
    RESIZE,
    STATUS,
    STDERR,
    STDIN,
    STDOUT,
    StreamOptions,
    Wire,
)
from nodeward.machinery.clock import Clock
from nodeward.machinery.spdy.session import SpdySession, SpdyStream

#: What the streams are called in their headers.
TYPES: Final = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": STATUS, "resize": RESIZE}
#: How long a caller may take to open them.
_OPEN_SECONDS: Final = 30.0


class SpdyChannels:
    """A `Wire` that is SPDY inside another. `opened` first, then use it; `run` must run meanwhile."""

    def __init__(self, outer: Wire, options: StreamOptions, clock: Clock) -> None:
        self._outer = outer
        self._clock = clock
        self._streams: dict[int, SpdyStream] = {}
        wanted = {
            STATUS: True,
            STDIN: options.has_stdin,
            STDOUT: options.has_stdout,
            STDERR: options.has_stderr,
            RESIZE: options.is_tty,
        }
        self._wanted = frozenset(channel for channel, is_wanted in wanted.items() if is_wanted)
        self._are_open = asyncio.Event()
        self._session = SpdySession(outer.send, self._took, is_server=True)

    async def run(self) -> None:
        await self._session.run(self._outer.messages())

    async def opened(self) -> bool:
        """Wait for the caller's streams; False: they did not come."""
        try:
            async with self._clock.timeout(_OPEN_SECONDS):
                await self._are_open.wait()
        except TimeoutError:
            return False
        return True

    def _took(self, stream: SpdyStream) -> bool:
        channel = TYPES.get(stream.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            return False
        self._streams[channel] = stream
        if self._wanted <= self._streams.keys():
            self._are_open.set()
        return True

    # -- as a wire

    async def messages(self) -> AsyncIterator[bytes]:
        """Input and sizes of the terminal, as a WebSocket of version 5 would bring them."""
        arrived: asyncio.Queue[bytes] = asyncio.Queue(1)
        heard = [channel for channel in (STDIN, RESIZE) if channel in self._streams]
        tasks = [asyncio.create_task(self._hear(channel, arrived)) for channel in heard]
        try:
            while True:
                yield await arrived.get()
        finally:
            for task in tasks:
                task.cancel()

    async def _hear(self, channel: int, arrived: asyncio.Queue[bytes]) -> None:
        stream = self._streams[channel]
        while piece := await stream.read():
            await arrived.put(bytes((channel,)) + piece)
        await arrived.put(bytes((CLOSE, channel)))

    async def send(self, message: bytes) -> None:
        stream = self._streams.get(message[0])
        if stream is not None:
            await stream.write(message[1:])
            if message[0] == STATUS:
                for each in self._streams.values():
                    await each.close()

    async def over(self) -> None:
        await self._outer.over()

    def close(self) -> None:
        self._outer.close()
