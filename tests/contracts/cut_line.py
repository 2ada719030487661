"""A line to a server that a test can cut and mend: a forwarder on loopback."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class CutLine:
    """Forwards connections to `endpoint` (host:port); while it is cut, connections break and none is accepted."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        self._target = host, int(port)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._flows: set[asyncio.Task[None]] = set()

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            for flow in self._flows:
                flow.cancel()
            await asyncio.gather(*self._flows, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._flows.add(task)
        task.add_done_callback(self._flows.discard)
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pour(reader, far_writer))
                both.create_task(_pour(far_reader, writer))
        except asyncio.CancelledError:
            pass
        finally:
            for end in (writer, far_writer):
                end.transport.abort()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
