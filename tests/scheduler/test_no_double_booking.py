"""Whatever fails and whoever interferes: nothing is promised twice, no pod is bound twice, and no pod is lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.features.declared import Version
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Chance, SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile
from tests.scheduler.running import KUBE_SCHEDULER, Cluster, cluster, node, one_profile
from tests.scheduler.stress import ROOM, Flaky, Witness, meddle, random_pod

NODES = [f"n{number}" for number in range(10)]
PODS = 100
SECONDS = 40.0


@dataclass(slots=True)
class Copies:
    """Schedulers that are killed, and others in their place."""

    world: Cluster
    settings: SchedulerSettings
    chance: Chance
    running: list[tuple[Scheduler, Flaky]] = field(default_factory=list)
    started: int = 0
    refused: int = 0

    async def start(self) -> None:
        self.started += 1
        world, chance = self.world, self.chance.child(f"copy {self.started}")
        inner = world.server.client("kube-scheduler", KUBE_SCHEDULER).transport
        wire = Flaky(inner, world.clock, chance.child("wire"))
        scheduler = Scheduler(
            Client(wire, clock=world.clock, component="kube-scheduler", retry=None),
            world.clock,
            chance,
            gates=world.gates,
            version=Version.parse("1.37"),
            settings=self.settings,
            identity=f"copy-{self.started}",
        )
        self.running.append((scheduler, wire))
        await scheduler.start()

    async def kill(self, number: int = 0) -> None:
        """At once: what it has sent may arrive, but it does not say good-bye."""
        scheduler, wire = self.running.pop(number)
        wire.is_dead = True
        self.refused += wire.refused
        await scheduler.stop()

    async def calm(self) -> None:
        for _, wire in self.running:
            wire.is_flaky = False


async def trouble(world: Cluster, copies: Copies, chance: Chance, witness: Witness, pause: float) -> None:
    """Pods come while nodes change, bindings fail and schedulers die."""
    clock = world.clock
    await world.add_nodes(*(node(name, allocatable=ROOM) for name in NODES))
    meddlers = [
        asyncio.create_task(meddle(world.client, clock, chance.child(f"meddler {number}"), NODES, SECONDS))
        for number in range(4)
    ]

    async def kill_some() -> None:
        killing = chance.child("killer")
        while True:
            await clock.sleep(killing.uniform(2.0, 12.0))
            await copies.kill()
            await clock.sleep(killing.uniform(0.0, pause))
            await copies.start()

    killer = asyncio.create_task(kill_some())
    wanted = chance.child("pods")
    for number in range(PODS):
        await world.client.create(random_pod(number, wanted))
        await clock.sleep(wanted.uniform(0.0, 2 * SECONDS / PODS))
    await asyncio.gather(*meddlers)
    killer.cancel()
    await asyncio.gather(killer, return_exceptions=True)
    if not copies.running:
        await copies.start()
    await copies.calm()
    for name in (each for each in NODES if each in witness.nodes):
        await world.client.patch(
            Node, name, {"spec": {"taints": [], "unschedulable": False}}, patch_type=PatchType.MERGE
        )
    await world.pass_time(90)


async def check(world: Cluster, witness: Witness) -> None:
    assert witness.faults == []
    waiting = [each for each in witness.pods.values() if not each.pod.spec.node_name]
    assert witness.bound > PODS / 3
    assert len(witness.pods) + witness.gone == PODS, "nobody took pods away but those who needed their room"
    lost = {each.name: [*witness.could_go(each)] for each in waiting if [*witness.could_go(each)]}
    assert lost == {}, "whoever has no node fits nowhere"


@pytest.mark.parametrize("seed", range(4))
def test_one_scheduler_that_is_killed_and_restarted_promises_nothing_twice_and_loses_no_pod(
    seed: int,
) -> None:
    async def main(clock: VirtualClock) -> None:
        chance = SeededChance(seed)
        async with cluster(clock, starts=False) as world:
            witness = Witness(world.client, clock, chance.child("witness"))
            await witness.start()
            copies = Copies(world, one_profile(world.gates), chance.child("schedulers"))
            await copies.start()
            await trouble(world, copies, chance, witness, 1.0)
            await check(world, witness)
            assert copies.started > 3
            table = copies.running[0][0].engine.table.sizes()
            bound = [each for each in witness.pods.values() if each.pod.spec.node_name]
            assert table == {"nodes": len(witness.nodes), "pods": len(bound), "assumed_pods": 0}
            await copies.kill()
            assert copies.refused > PODS / 10
            await witness.stop()

    run_virtual(main)


@pytest.mark.parametrize("seed", range(2))
def test_two_copies_of_which_the_first_is_killed_again_and_again_bind_no_pod_twice(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        chance = SeededChance(100 + seed)
        async with cluster(clock, starts=False) as world:
            witness = Witness(world.client, clock, chance.child("witness"))
            await witness.start()
            elected = SchedulerSettings(
                (default_profile(world.gates),),
                lease_duration_seconds=3.0,
                renew_deadline_seconds=2.0,
                retry_period_seconds=0.5,
            )
            copies = Copies(world, elected, chance.child("schedulers"))
            await copies.start()
            await copies.start()
            await trouble(world, copies, chance, witness, 3.0)
            await check(world, witness)
            assert copies.started > 4
            while copies.running:
                await copies.kill()
            await witness.stop()

    run_virtual(main)
