"""A server that answers byte for byte what a test tells it to: the other end of the wire in transport tests."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Connection:
    """One accepted connection, as the script sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int

    async def request(self) -> bytes:
        """The next request, head and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return head + (await self.reader.readexactly(length) if length else b"")

    async def answer(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until_closed(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self.reader.read()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class ScriptedServer:
    url: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0


@contextlib.asynccontextmanager
async def scripted_server(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """Serve on a free port; the script runs once per connection, and its end closes the connection."""
    server_facts = ScriptedServer("")
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        server_facts.connections += 1
        connection = Connection(reader, writer, server_facts.connections)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await script(connection)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    server_facts.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server_facts
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def plain_answer(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n".encode() + body
