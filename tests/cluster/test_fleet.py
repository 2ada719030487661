"""A fleet on an API server that answers late: what is taken away stays away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.node import Node
from nodeward.cluster.description import Pool
from nodeward.cluster.fleet import Fleet
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running
from tests.controllers.cluster import Altered


def test_a_node_that_is_taken_away_while_it_registers_leaves_no_object() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(clock=clock) as server:
            transport = Altered(server.client("kubelet").transport)

            async def slow(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                if request.method == "POST" and request.path.endswith("/nodes"):
                    await clock.sleep(5)
                return await send(request)

            transport.alter = slow
            fleet = Fleet(Client(transport, clock=clock, component="kubelet"), clock, SeededChance(1))
            await fleet.start()
            try:
                await fleet.set_pool(Pool(name="a", nodes=2))
                await clock.sleep(1)
                await fleet.set_pool(Pool(name="a", nodes=1))
                await clock.sleep(120)
                names = [node.metadata.name for node in (await server.client("test").list(Node)).items]
                assert names == ["a-0"]
            finally:
                await fleet.stop()

    run_virtual(main)
