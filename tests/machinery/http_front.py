"""Any transport as an HTTP server: puts sockets between a client and the fake API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from nodeward.machinery.transport import Request, Transport
from tests.machinery.scripted_server import Connection, plain_answer, scripted_server


@contextlib.asynccontextmanager
async def served_over_http(behind: Transport) -> AsyncIterator[str]:
    """The URL under which `behind` answers."""

    async def script(connection: Connection) -> None:
        while True:
            head, _, body = (await connection.request()).partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            method, target, _ = first.split(" ")
            path, _, query = target.partition("?")
            headers = dict(line.split(": ", 1) for line in lines)
            response = await behind.send(
                Request(method, path, query, headers, body), stream="watch=true" in query
            )
            if response.stream is None:
                extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
                await connection.answer(plain_answer(response.body or b"", f"{response.status} X", extra))
                continue
            await connection.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            async with contextlib.aclosing(response.stream) as stream:
                async for part in stream:
                    await connection.answer(b"%x\r\n%b\r\n" % (len(part), part))
            await connection.answer(b"0\r\n\r\n")

    async with scripted_server(script) as server:
        yield server.url
