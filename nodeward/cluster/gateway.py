"""The way from the parts of a cluster to its API server, whichever runs at the moment.

`Cluster.client` makes every client on a transport from here, so that the API server can be stopped and another one
started while the parts go on: between the two they see `ConnectionFailed`, as they would on a wire, and try again. It
calls the API server in process, through its loopback transport.

What must stay true: a server is stopped only after the requests under way have been answered and the open watches have
been broken off; no request reaches a server that is stopping.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nodeward.apiserver.auth.user import User
from nodeward.apiserver.loopback import LoopbackTransport
from nodeward.apiserver.server import ApiServer
from nodeward.machinery.clock import Clock
from nodeward.machinery.transport import ConnectionFailed, Request, Response

#: How long requests that are under way may take to end before a server is stopped all the same.
DRAIN_SECONDS: Final = 60.0


class Gateway:
    """Opened with a server that was started, closed before it is stopped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.server: ApiServer | None = None
        self._transports: list[LoopbackTransport] = []
        self._under_way = 0
        self._is_idle = asyncio.Event()

    def transport(self, user: User) -> GatewayTransport:
        """A transport for one client, as `user`; it can be made at any time."""
        return GatewayTransport(self, user)

    def open(self, server: ApiServer) -> None:
        self.server = server

    async def close(self) -> None:
        """Refuse further requests, let those under way end, and break off all streams."""
        self.server = None
        if self._under_way:
            self._is_idle.clear()
            timer = self._clock.call_later(DRAIN_SECONDS, self._is_idle.set)
            await self._is_idle.wait()
            timer.cancel()
        transports, self._transports = self._transports, []
        for each in transports:
            await each.aclose()

    def connect(self, server: ApiServer, user: User) -> LoopbackTransport:
        made = server.transport(user)
        self._transports.append(made)
        return made

    async def send(self, transport: LoopbackTransport, request: Request, *, stream: bool) -> Response:
        self._under_way += 1
        try:
            return await transport.send(request, stream=stream)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._is_idle.set()


class GatewayTransport:
    """One client's way to the API server that runs now."""

    def __init__(self, gateway: Gateway, user: User) -> None:
        self._gateway = gateway
        self._user = user
        self._server: ApiServer | None = None
        self._inner: LoopbackTransport | None = None

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        server = self._gateway.server
        if server is None:
            raise ConnectionFailed("the API server is not running")
        if self._inner is None or self._server is not server:
            self._server, self._inner = server, self._gateway.connect(server, self._user)
        return await self._gateway.send(self._inner, request, stream=stream)

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()
