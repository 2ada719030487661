"""Controllers that are killed at any write of a rollout: the end is the same, and nothing is left behind."""

from __future__ import annotations

from collections import Counter

import pytest

from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.state import is_ready
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.restarting import outlive
from tests.controllers.workloads import WORKLOADS, conditions, deployment, workloads

KILLS = 20
REPLICAS = 10


@pytest.mark.parametrize("seed", range(4))
def test_twenty_kills_during_a_rolling_update_change_nothing_about_its_end(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, controllers=(), nodes=("n1", "n2")) as each:
            made: Counter[str] = Counter()
            each.kubelets.pods.add_handler(lambda pod: made.update([pod.spec.containers[0].image]))
            chance = SeededChance(seed)
            await each.cluster.client.create(deployment(replicas=REPLICAS, surge=2, unavailable=1))
            deaths = await outlive(each.cluster, WORKLOADS, chance, kills=2 * KILLS, seconds=60)
            assert await each.sizes() == {"web:1": REPLICAS}
            await each.set_image("web:2", seconds=0)
            deaths += await outlive(each.cluster, WORKLOADS, chance, kills=2 * KILLS, seconds=60)
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
