"""Sockets on which an application answers, and their orderly end.

In goes an application (a coroutine from request and peer to answer); `serve` opens sockets, `stop` finishes what is
under way, for a while, and cuts off the rest.

Called by the API server, the cluster assembly and the command line; calls `connection`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.connection import Application, HttpServerConnection, Screen
from nodeward.machinery.serving.limits import Limits

SHUTDOWN_SECONDS: Final = 5.0
#: TCP connections the kernel keeps until they are accepted; further ones wait at the client.
BACKLOG: Final = 1024
#: How long a peer may take to answer the end of a TLS connection. A client that keeps a connection for later does not
#: read from it meanwhile, so it never does, and must not hold up a server that stops.
GOODBYE_SECONDS: Final = 0.2
#: How long a peer may take to begin a TLS connection.
HELLO_SECONDS: Final = 10.0


class Listener:
    """Everything one application answers on."""

    def __init__(
        self,
        application: Application,
        clock: Clock,
        limits: Limits | None = None,
        screen: Screen | None = None,
    ) -> None:
        """`screen` looks at requests before their large bodies are read."""
        self._application = application
        self._screen = screen
        self._clock = clock
        self._limits = limits or Limits()
        #: who is connected now
        self.connections: Final[dict[HttpServerConnection, None]] = {}
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Answer on an address; gives the port, which may have been 0."""
        return await self.serve(bind(host, port), tls)

    async def serve(self, bound: socket.socket, tls: ssl.SSLContext | None = None) -> int:
        """Answer on a socket that has its address; gives the port."""
        loop = asyncio.get_running_loop()
        goodbye = None if tls is None else GOODBYE_SECONDS
        server = await loop.create_server(
            self._connection,
            sock=bound,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else HELLO_SECONDS,
            ssl_shutdown_timeout=goodbye,
            backlog=BACKLOG,
        )
        self._servers.append(server)
        return int(bound.getsockname()[1])

    def _connection(self) -> HttpServerConnection:
        return HttpServerConnection(
            self._application, self._clock, self.connections, self._limits, self._screen
        )

    async def stop(self) -> None:
        """Stop accepting and finish what is under way."""
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.shutdown()
        try:
            async with self._clock.timeout(SHUTDOWN_SECONDS):
                while self.connections:
                    await self._clock.sleep(0.01)
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket with an address, on which nobody is answered yet. The port may be 0: any that is free."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
