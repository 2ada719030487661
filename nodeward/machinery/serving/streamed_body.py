"""A response body that is made while it is sent: an asynchronous iterator of bytes, sent as fast as the peer reads.

What must stay true: while the peer does not read, the iterator is not asked for more; when the peer is gone, the
iterator is closed, whatever it waits for, and what it stands on is released, even if it was never begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from nodeward.base.errors import WorldError
from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.answer import ResponseSink

LOG: Final = logging.getLogger(__name__)

#: The iterator waits while more than this has not been read.
_MOST_BUFFERED: Final = 256 << 10
#: How often a slow peer is looked at.
_LOOK_SECONDS: Final = 0.05


class StreamedBody:
    """Implements `Streaming`. The answer that carries it is patient. `release` is called once, at the end."""

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        clock: Clock,
        release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._source = source
        self._clock = clock
        self._release = release
        self._task: asyncio.Task[None] | None = None

    def start(self, sink: ResponseSink) -> None:
        self._task = asyncio.create_task(self._send_all(sink))

    def gone(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._end())
        elif self._task is not asyncio.current_task():
            self._task.cancel()

    async def _send_all(self, sink: ResponseSink) -> None:
        try:
            async for part in self._source:
                sink.write(part)
                while sink.buffered > _MOST_BUFFERED:
                    await self._clock.sleep(_LOOK_SECONDS)
            sink.finish()
        except WorldError as error:
            # Half of it is sent: that it broke off is all that can still be said.
            LOG.info("a stream broke off: %s", error)
            sink.abort()
        finally:
            await self._end()

    async def _end(self) -> None:
        await self._source.aclose()
        if self._release is not None:
            await self._release()
