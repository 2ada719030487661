"""SIGKILL of the controllers, many times, while a deployment is rolled out again and again.

Half of the kills come at a random moment, the start included, half of them as soon as something is seen to happen,
so that many meet a write that is under way.

How many pods may be made: a rollout makes one for each replica. What was asked for when the process died is found by
the next one in the API, since it lists before it acts; only a creation that the API server has accepted and not
finished by then is made once more, and the pod too many is deleted. That is at most what one batch has under way,
and with bounds as tight as here a batch is at most the surge; in practice it does not happen at all.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeward.api.apps_v1 import Deployment, ReplicaSet
from nodeward.api.codec import from_tree
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from tests.kill.api_process import ApiProcess
from tests.kill.rollout_history import History
from tests.patience import PATIENCE_SECONDS, until
from tests.rounds import rounds, seed_of, soak

pytestmark = pytest.mark.slow

REPLICAS = 20
SURGE = 4
UNAVAILABLE = 2
#: Fewer leave too little to disturb.
UPDATES = 3
REPOSITORY = Path(__file__).parents[2]
CLOCK = RealClock()


class Controllers:
    """The process of the controllers, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pid = 0

    async def start(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"run\n")
        await self._process.stdin.drain()
        self._pid = await self._number()

    async def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        assert await self._number() == -signal.SIGKILL, "it had ended by itself"

    async def _number(self) -> int:
        assert self._process.stdout is not None
        async with CLOCK.timeout(PATIENCE_SECONDS):
            return int(await self._process.stdout.readline())


@asynccontextmanager
async def controllers(kubeconfig: Path, log: Path, elects: str = "false") -> AsyncIterator[Controllers]:
    """Without an election one process can come right after the other: nobody waits for the lease of the dead."""
    with log.open("ab") as written:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.kill.controllers_forks"),
            *("--kubeconfig", str(kubeconfig), f"--leader-elect={elects}", "--secure-port=0"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=written,
            cwd=REPOSITORY,
            start_new_session=True,
        )
    try:
        yield Controllers(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def deployment() -> Deployment:
    container = {"name": "c", "image": "web:0"}
    tree = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": REPLICAS,
            "strategy": {"rollingUpdate": {"maxSurge": SURGE, "maxUnavailable": UNAVAILABLE}},
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {
                    "labels": {"app": "web"},
                    "annotations": {"simulation.nodeward.dev/pod": "start-delay=300ms"},
                },
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    }
    return from_tree(tree, Deployment)


async def update(client: Client, number: int) -> None:
    container = {"name": "c", "image": f"web:{number}"}
    body = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await client.patch(Deployment, "web", body, namespace="default")


def is_rolled_out(found: Deployment) -> bool:
    """As `kubectl rollout status` sees it."""
    status = found.status
    return (
        status.observed_generation >= found.metadata.generation
        and status.updated_replicas == status.replicas == status.available_replicas == REPLICAS
    )


async def kill_often(each: Controllers, client: Client, history: History) -> int:
    """Gives how many updates were begun. Whenever one is through, the next begins."""
    chance = random.Random(seed_of("controllers-kill"))
    kills, enough, updates = 0, rounds(20, 180), 1
    await update(client, updates)
    while kills < enough or updates < UPDATES:
        kills += 1
        await each.start()
        # A busy machine gets nowhere in this time; then the kills come later and later.
        most = 1.2 + 0.1 * max(0, kills - enough)
        seconds = chance.uniform(0.2, most)
        at_random = kills % 2 == 0
        try:
            async with CLOCK.timeout(seconds if at_random else most):
                await history.reach(history.events + (10**9 if at_random else chance.randint(1, 20)))
        except TimeoutError:
            pass
        await each.kill()
        if is_rolled_out(await client.get(Deployment, "web", "default")):
            updates += 1
            await update(client, updates)
    return updates


