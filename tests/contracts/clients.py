"""The grounds the client contract is checked on: a way to an API server, and the time it runs in.

To add a server, write an async context manager that yields a `Client` with a namespace "default" behind it, and add a
line to `GROUNDS`. A ground in virtual time is given a virtual clock and must not touch the network unless its server
runs in the same loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeward.apiserver.pki import Pki, kubeconfig, server_context
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.kubeconfig import load_config
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running
from tests.machinery.fake_api import FakeApi
from tests.machinery.http_front import served_over_http
from tests.patience import PATIENCE_SECONDS

Connect = Callable[[Clock], AbstractAsyncContextManager[Client]]
Scenario = Callable[[Client], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class ClientGround:
    """One way to one kind of server."""

    name: str
    connect: Connect
    is_virtual: bool = False

    def run(self, scenario: Scenario) -> None:
        """Connect to a fresh server, play the scenario, close everything."""

        async def play(clock: Clock) -> None:
            async with self.connect(clock) as client, asyncio.timeout(PATIENCE_SECONDS):
                await scenario(client)

        if self.is_virtual:
            run_virtual(play)
        else:
            asyncio.run(play(RealClock()))


@contextlib.asynccontextmanager
async def fake_in_process(clock: Clock) -> AsyncIterator[Client]:
    client = Client(FakeApi(clock), clock=clock, component="contract")
    yield client
    await client.aclose()


@contextlib.asynccontextmanager
async def fake_over_http(clock: Clock) -> AsyncIterator[Client]:
    async with served_over_http(FakeApi(clock)) as url:
        client = Client(HttpTransport(url, clock=clock), clock=clock, component="contract")
        try:
            yield client
        finally:
            await client.aclose()


@contextlib.asynccontextmanager
async def server_in_process(clock: Clock) -> AsyncIterator[Client]:
    async with running(clock=clock) as server:
        client = server.client("contract")
        yield client
        await client.aclose()


@contextlib.asynccontextmanager
async def server_over_https(clock: Clock) -> AsyncIterator[Client]:
    """The way an administrator goes: own authority, client certificate, all of it read from a kubeconfig."""
    with tempfile.TemporaryDirectory() as home:
        pki = Pki(Path(home) / "pki", clock.now_ns())
        async with running(clock=clock) as server:
            tls = server_context(pki.serving("localhost"), pki.authority_path)
            port = await server.listen("127.0.0.1", 0, tls)
            config = Path(home) / "kubeconfig"
            config.write_text(kubeconfig(f"https://127.0.0.1:{port}", pki.authority_certificate, pki.admin()))
            client = connect(
                load_config({}, path=str(config)), clock=clock, environment={}, component="contract"
            )
            try:
                yield client
            finally:
                await client.aclose()


GROUNDS: tuple[ClientGround, ...] = (
    ClientGround("fake in process", fake_in_process),
    ClientGround("fake in process, virtual time", fake_in_process, is_virtual=True),
    ClientGround("fake over HTTP", fake_over_http),
    ClientGround("fake over HTTP, virtual time", fake_over_http, is_virtual=True),
    ClientGround("server in process", server_in_process),
    ClientGround("server in process, virtual time", server_in_process, is_virtual=True),
    ClientGround("server over HTTPS", server_over_https),
)
