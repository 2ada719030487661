"""Controllers that come and go in a cluster that is there already: for what happens while nobody looks.

`more_controllers` starts and stops them; a `Doomed` dies in the middle of its work, and `outlive` lets one follow the
other until the work is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from nodeward.base.duration import SECOND_NS
from nodeward.cluster.identities import controller_client
from nodeward.controllers.controller import ControllerDescriptor
from nodeward.controllers.runner import Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance
from nodeward.machinery.transport import Request, Response
from tests.apiserver.running import settings
from tests.controllers.cluster import Alter, Altered, Cluster


@asynccontextmanager
async def more_controllers(
    each: Cluster, controllers: Sequence[ControllerDescriptor], *, alter: Alter | None = None
) -> AsyncIterator[tuple[Runner, dict[str, Altered]]]:
    """Started and settled; stopped at the end, wherever they are then."""
    transports: dict[str, Altered] = {}

    def client_for(name: str) -> Client:
        transports[name] = Altered(controller_client(each.server, name).transport)
        transports[name].alter = alter
        return Client(transports[name], clock=each.clock, component=name, retry=None)

    runner = Runner(client_for, each.clock, SeededChance(5), gates=settings().gates, controllers=controllers)
    await runner.start()
    await runner.settled()
    try:
        yield runner, transports
    finally:
        await runner.stop()


class Doomed:
    """Controllers that die at their n-th write: before the server gets it, or before they get the answer."""

    def __init__(
        self, each: Cluster, controllers: Sequence[ControllerDescriptor], chance: SeededChance, writes: int
    ) -> None:
        self._writes_left = writes
        self._is_lost = bool(chance.randrange(2))
        self._end = asyncio.Event()
        self._clock = each.clock

        def client_for(name: str) -> Client:
            transport = Altered(controller_client(each.server, name).transport)
            transport.alter = self._pass
            return Client(transport, clock=self._clock, component=name, retry=None)

        luck = SeededChance(chance.randrange(10**6))
        self._runner = Runner(client_for, self._clock, luck, gates=settings().gates, controllers=controllers)

    async def live(self, seconds: float) -> bool:
        """Until its end, which comes after `seconds` at the latest. Whether it died at a write."""
        await self._runner.start()
        try:
            async with self._clock.timeout(seconds):
                await self._end.wait()
        except TimeoutError:
            pass
        await self._runner.stop()
        return self._end.is_set()

    async def _pass(self, request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.method == "GET" or "/events" in request.path:
            return await send(request)
        self._writes_left -= 1
        if self._writes_left > 0:
            return await send(request)
        if self._writes_left == 0 and not self._is_lost:
            await send(request)
        self._end.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")


async def outlive(
    each: Cluster,
    controllers: Sequence[ControllerDescriptor],
    chance: SeededChance,
    *,
    kills: int,
    seconds: float,
) -> int:
    """Kill and start again, `kills` times, until nothing is written for `seconds`; how many died."""
    deaths = 0
    while await Doomed(
        each, controllers, chance, 1 + chance.randrange(4) if deaths < kills else SECOND_NS
    ).live(seconds):
        deaths += 1
    return deaths
