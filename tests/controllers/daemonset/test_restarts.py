"""Controllers that are killed at any write of an update: every node has one pod of the new template in the end."""

from __future__ import annotations

import pytest

from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.daemonset.daemons import (
    ONLY_DAEMONS,
    Crowds,
    add_nodes,
    daemon_set,
    found,
    places,
    revisions,
    set_image,
)
from tests.controllers.restarting import outlive
from tests.controllers.workloads import workloads
from tests.scheduler.running import node

KILLS = 20
NODES = 14


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("surge", [0, 2])
def test_kills_during_an_update_change_nothing_about_its_end(seed: int, surge: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, controllers=()) as each:
            await add_nodes(each, *(node(f"n{number}") for number in range(NODES)))
            chance = SeededChance(seed)
            crowds = Crowds(each)
            await each.cluster.client.create(daemon_set(surge=surge, unavailable=0 if surge else 2))
            deaths = await outlive(each.cluster, ONLY_DAEMONS, chance, kills=KILLS, seconds=60)
            assert crowds.most_on_a_node == 1
            crowds.fewest_serving = NODES
            await set_image(each, "web:2", 0)
            deaths += await outlive(each.cluster, ONLY_DAEMONS, chance, kills=KILLS, seconds=60)
            assert deaths >= KILLS
            assert await places(each) == {f"n{number}": "web:2" for number in range(NODES)}
            assert len(await each.pods(lambda pod: True)) == NODES
            assert crowds.most_on_a_node == (2 if surge else 1)
            assert crowds.fewest_serving == (NODES if surge else NODES - 2)
            assert len(await revisions(each)) == 2
            status = (await found(each)).status
            assert (status.updated_number_scheduled, status.number_available) == (NODES, NODES)

    run_virtual(main)
