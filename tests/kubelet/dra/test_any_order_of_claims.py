"""Whatever happens in whatever order, no claim is prepared for nobody and nothing is left when all pods are gone.

Pods with random claims come and go, drivers begin to fail, to be slow and to work again, the kubelet restarts.
Through the real host, in virtual time.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.kubelet.dra.described_drivers import ALWAYS
from tests.keps.kep5945 import DRIVER, OTHER, DRAScene, play, present
from tests.rounds import rounds, seed_of, soak

CLAIMS = ("a", "b", "c", "d")
STEPS = 25


class Play:
    """One round."""

    def __init__(self, scene: DRAScene, chance: random.Random) -> None:
        self.scene, self.chance = scene, chance
        self.pods: list[str] = []
        self.started = 0

    async def run(self) -> None:
        for number, name in enumerate(CLAIMS):
            await self.scene.allocate(
                name, gpu=self.chance.choice([True, None]), nic=[None, True][number % 2]
            )
        for _ in range(STEPS):
            step = self.chance.choice(
                [self.start, self.start, self.end, self.end, self.trouble, self.restart]
            )
            await step()
            await self.scene.world.pass_time(self.chance.choice([0.0, 0.5, 3.0, 20.0]))
            await self.check()

    async def start(self) -> None:
        self.started += 1
        name = f"p{self.started}"
        used = self.chance.sample(CLAIMS, self.chance.randint(1, 3))
        self.pods.append(name)
        await self.scene.start(name, *used, seconds=0.0)

    async def end(self) -> None:
        if self.pods:
            name = self.pods.pop(self.chance.randrange(len(self.pods)))
            grace = self.chance.choice([None, 0])
            await self.scene.world.client.delete(Pod, name, "default", grace_period=grace)

    async def trouble(self) -> None:
        driver = self.scene.drivers[self.chance.choice([DRIVER, OTHER])]
        driver.description = replace(
            driver.description,
            failing_prepares=self.chance.choice([0, 0, ALWAYS]),
            failing_unprepares=self.chance.choice([0, 0, ALWAYS]),
            prepare_seconds=self.chance.choice([0.0, 0.0, 7.0, 60.0]),
        )

    async def restart(self) -> None:
        await self.scene.kubelet.restart(seconds=self.chance.choice([0.0, 2.0]))

    async def check(self) -> None:
        """A claim that is prepared is in the checkpoint; a pod that runs has all of its claims there."""
        path = self.scene.world.root / "n1" / "dra_manager_state"
        written = self.scene.checkpoint() if path.exists() else []
        known = {each["ClaimUID"]: each for each in written}
        for driver in self.scene.drivers.values():
            assert set(driver.prepared) <= set(known), "prepared for nobody"
        names = {each.metadata.name: each.metadata.uid for each in await self.claims()}
        for pod in (await self.scene.world.client.list(Pod, "default")).items:
            if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None:
                for reference in pod.spec.resource_claims:
                    entry = known[names[reference.resource_claim_name or ""]]
                    assert pod.metadata.uid in entry["PodUIDs"]

    async def claims(self) -> list[ResourceClaim]:
        return list((await self.scene.world.client.list(ResourceClaim, "default")).items)

    async def finish(self) -> None:
        for driver in self.scene.drivers.values():
            driver.description = present(driver.description.name)
        for name in self.pods:
            await self.scene.world.client.delete(Pod, name, "default")
        await self.scene.world.pass_time(400)
        assert (await self.scene.world.client.list(Pod, "default")).items == []
        assert self.scene.checkpoint() == []
        for driver in self.scene.drivers.values():
            assert driver.prepared == {}


@soak
@pytest.mark.parametrize("number", range(rounds(4, 100)))
def test_nothing_is_prepared_for_nobody_and_nothing_is_left(number: int) -> None:
    chance = random.Random(f"{seed_of('claims')}-{number}")

    async def act(scene: DRAScene) -> None:
        round_ = Play(scene, chance)
        await round_.run()
        await round_.finish()

    play(act, drivers=(present(DRIVER), present(OTHER)))
