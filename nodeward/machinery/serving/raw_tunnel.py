"""A connection that has switched to bytes of its own, with the face of a `WebSocket`: pieces in, pieces out.

What must stay true: a peer that sends faster than we read is not read from, and sent something now and then that it
understands as a question (`ping`): to a peer that is gone nothing can be sent, and nobody would notice otherwise.

Called by `kubelet.server.streams`; calls `answer`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from nodeward.machinery.clock import Clock, Timer
from nodeward.machinery.serving.answer import TunnelSink

#: The peer is not read from while more than this waits for us.
_MOST_WAITING: Final = 1 << 20
#: How often a peer that is not read from is asked for a sign of life.
_ASK_SECONDS: Final = 1.0
#: How long a peer may take to close after we have said all there was.
_LINGER_SECONDS: Final = 5.0


class RawTunnel:
    """Implements `Tunnel`; the side of the handler is `messages`, `send`, `over` and `close`."""

    def __init__(self, clock: Clock, ping: bytes) -> None:
        self._clock = clock
        self._ping = ping
        #: set while the peer is not read from
        self._asking: Timer | None = None
        self._sink: TunnelSink | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._has_news = asyncio.Event()
        self._is_over = asyncio.Event()
        self._linger: Timer | None = None

    # -- the connection's side

    def start(self, sink: TunnelSink) -> None:
        self._sink = sink
        self._has_news.set()

    def received(self, data: bytes) -> None:
        if self._is_over.is_set():
            return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._has_news.set()
        if self._waiting_bytes > _MOST_WAITING and self._sink is not None and self._asking is None:
            self._sink.pause()
            self._asking = self._clock.call_later(_ASK_SECONDS, self._ask)

    def gone(self) -> None:
        self._sink = None
        self._is_over.set()
        self._has_news.set()
        for timer in (self._linger, self._asking):
            if timer is not None:
                timer.cancel()

    # -- the handler's side

    async def messages(self) -> AsyncIterator[bytes]:
        """Return what the peer sends, until it is gone."""
        while True:
            while self._waiting:
                piece = self._waiting.popleft()
                self._waiting_bytes -= len(piece)
                if self._waiting_bytes <= _MOST_WAITING:
                    self._resume()
                yield piece
            if self._is_over.is_set():
                return
            self._has_news.clear()
            await self._has_news.wait()

    async def send(self, message: bytes) -> None:
        """Send, waiting while the peer does not read; do nothing once it is gone."""
        sink = self._sink
        if sink is not None and not self._is_over.is_set():
            sink.write(message)
            await sink.drained()

    async def over(self) -> None:
        await self._is_over.wait()

    def close(self) -> None:
        """Close, giving the peer time to close first, so that it has read everything."""
        self._is_over.set()
        self._has_news.set()
        self._resume()
        if self._sink is not None:
            self._linger = self._clock.call_later(_LINGER_SECONDS, self._end)

    def _resume(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
            if self._sink is not None:
                self._sink.resume()

    def _ask(self) -> None:
        if self._sink is not None:
            self._sink.write(self._ping)
            self._asking = self._clock.call_later(_ASK_SECONDS, self._ask)

    def _end(self) -> None:
        if self._sink is not None:
            self._sink.finish()
