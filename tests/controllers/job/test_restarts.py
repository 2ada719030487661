"""Job controllers that are killed at any write: the counts come out exact."""

from __future__ import annotations

import pytest

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.job.pod_facts import is_tracked
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.job.jobs import ONLY_JOBS, conditions, found, indexed, job, jobs
from tests.controllers.restarting import Doomed, outlive

KILLS = 20


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_indexed", [False, True])
def test_twenty_kills_do_not_change_the_counts(seed: int, is_indexed: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        failing = iter([0, 1, 0, 0, 1, 0, 0, 0, 1] + [0] * 100)
        wanted = 24
        made: Job = indexed(wanted, 4) if is_indexed else job(completions=wanted, parallelism=4)
        async with jobs(clock, lambda pod: next(failing), controllers=()) as (each, workers):
            await each.cluster.client.create(made)
            deaths = await outlive(each.cluster, ONLY_JOBS, SeededChance(seed), kills=2 * KILLS, seconds=3600)
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
            await Doomed(each.cluster, ONLY_JOBS, chance, 5).live(0.5)
            await each.cluster.pass_time(30)
            for pod in await each.pods(lambda pod: True):
                await each.cluster.client.delete(Pod, pod.metadata.name, pod.metadata.namespace)
            await Doomed(each.cluster, ONLY_JOBS, chance, SECOND_NS).live(60)
            one = await found(each)
            assert (one.status.succeeded, one.status.failed) == (3, 0)
            assert "Complete" in conditions(one)

    run_virtual(main)
