"""Controllers that are killed at any write of an update: the end is the same, and the order holds."""

from __future__ import annotations

import pytest

from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.restarting import outlive
from tests.controllers.statefulset.sets import (
    ONLY_SETS,
    Diary,
    claims,
    found,
    images,
    revisions,
    set_image,
    sets,
    stateful_set,
)

KILLS = 20


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("parallel", [False, True])
def test_kills_during_an_update_change_nothing_about_its_end(seed: int, parallel: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, controllers=()) as each:
            chance = SeededChance(seed)
            diary = Diary(each)
            await each.cluster.client.create(stateful_set(6, parallel=parallel, claims=("Retain", "Retain")))
            deaths = await outlive(each.cluster, ONLY_SETS, chance, kills=KILLS, seconds=60)
            made = [line for line in diary.lines if line.startswith("+")]
            assert sorted(made) == [f"+web-{number}" for number in range(6)]
            if not parallel:
                assert made == sorted(made)
            diary.lines.clear()
            await set_image(each, "web:2", 0)
            deaths += await outlive(each.cluster, ONLY_SETS, chance, kills=KILLS, seconds=60)
            assert deaths >= KILLS
            assert set((await images(each)).values()) == {"web:2"}
            expected = [f"{sign}web-{number}" for number in reversed(range(6)) for sign in "-+"]
            assert diary.lines == expected
            assert len(await claims(each)) == 6
            assert len(await revisions(each)) == 2
            status = (await found(each)).status
            assert status.current_revision == status.update_revision
            assert status.available_replicas == 6

    run_virtual(main)
