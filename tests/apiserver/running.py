"""An API server for tests: in process, with everything switched on that a test does not switch off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nodeward.apiserver.auth.user import User
from nodeward.apiserver.loopback import LOOPBACK_USER, LoopbackTransport
from nodeward.apiserver.server import ApiServer, Settings
from nodeward.features import Gates
from nodeward.machinery.clock import Clock, RealClock, SeededChance
from nodeward.machinery.transport import Request, Response, Transport
from nodeward.store.interface import Store
from nodeward.store.memory import MemoryStore


def settings(*, gates: str = "", version: str = "1.37", **others: Any) -> Settings:
    """Pods may be created without service accounts, which only a controller makes."""
    others.setdefault("disable_admission", ("ServiceAccount",))
    return Settings(kubernetes_version=version, gates=Gates.of(version, gates), **others)


@asynccontextmanager
async def running(
    chosen: Settings | None = None, *, store: Store | None = None, clock: Clock | None = None
) -> AsyncIterator[ApiServer]:
    """A started server, stopped at the end."""
    server = ApiServer(store or MemoryStore(), clock or RealClock(), SeededChance(7), chosen or settings())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class Caller:
    """Plain requests, for tests about the wire."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def of(cls, server: ApiServer, user: User = LOOPBACK_USER) -> Caller:
        return cls(server.transport(user))

    @classmethod
    def anonymous(cls, server: ApiServer) -> Caller:
        """Somebody who shows nothing."""
        return cls(LoopbackTransport(server.app, None))

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        agent: str = "test/1",
        headers: dict[str, str] | None = None,
    ) -> Response:
        path, _, query = target.partition("?")
        sent = {"accept": accept, "user-agent": agent, **(headers or {})}
        data = b""
        if body is not None:
            sent["content-type"] = content_type
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self._transport.send(Request(method, path, query, sent, data))

    async def json(self, method: str, target: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        response = await self.send(method, target, body, **options)
        return response.status, json.loads(response.body or b"null")
