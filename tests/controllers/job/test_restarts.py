"""Job controllers that are killed at any write: the counts come out exact."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.identities import controller_client
from nodeward.controllers.job.pod_facts import is_tracked
from nodeward.controllers.runner import Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import settings
from tests.controllers.cluster import Altered
from tests.controllers.job.jobs import ONLY_JOBS, conditions, found, indexed, job, jobs
from tests.controllers.workloads import Workloads

KILLS = 20


class Doomed:
    """A controller that dies at its n-th write: before the server gets it, or before it gets the answer."""

    def __init__(self, each: Workloads, chance: SeededChance, writes: int) -> None:
        self._left = writes
        self._is_lost = bool(chance.randrange(2))
        self._end = asyncio.Event()
        self._clock = each.cluster.clock

        def client_for(name: str) -> Client:
            transport = Altered(controller_client(each.cluster.server, name).transport)
            transport.alter = self._pass
            return Client(transport, clock=self._clock, component=name, retry=None)

        luck = SeededChance(chance.randrange(10**6))
        self._runner = Runner(client_for, self._clock, luck, gates=settings().gates, controllers=ONLY_JOBS)

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
        self._left -= 1
        if self._left > 0:
            return await send(request)
        if self._left == 0 and not self._is_lost:
            await send(request)
        self._end.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")


async def outlive(each: Workloads, chance: SeededChance) -> int:
    """Kill and start again until nothing more is written; how many died."""
    deaths = 0
    while await Doomed(each, chance, 1 + chance.randrange(4) if deaths < 2 * KILLS else 10**9).live(3600.0):
        deaths += 1
    return deaths


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_indexed", [False, True])
def test_twenty_kills_do_not_change_the_counts(seed: int, is_indexed: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        failing = iter([0, 1, 0, 0, 1, 0, 0, 0, 1] + [0] * 100)
        wanted = 24
        made: Job = indexed(wanted, 4) if is_indexed else job(completions=wanted, parallelism=4)
        async with jobs(clock, lambda pod: next(failing), controllers=()) as (each, workers):
            await each.cluster.client.create(made)
            deaths = await outlive(each, SeededChance(seed))
            assert deaths >= KILLS
            one = await found(each)
            assert "Complete" in conditions(one)
            succeeded = [index for index, code in workers.ended if not code]
            failed = [index for index, code in workers.ended if code]
            assert len(failed) == one.status.failed
            if is_indexed:
                assert (one.status.completed_indexes, one.status.succeeded) == ("0-23", wanted)
                assert sorted(succeeded) == list(range(wanted))
            else:
                assert one.status.succeeded == len(succeeded) == wanted
            pods = await each.pods(lambda pod: True)
            assert not any(map(is_tracked, pods))
            assert len(pods) == len(workers.ended)

    run_virtual(main)


def test_pods_that_end_and_go_while_nobody_looks_are_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 0, controllers=()) as (each, _):
            await each.cluster.client.create(job(completions=3, parallelism=3))
            chance = SeededChance(1)
            await Doomed(each, chance, 5).live(0.5)
            await each.cluster.pass_time(30)
            for pod in await each.pods(lambda pod: True):
                await each.cluster.client.delete(Pod, pod.metadata.name, pod.metadata.namespace)
            await Doomed(each, chance, 10**9).live(60)
            one = await found(each)
            assert (one.status.succeeded, one.status.failed) == (3, 0)
            assert "Complete" in conditions(one)

    run_virtual(main)
