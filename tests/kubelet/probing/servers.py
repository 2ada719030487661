"""Servers on 127.0.0.1 that answer, or do not, in the way a probe must cope with."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """A server; gives its port. At the end its callers are gone, and so is whoever serves them."""
    under_way: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way.add(asyncio.current_task())
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*(each for each in under_way if each is not None))
        await server.wait_closed()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        port: int = each.getsockname()[1]
        return port


class Web:
    """Answers each path as told, and remembers what it was asked."""

    def __init__(self, **answers: bytes) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        path = head.split(" ", 2)[1].strip("/").partition("?")[0]
        answer = self.answers.get(path)
        if answer is None:
            answer = reply(404)
        if answer:
            writer.write(answer)
            await writer.drain()
            writer.write_eof()
        await reader.read()


def reply(status: int, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Text", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write_eof()
    await reader.read()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def speak_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As web servers do when somebody begins with a TLS handshake."""
    await reader.read(16)
    writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTPS request to an HTTP server.\n")
    await writer.drain()
    await reader.read()
