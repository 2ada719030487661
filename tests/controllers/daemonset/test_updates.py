"""Rolling a daemon set out, and back: strategies, history, `kubectl rollout undo`."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import ControllerRevision, DaemonSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.fields import IntOrString
from nodeward.controllers.controller_revisions import HASH_LABEL
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.daemonset.daemons import (
    Crowds,
    add_nodes,
    daemon_set,
    daemons,
    found,
    patch_node,
    places,
    revisions,
    set_image,
)
from tests.controllers.workloads import NAMESPACE
from tests.scheduler.running import node


@pytest.mark.parametrize(
    ("unavailable", "fewest"), [(1, 9), (3, 7), ("30%", 7), ("25%", 7), ("1%", 9), ("100%", 0)]
)
def test_without_surge_at_most_max_unavailable_nodes_are_without(
    unavailable: IntOrString, fewest: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=10) as each:
            await each.create(daemon_set(unavailable=unavailable))
            crowds = Crowds(each)
            await set_image(each, "web:2", 120)
            assert set((await places(each)).values()) == {"web:2"}
            assert len(await places(each)) == 10
            assert crowds.fewest_serving == fewest
            assert crowds.most_on_a_node == 1
            status = (await found(each)).status
            assert (status.updated_number_scheduled, status.number_available) == (10, 10)
            assert status.observed_generation == 2

    run_virtual(main)


@pytest.mark.parametrize("surge", [1, 4, "50%", "100%"])
def test_with_surge_no_node_is_ever_without(surge: IntOrString) -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=10) as each:
            await each.create(daemon_set(surge=surge, unavailable=0, min_ready_seconds=2), 20)
            crowds = Crowds(each)
            await set_image(each, "web:2", 200)
            assert set((await places(each)).values()) == {"web:2"}
            assert crowds.fewest_serving == 10
            assert crowds.most_on_a_node == 2

    run_virtual(main)


def test_a_surging_set_that_moves_to_other_nodes_keeps_serving_until_they_serve() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=2, start_seconds=5.0) as each:
            await each.create(daemon_set(surge=1, unavailable=0))
            crowds = Crowds(each)
            await patch_node(each, "n0", {"spec": {"taints": [{"key": "old", "effect": "NoSchedule"}]}})
            await add_nodes(each, node("n2"))
            await set_image(each, "web:2", 120)
            assert await places(each) == {"n1": "web:2", "n2": "web:2"}
            assert crowds.fewest_serving == 2

    run_virtual(main)


def test_a_rollout_to_a_broken_image_stops_at_max_unavailable() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(
            clock, nodes=5, is_healthy=lambda pod: pod.spec.containers[0].image != "web:bad"
        ) as each:
            await each.create(daemon_set(unavailable=2))
            await set_image(each, "web:bad", 600)
            images = list((await places(each)).values())
            assert sorted(images) == ["web:1"] * 3 + ["web:bad"] * 2
            status = (await found(each)).status
            assert (status.number_available, status.number_unavailable) == (3, 2)
            await set_image(each, "web:3", 60)
            assert set((await places(each)).values()) == {"web:3"}

    run_virtual(main)


def test_on_delete_changes_nothing_until_a_pod_is_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set(strategy="OnDelete"))
            await set_image(each, "web:2")
            assert set((await places(each)).values()) == {"web:1"}
            assert (await found(each)).status.updated_number_scheduled == 0
            (doomed,) = [pod for pod in await each.pods() if pod.spec.node_name == "n1"]
            await each.cluster.client.delete(Pod, doomed.metadata.name, NAMESPACE)
            await each.cluster.pass_time(10)
            assert await places(each) == {"n0": "web:1", "n1": "web:2", "n2": "web:1"}

    run_virtual(main)


def test_rollout_undo_brings_the_old_template_back_under_a_new_number() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set(unavailable=3))
            await set_image(each, "web:2")
            first, second = await revisions(each)
            assert (first.revision, second.revision) == (1, 2)
            # What `kubectl rollout undo` sends is what the revision holds.
            await each.cluster.client.patch(DaemonSet, "web", first.data, namespace=NAMESPACE)
            await each.cluster.pass_time(30)
            assert set((await places(each)).values()) == {"web:1"}
            kept = {one.metadata.name: one.revision for one in await revisions(each)}
            assert kept == {first.metadata.name: 3, second.metadata.name: 2}

    run_virtual(main)


def test_history_beyond_the_limit_is_forgotten_but_never_what_is_in_use() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock, nodes=2) as each:
            await each.create(daemon_set(strategy="OnDelete", revision_history_limit=1))
            for number in range(2, 6):
                await set_image(each, f"web:{number}", 5)
            kept = [one.revision for one in await revisions(each)]
            # The pods' own, one old, the current.
            assert kept == [1, 4, 5]

    run_virtual(main)


def test_two_revisions_of_one_template_become_one() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set())
            (first,) = await revisions(each)
            twin = ControllerRevision(metadata=first.metadata, data=first.data, revision=7)
            twin.metadata.name, twin.metadata.uid, twin.metadata.resource_version = "web-twin", "", ""
            twin.metadata.labels[HASH_LABEL] = "twin"
            await each.create(twin)
            await patch_node(each, "n0", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
            await each.cluster.pass_time(30)
            (kept,) = await revisions(each)
            assert kept.metadata.name == "web-twin"
            assert {pod.metadata.labels[HASH_LABEL] for pod in await each.pods()} == {"twin"}
            assert len(each.kubelets.started) == 3

    run_virtual(main)


def test_a_name_that_is_taken_costs_a_collision_and_nothing_else() -> None:
    async def main(clock: VirtualClock) -> None:
        async with daemons(clock) as each:
            await each.create(daemon_set())
            (first,) = await revisions(each)
            await each.cluster.client.delete(DaemonSet, "web", NAMESPACE)
            await each.cluster.pass_time(1)
            assert [one.metadata.name for one in await revisions(each)] == [first.metadata.name]
            await each.create(daemon_set())
            assert (await found(each)).status.collision_count == 1
            assert len(await revisions(each)) == 2

    run_virtual(main)