async def play(server: ApiProcess, log: Path) -> None:
    await server.start()
    client = server.client(CLOCK)
    async with controllers(server.kubeconfig, log) as each:

        async def web() -> Deployment:
            return await client.get(Deployment, "web", "default")

        await client.create(deployment())
        await each.start()
        await until(CLOCK, web, is_rolled_out, "the deployment is there")
        await each.kill()
        history = History(client, "default", REPLICAS + SURGE, REPLICAS - UNAVAILABLE)
        watching = await history.begin()
        killing = asyncio.create_task(kill_often(each, client, history))
        done, _ = await asyncio.wait((killing, *watching), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        updates = killing.result()
        await each.start()
        await until(CLOCK, web, is_rolled_out, "the last update is through")
        await as_if_never_killed(client, updates)
        for task in watching:
            assert not task.done(), task.exception()
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        made = len(history.created)
        print(f"{updates} updates, {made} pods, {history.lowest} to {history.highest} at once")  # noqa: T201
        assert made <= REPLICAS * (1 + updates) + SURGE
        await client.delete(Deployment, "web", "default")
        await nothing_left(client)
        await each.kill()
    await client.aclose()


async def succeed(server: ApiProcess, log: Path) -> None:
    await server.start()
    client = server.client(CLOCK)

    async def lease() -> Lease:
        return await client.get(Lease, "kube-controller-manager", "kube-system")

    async def leases() -> list[Lease]:
        found = (await client.list(Lease, "kube-system")).items
        return [
            each
            for each in found
            if each.metadata.name == "kube-controller-manager" and each.spec.holder_identity
        ]

    async def web() -> Deployment:
        return await client.get(Deployment, "web", "default")

    async with (
        controllers(server.kubeconfig, log, "true") as first,
        controllers(server.kubeconfig, log, "true") as second,
    ):
        await first.start()
        await until(CLOCK, leases, lambda found: len(found) == 1, "there is a leader")
        leader = (await lease()).spec.holder_identity
        await second.start()
        await client.create(deployment())
        await until(CLOCK, web, lambda found: found.status.replicas > 0, "the leader works")
        await first.kill()
        # However far the first one came, there is something left to do.
        await update(client, 1)
        await until(CLOCK, web, is_rolled_out, "the other one goes on")
        now = (await lease()).spec
        assert now.holder_identity != leader
        assert now.lease_transitions == 1
        await as_if_never_killed(client, 1)
        await second.kill()
    await client.aclose()


async def as_if_never_killed(client: Client, updates: int) -> None:
    """One replica set for each template, all pods in that of the last one."""

    async def pods() -> list[Pod]:
        return (await client.list(Pod, "default")).items

    found = await until(CLOCK, pods, lambda all_: len(all_) == REPLICAS, "no pod is on its way out")
    sets = (await client.list(ReplicaSet, "default")).items
    images = {each.spec.template.spec.containers[0].image: each for each in sets}
    assert len(images) == len(sets), "there are two replica sets for one template"
    assert {image: each.spec.replicas for image, each in images.items() if each.spec.replicas} == {
        f"web:{updates}": REPLICAS
    }
    assert {pod.metadata.owner_references[0].uid for pod in found} == {images[f"web:{updates}"].metadata.uid}
    web = await client.get(Deployment, "web", "default")
    assert all(each.metadata.owner_references[0].uid == web.metadata.uid for each in sets)
    # Ten old ones are kept, as if nothing had happened; a revision is the number of an update.
    revision = "deployment.kubernetes.io/revision"
    assert web.metadata.annotations[revision] == str(updates + 1)
    assert {image: each.metadata.annotations[revision] for image, each in images.items()} == {
        f"web:{number}": str(number + 1) for number in range(max(0, updates - 10), updates + 1)
    }


async def nothing_left(client: Client) -> None:
    async def left() -> list[str]:
        sets, pods = await client.list(ReplicaSet, "default"), await client.list(Pod, "default")
        return [obj.metadata.name for obj in (*sets.items, *pods.items)]

    await until(CLOCK, left, lambda found: not found, "all is deleted")


def in_cluster(tmp_path: Path, play_: Callable[[ApiProcess, Path], Awaitable[None]]) -> None:
    """Nodes and a scheduler are there, controllers are not; none of those that come may complain."""
    server = ApiProcess(tmp_path / "nodeward", ["up", "--nodes", "4", "--no-controllers"], "--port")
    log = tmp_path / "log"

    async def main() -> None:
        try:
            await play_(server, log)
        finally:
            await server.kill()

    asyncio.run(main())
    assert "Traceback" not in log.read_text()


@soak
def test_kills_of_the_controllers_change_nothing_about_rolling_updates(tmp_path: Path) -> None:
    in_cluster(tmp_path, play)


def test_a_copy_that_waits_goes_on_when_the_leader_is_killed(tmp_path: Path) -> None:
    in_cluster(tmp_path, succeed)
