"""The grounds the client contract is checked on: a way to an API server, and the time it runs in.

To add a server, write an async context manager that yields a `Client` with a namespace "default" behind it, and add a
line to `GROUNDS`. A ground in virtual time is given a virtual clock and must not touch the network unless its server
runs in the same loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.virtual_loop import run_virtual
from tests.machinery.fake_api import FakeApi
from tests.machinery.http_front import served_over_http

#: how long a scenario may take in its own time before it counts as stuck
PATIENCE_SECONDS = 30.0

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


GROUNDS: tuple[ClientGround, ...] = (
    ClientGround("fake in process", fake_in_process),
    ClientGround("fake in process, virtual time", fake_in_process, is_virtual=True),
    ClientGround("fake over HTTP", fake_over_http),
    ClientGround("fake over HTTP, virtual time", fake_over_http, is_virtual=True),
)
