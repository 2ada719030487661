"""A stateful set keeps pods with names of their own, in order: the behaviours the Kubernetes documentation promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.apps_v1 import StatefulSet, StatefulSetOrdinals
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.controller_revisions import HASH_LABEL
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.statefulset.identity import POD_INDEX, POD_NAME
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.statefulset.sets import (
    COLLECTED,
    Diary,
    claim,
    claims,
    found,
    images,
    revisions,
    sets,
    stateful_set,
)
from tests.controllers.workloads import LABELS, NAMESPACE, template

HOUR = 3600.0


def test_pods_come_one_after_the_other_with_an_identity_of_their_own() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, start_seconds=5) as each:
            diary = Diary(each)
            owner = await each.create(stateful_set(), 7)
            assert list(await images(each)) == ["web-0", "web-1"]
            status = (await found(each)).status
            assert (status.replicas, status.ready_replicas) == (2, 1)
            await each.cluster.pass_time(20)
            assert diary.lines == ["+web-0", "+web-1", "+web-2"]
            (revision,) = await revisions(each)
            for number, pod in enumerate(sorted(await each.pods(), key=lambda pod: pod.metadata.name)):
                assert pod.metadata.labels[POD_NAME] == pod.spec.hostname == pod.metadata.name
                assert pod.metadata.labels[POD_INDEX] == str(number)
                assert pod.metadata.labels[HASH_LABEL] == revision.metadata.name
                assert pod.spec.subdomain == "nginx"
                reference = controller_of(pod)
                assert reference is not None
                assert (reference.kind, reference.uid) == ("StatefulSet", owner.metadata.uid)
            status = (await found(each)).status
            assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
            assert (status.current_replicas, status.updated_replicas) == (3, 3)
            assert status.current_revision == status.update_revision == revision.metadata.name
            (event,) = [one for one in await each.events("SuccessfulCreate") if "web-0" in one.message]
            assert event.message == "Create Pod web-0 in StatefulSet web successful"

    run_virtual(main)


def test_pods_go_in_the_other_order_each_when_the_one_above_is_gone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, stop_seconds=5) as each:
            await each.create(stateful_set(4), 20)
            diary = Diary(each)
            await each.change(StatefulSet, {"replicas": 1}, 8)
            assert diary.lines == ["-web-3", "-web-2"]
            await each.cluster.pass_time(20)
            assert diary.lines == ["-web-3", "-web-2", "-web-1"]
            assert list(await images(each)) == ["web-0"]
            assert (await found(each)).status.replicas == 1

    run_virtual(main)


def test_an_ordered_set_does_nothing_more_while_a_pod_is_not_ready() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, is_healthy=lambda pod: pod.metadata.name != "web-1") as each:
            await each.create(stateful_set(), 60)
            assert list(await images(each)) == ["web-0", "web-1"]
            await each.change(StatefulSet, {"replicas": 1}, 30)
            # The one that is not ready may go: it is the first of those.
            assert list(await images(each)) == ["web-0"]

    run_virtual(main)


def test_a_parallel_set_does_not_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, is_healthy=lambda pod: pod.metadata.name != "web-0") as each:
            await each.create(stateful_set(5, parallel=True), 5)
            assert len(await images(each)) == 5
            assert (await found(each)).status.ready_replicas == 4
            await each.change(StatefulSet, {"replicas": 2}, 10)
            assert list(await images(each)) == ["web-0", "web-1"]

    run_virtual(main)


def test_ordinals_may_begin_elsewhere_and_move() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2, ordinals=StatefulSetOrdinals(start=5)), 20)
            assert list(await images(each)) == ["web-5", "web-6"]
            await each.change(StatefulSet, {"ordinals": {"start": 6}}, 30)
            assert list(await images(each)) == ["web-6", "web-7"]

    run_virtual(main)


def test_readiness_must_last_before_the_next_one_comes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2, min_ready_seconds=30), 20)
            assert list(await images(each)) == ["web-0"]
            status = (await found(each)).status
            assert (status.ready_replicas, status.available_replicas) == (1, 0)
            await each.cluster.pass_time(60)
            assert (await found(each)).status.available_replicas == 2

    run_virtual(main)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_is_over_is_replaced_by_one_of_the_same_name(phase: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2), 10)
            before = await each.cluster.client.get(Pod, "web-0", NAMESPACE)
            await each.kubelets.finish(before, phase)
            await each.cluster.pass_time(10)
            after = await each.cluster.client.get(Pod, "web-0", NAMESPACE)
            assert after.metadata.uid != before.metadata.uid
            assert (await found(each)).status.ready_replicas == 2

    run_virtual(main)


def test_a_deleted_pod_comes_back_only_when_it_is_gone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, stop_seconds=30) as each:
            await each.create(stateful_set(2), 10)
            diary = Diary(each)
            await each.cluster.client.delete(Pod, "web-0", NAMESPACE)
            await each.cluster.pass_time(20)
            assert diary.lines == ["-web-0"]
            await each.cluster.pass_time(20)
            assert diary.lines == ["-web-0", "+web-0"]

    run_virtual(main)


def test_only_orphans_with_its_name_are_adopted_and_given_their_labels() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            for name in ("web-0", "other-1", "web-x"):
                orphan = Pod(
                    metadata=ObjectMeta(name=name, namespace=NAMESPACE, labels=LABELS), spec=template().spec
                )
                await each.create(orphan, 3)
            await each.create(stateful_set(1, on_delete=True), 20)
            pods = {pod.metadata.name: pod for pod in await each.pods()}
            owned = [name for name, pod in sorted(pods.items()) if controller_of(pod) is not None]
            assert owned == ["web-0"]
            assert pods["web-0"].metadata.labels[POD_NAME] == "web-0"
            assert len(pods) == 3

    run_virtual(main)


def test_every_pod_has_claims_of_its_own_that_outlive_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            await each.create(stateful_set(2, volume_claim_templates=[claim("data"), claim("logs")]), 20)
            assert await claims(each) == ["data-web-0", "data-web-1", "logs-web-0", "logs-web-1"]
            one = await each.cluster.client.get(PersistentVolumeClaim, "data-web-1", NAMESPACE)
            assert one.metadata.labels == {"tier": "db", **LABELS}
            pod = await each.cluster.client.get(Pod, "web-1", NAMESPACE)
            mounted = {
                volume.name: volume.persistent_volume_claim.claim_name
                for volume in pod.spec.volumes
                if volume.persistent_volume_claim is not None
            }
            assert mounted == {"data": "data-web-1", "logs": "logs-web-1"}
            (event,) = [one for one in await each.events("SuccessfulCreate") if "logs-web-0" in one.message]
            assert event.message == "Create Claim logs-web-0 Pod web-0 in StatefulSet web success"
            await each.change(StatefulSet, {"replicas": 0}, 20)
            assert len(await claims(each)) == 4
            uid = one.metadata.uid
            await each.change(StatefulSet, {"replicas": 2}, 20)
            again = await each.cluster.client.get(PersistentVolumeClaim, "data-web-1", NAMESPACE)
            assert again.metadata.uid == uid

    run_virtual(main)


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "after_scaling", "after_deletion"),
    [
        ("Retain", "Retain", ["data-web-0", "data-web-1", "data-web-2"], 3),
        # The claims of pods that were scaled away belong to the set too.
        ("Delete", "Retain", ["data-web-0", "data-web-1", "data-web-2"], 0),
        ("Retain", "Delete", ["data-web-0"], 1),
        ("Delete", "Delete", ["data-web-0"], 0),
    ],
)
def test_the_retention_policy_decides_which_claims_go(
    when_deleted: str, when_scaled: str, after_scaling: list[str], after_deletion: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, controllers=COLLECTED) as each:
            await each.create(stateful_set(3, claims=(when_deleted, when_scaled)), 20)
            await each.change(StatefulSet, {"replicas": 1}, 30)
            assert await claims(each) == after_scaling
            await each.cluster.client.delete(StatefulSet, "web", NAMESPACE, propagation="Foreground")
            await each.cluster.pass_time(60)
            assert len(await claims(each)) == after_deletion

    run_virtual(main)


def test_a_place_that_comes_back_waits_until_its_old_claim_is_gone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock, controllers=COLLECTED) as each:
            await each.create(stateful_set(2, claims=("Retain", "Delete")), 20)
            old = await each.cluster.client.get(PersistentVolumeClaim, "data-web-1", NAMESPACE)
            await each.change(StatefulSet, {"replicas": 1}, 0.5)
            await each.change(StatefulSet, {"replicas": 2}, 60)
            new = await each.cluster.client.get(PersistentVolumeClaim, "data-web-1", NAMESPACE)
            assert new.metadata.uid != old.metadata.uid
            assert new.metadata.owner_references == []
            assert (await found(each)).status.ready_replicas == 2
            assert (await found(each)).status.conditions == []

    run_virtual(main)


def test_a_refused_template_is_tried_less_and_less_with_one_event_and_one_condition() -> None:
    async def main(clock: VirtualClock) -> None:
        async with sets(clock) as each:
            tries = 0

            async def listen(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal tries
                tries += request.method == "POST" and request.path.endswith("/pods")
                return await send(request)

            each.cluster.transports["statefulset-controller"].alter = listen
            refused = template()
            refused.spec.priority_class_name = "nobody-made-this"
            await each.create(stateful_set(template=refused), HOUR)
            assert 15 <= tries <= 25
            (event,) = await each.events("FailedCreate")
            assert event.message.startswith("Create Pod web-0 in StatefulSet web failed error: ")
            (condition,) = (await found(each)).status.conditions
            assert (condition.type, condition.status, condition.reason) == (
                "ReplicaFailure",
                "True",
                "FailedCreate",
            )
            await each.change(StatefulSet, {"template": {"spec": {"priorityClassName": None}}}, 20)
            assert (await found(each)).status.conditions == []
            assert len(await each.pods()) == 3

    run_virtual(main)
