"""Updating a stateful set: strategies, partitions, history, and what a broken update does."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.fields import IntOrString
from nodeward.controllers.statefulset.plan import StatefulSetState, next_steps
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.statefulset.sets import (
    Diary,
    found,
    images,
    revisions,
    set_image,
    sets,
    stateful_set,
)
from tests.controllers.workloads import NAMESPACE


def test_an_update_goes_from_the_highest_ordinal_down_one_at_a_time() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(3), 20)
            diary = Diary(each)
            await set_image(each, "web:2")
            assert diary.lines == ["-web-2", "+web-2", "-web-1", "+web-1", "-web-0", "+web-0"]
            assert diary.fewest_ready == 2
            assert set((await images(each)).values()) == {"web:2"}
            status = (await found(each)).status
            first, second = await revisions(each)
            assert (first.revision, second.revision) == (1, 2)
            assert status.current_revision == status.update_revision == second.metadata.name
            assert (status.current_replicas, status.updated_replicas) == (3, 3)

    run_virtual(main)


def test_below_the_partition_pods_stay_old_even_when_they_are_made_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(4, partition=2), 20)
            await set_image(each, "web:2")
            expected = {"web-0": "web:1", "web-1": "web:1", "web-2": "web:2", "web-3": "web:2"}
            assert await images(each) == expected
            status = (await found(each)).status
            assert (status.current_replicas, status.updated_replicas) == (2, 2)
            assert status.current_revision != status.update_revision
            for name in ("web-0", "web-3"):
                await each.cluster.client.delete(Pod, name, NAMESPACE)
                await each.cluster.pass_time(15)
            assert await images(each) == expected
            await each.change(StatefulSet, {"updateStrategy": {"rollingUpdate": {"partition": 0}}}, 60)
            assert set((await images(each)).values()) == {"web:2"}

    run_virtual(main)


def test_on_delete_updates_only_what_is_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2, on_delete=True), 20)
            await set_image(each, "web:2")
            assert set((await images(each)).values()) == {"web:1"}
            await each.cluster.client.delete(Pod, "web-0", NAMESPACE)
            await each.cluster.pass_time(10)
            assert await images(each) == {"web-0": "web:2", "web-1": "web:1"}

    run_virtual(main)


@pytest.mark.parametrize(
    ("unavailable", "parallel", "fewest"), [(3, True, 7), ("30%", True, 7), (2, False, 8)]
)
def test_as_many_are_replaced_together_as_may_be_unavailable(
    unavailable: IntOrString, parallel: bool, fewest: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(10, parallel=parallel, unavailable=unavailable), 60)
            diary = Diary(each)
            await set_image(each, "web:2", 120)
            assert set((await images(each)).values()) == {"web:2"}
            assert diary.fewest_ready == fewest
            assert diary.most <= 10

    run_virtual(main)


def test_a_broken_update_stays_broken_after_the_template_is_put_back_until_its_pod_is_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, is_healthy=lambda pod: pod.spec.containers[0].image != "web:bad") as each:
            await each.create(stateful_set(3), 20)
            await set_image(each, "web:bad")
            broken = {"web-0": "web:1", "web-1": "web:1", "web-2": "web:bad"}
            assert await images(each) == broken
            await set_image(each, "web:1")
            assert await images(each) == broken
            await each.cluster.client.delete(Pod, "web-2", NAMESPACE)
            await each.cluster.pass_time(20)
            assert set((await images(each)).values()) == {"web:1"}
            status = (await found(each)).status
            assert status.current_revision == status.update_revision
            assert [one.revision for one in await revisions(each)] == [2, 3]

    run_virtual(main)


def test_a_broken_update_of_a_parallel_set_mends_itself() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, is_healthy=lambda pod: pod.spec.containers[0].image != "web:bad") as each:
            await each.create(stateful_set(3, parallel=True), 20)
            await set_image(each, "web:bad")
            assert sorted((await images(each)).values()) == ["web:1", "web:1", "web:bad"]
            await set_image(each, "web:3")
            assert set((await images(each)).values()) == {"web:3"}

    run_virtual(main)


def test_what_a_revision_holds_brings_its_template_back() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2), 20)
            await set_image(each, "web:2")
            first, _ = await revisions(each)
            # What `kubectl rollout undo` sends.
            await each.cluster.client.patch(StatefulSet, "web", first.data, namespace=NAMESPACE)
            await each.cluster.pass_time(60)
            assert set((await images(each)).values()) == {"web:1"}
            assert (await found(each)).status.current_revision == first.metadata.name

    run_virtual(main)


def test_history_beyond_the_limit_is_forgotten() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(1, revision_history_limit=2), 10)
            for number in range(2, 7):
                await set_image(each, f"web:{number}", 20)
            assert [one.revision for one in await revisions(each)] == [4, 5, 6]

    run_virtual(main)


def test_scaling_comes_before_updating() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2), 20)
            diary = Diary(each)
            containers = [{"name": "web", "image": "web:2"}]
            spec = {"replicas": 3, "template": {"spec": {"containers": containers}}}
            await each.change(StatefulSet, spec, 60)
            assert diary.lines == ["+web-2", "-web-1", "+web-1", "-web-0", "+web-0"]

    run_virtual(main)


def test_without_the_gate_a_parallel_set_is_updated_one_by_one() -> None:
    owner = stateful_set(3, parallel=True, unavailable=3)

    def pod(number: int, revision: str, *, ready: bool = True) -> Pod:
        one = Pod()
        one.metadata.name, one.metadata.labels = f"web-{number}", {"controller-revision-hash": revision}
        one.status.phase = "Running"
        one.status.conditions = [PodCondition(type="Ready", status="True" if ready else "False")]
        return one

    pods = {number: pod(number, "old") for number in range(3)}
    scene = StatefulSetState(owner, pods, (), "new", "old", 0, heeds_unavailable=False)
    assert [one.metadata.name for one in next_steps(scene).delete] == ["web-2"]
    waits = StatefulSetState(
        owner, {**pods, 2: pod(2, "new", ready=False)}, (), "new", "old", 0, heeds_unavailable=False
    )
    assert next_steps(waits).delete == []
    all_at_once = StatefulSetState(owner, pods, (), "new", "old", 0)
    assert len(next_steps(all_at_once).delete) == 3
