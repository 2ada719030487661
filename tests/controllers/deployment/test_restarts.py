"""Controllers that are killed at any write of a rollout: the end is the same, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from nodeward.cluster.identities import controller_client
from nodeward.controllers.pods.ownership import controller_of
from nodeward.controllers.pods.state import is_ready
from nodeward.controllers.runner import Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import settings
from tests.controllers.cluster import Altered
from tests.controllers.workloads import WORKLOADS, Workloads, conditions, deployment, workloads

KILLS = 20
REPLICAS = 10


class Doomed:
    """Controllers that die at their n-th write: before the server gets it, or before they get the answer."""

    def __init__(self, each: Workloads, chance: SeededChance, writes: int) -> None:
        self._writes_left = writes
        self._is_lost = bool(chance.randrange(2))
        self._end = asyncio.Event()
        self._clock = each.cluster.clock

        def client_for(name: str) -> Client:
            transport = Altered(controller_client(each.cluster.server, name).transport)
            transport.alter = self._pass
            return Client(transport, clock=self._clock, component=name, retry=None)

        luck = SeededChance(chance.randrange(10**6))
        self._runner = Runner(client_for, self._clock, luck, gates=settings().gates, controllers=WORKLOADS)

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
        if self._writes_left:
            return await send(request)
        if not self._is_lost:
            await send(request)
        self._end.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")


async def until_done(each: Workloads, chance: SeededChance) -> int:
    """Kill and start again until nothing more is written; how many died."""
    deaths = 0
    while await Doomed(each, chance, 1 + chance.randrange(4) if deaths < 2 * KILLS else 10**9).live(60.0):
        deaths += 1
    return deaths


@pytest.mark.parametrize("seed", range(4))
def test_twenty_kills_during_a_rolling_update_change_nothing_about_its_end(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, controllers=(), nodes=("n1", "n2")) as each:
            made: Counter[str] = Counter()
            each.kubelets.pods.add_handler(lambda pod: made.update([pod.spec.containers[0].image]))
            chance = SeededChance(seed)
            await each.cluster.client.create(deployment(replicas=REPLICAS, surge=2, unavailable=1))
            deaths = await until_done(each, chance)
            assert await each.sizes() == {"web:1": REPLICAS}
            await each.set_image("web:2", seconds=0)
            deaths += await until_done(each, chance)
            assert deaths >= KILLS

            pods = await each.pods(lambda pod: True)
            assert [pod.spec.containers[0].image for pod in pods] == ["web:2"] * REPLICAS
            assert all(is_ready(pod) for pod in pods)
            sets = {found.metadata.uid: found.spec.replicas for found in await each.replica_sets()}
            assert sorted(size or 0 for size in sets.values()) == [0, REPLICAS]
            for pod in pods:
                owner = controller_of(pod)
                assert owner is not None
                assert sets[owner.uid] == REPLICAS
            found = await each.deployment()
            assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
            assert found.metadata.annotations["deployment.kubernetes.io/revision"] == "2"
            assert found.status.updated_replicas == found.status.available_replicas == REPLICAS
            # Not one pod too many: an heir lists what is there, and this server drops what the dead have not sent.
            assert made == {"web:1": REPLICAS, "web:2": REPLICAS}

    run_virtual(main)
