"""Controllers that come and go in a cluster that is there already: for what happens while nobody looks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from nodeward.cluster.identities import controller_client
from nodeward.controllers.controller import Entry
from nodeward.controllers.runner import Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance
from tests.apiserver.running import settings
from tests.controllers.cluster import Alter, Altered, Cluster


@asynccontextmanager
async def more_controllers(
    each: Cluster, controllers: Sequence[Entry], *, alter: Alter | None = None
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
