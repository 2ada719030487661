"""SIGKILL of a whole cluster, nodes included: objects are there again, and containers never knew.

A deployment of real processes and one of simulated containers, which crash once each, so that a count of restarts has
something to lose. The first kill comes while they are created, others while the cluster starts or stands, the last
one while everything is deleted.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.apps_v1 import Deployment, ReplicaSet
from nodeward.api.codec import from_tree
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.process import tree
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from tests.kill.api_process import MARK, ApiProcess, with_environment
from tests.kill.node_stage import BEATS, POD_MARK, beats_of, process_of
from tests.patience import until
from tests.rounds import rounds, seed_of, soak

pytestmark = [pytest.mark.slow, soak]

EACH = 3
CLOCK = RealClock()


@dataclass(frozen=True)
class Life:
    """What must not change of a pod while the cluster comes and goes."""

    uid: str
    node: str
    container_id: str
    restarts: int
    #: its process and when that began; of a simulated one there is none
    process: tuple[int, int]


class Play:
    """One cluster, and what is known of its pods."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._node = directory / "nodes" / "process-0"
        self.server = ApiProcess(directory, ["up", "--nodes", "3", "--runtime", "process"], "--port")
        self.chance = random.Random(seed_of("cluster-kill"))

    def client(self) -> Client:
        return self.server.client(CLOCK)

    async def settled(self, client: Client) -> dict[str, Life]:
        """All pods by name, once all of them run."""

        async def pods() -> list[Pod]:
            return (await client.list(Pod, "default")).items

        found = await until(CLOCK, pods, all_run, "all pods run")
        return {pod.metadata.name: self._life(pod) for pod in found}

    def _life(self, pod: Pod) -> Life:
        (found,) = pod.status.container_statuses
        process = process_of(self._node, pod) if is_real(pod) else (0, 0)
        return Life(pod.metadata.uid, pod.spec.node_name, found.container_id, found.restart_count, process)

    def heard(self, lives: dict[str, Life]) -> dict[str, int]:
        """How far each process has counted."""
        real = {name: life.uid for name, life in lives.items() if life.process[0]}
        return {name: beats_of(self._node, name, uid) for name, uid in real.items()}


def deployment(name: str, **template: Any) -> Deployment:
    labels, annotations = {"app": name}, template.pop("annotations", {})
    container = {"name": "c", "image": "image", **template.pop("container", {})}
    tree_ = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": EACH,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **template},
            },
        },
    }
    return from_tree(tree_, Deployment)


def real(directory: Path) -> Deployment:
    """Its processes can be told from everybody else's."""
    return deployment(
        "real",
        nodeSelector={"nodeward.dev/runtime": "process"},
        container={
            "command": ["sh", "-c", BEATS],
            "env": [{"name": POD_MARK, "value": str(directory)}],
        },
    )


SIMULATED = deployment(
    "sim",
    nodeSelector={"nodeward.dev/runtime": "sim"},
    annotations={"simulation.nodeward.dev/pod": "crashes=1,crash-after=100ms"},
)


def is_real(pod: Pod) -> bool:
    return pod.metadata.labels["app"] == "real"


def all_run(pods: list[Pod]) -> bool:
    """As many as asked for, none leaving, all ready; the simulated ones have crashed once."""
    return len(pods) == 2 * EACH and all(
        pod.metadata.deletion_timestamp is None
        and pod.status.phase == "Running"
        and len(pod.status.container_statuses) == 1
        and pod.status.container_statuses[0].ready
        and (is_real(pod) or pod.status.container_statuses[0].restart_count >= 1)
        for pod in pods
    )


async def play(each: Play) -> None:
    server, chance = each.server, each.chance
    await server.start()
    client = each.client()
    for wanted in (real(each.directory), SIMULATED):
        await client.create(wanted)
    # While they are made.
    await CLOCK.sleep(chance.uniform(0.0, 1.0))
    await server.kill()
    await server.start()
    lives = await each.settled(client)
    assert [life.restarts for name, life in lives.items() if name.startswith("sim")] == [1] * EACH
    assert [life.restarts for name, life in lives.items() if name.startswith("real")] == [0] * EACH
    beats = each.heard(lives)
    for number in range(rounds(3, 12)):
        await CLOCK.sleep(chance.uniform(0.0, 1.5))
        await server.kill()
        if number % 2:
            # While it starts.
            await server.launch()
            await CLOCK.sleep(chance.uniform(0.3, 4.0))
            await server.kill()
        await server.start()
        # One is made anew, so that kills meet pods that come and go as well.
        gone = chance.choice(sorted(lives))
        assert await each.settled(client) == lives
        now = each.heard(lives)
        assert all(now[name] > beats[name] for name in beats), "a process stood still"
        beats = now
        await client.delete(Pod, gone, "default")
        lives = await replaced(each, client, lives, gone)
        beats = each.heard(lives)
    await client.delete(Deployment, "real", "default")
    await CLOCK.sleep(chance.uniform(0.0, 1.0))
    await server.kill()
    await server.start()
    await client.delete(Deployment, "sim", "default")
    await nothing_left(client)
    # Whoever is alone needs no election: nobody waits for the lease of the dead.
    leases = (await client.list(Lease, "kube-system")).items
    assert not [lease.metadata.name for lease in leases if lease.metadata.name.startswith("kube-")]
    await server.stop()
    await client.aclose()


async def replaced(each: Play, client: Client, lives: dict[str, Life], gone: str) -> dict[str, Life]:
    """The pods after one was deleted: another came for it, and the others did not notice."""

    async def names() -> list[str]:
        return [pod.metadata.name for pod in (await client.list(Pod, "default")).items]

    await until(CLOCK, names, lambda found: gone not in found, f"{gone} is gone")
    now = await each.settled(client)
    assert {name: life for name, life in now.items() if name in lives} == {
        name: life for name, life in lives.items() if name != gone
    }
    return now


async def nothing_left(client: Client) -> None:
    async def left() -> list[str]:
        found = [
            *(await client.list(Deployment, "default")).items,
            *(await client.list(ReplicaSet, "default")).items,
            *(await client.list(Pod, "default")).items,
        ]
        return [f"{type(obj).__name__} {obj.metadata.name}" for obj in found]

    await until(CLOCK, left, lambda found: not found, "all is deleted")


def processes(directory: Path) -> list[int]:
    """Of the cluster: itself, supervisors, and commands of containers."""
    return with_environment(f"{MARK}={directory}") + with_environment(f"{POD_MARK}={directory}")


def test_a_cluster_that_is_killed_again_and_again_goes_on_where_it_was(tmp_path: Path) -> None:
    directory = tmp_path / "nodeward"

    async def main() -> None:
        each = Play(directory)
        try:
            await play(each)

            async def living() -> list[int]:
                return processes(directory)

            await until(CLOCK, living, lambda found: not found, "all processes are gone")
        finally:
            await each.server.kill()
            tree.kill_all(processes(directory))

    asyncio.run(main())
