"""A replica set has as many pods as it says: the behaviours the Kubernetes documentation promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.apps_v1 import ReplicaSet
from nodeward.api.core_v1.pod import Pod, ReplicationController, ReplicationControllerSpec
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.ranking import DELETION_COST
from nodeward.controllers.pods.state import is_active, is_terminating
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.workloads import LABELS, NAMESPACE, owners, replica_set, template, workloads


def bare_pod(name: str, labels: dict[str, str] | None = None) -> Pod:
    metadata = ObjectMeta(name=name, namespace=NAMESPACE, labels=LABELS if labels is None else labels)
    return Pod(metadata=metadata, spec=template().spec)


def test_it_makes_pods_of_its_template_that_name_it_as_their_controller() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            made = template(tier="front")
            made.metadata.annotations = {"note": "kept"}
            made.metadata.finalizers = ["example.com/hold"]
            owner = await each.create(replica_set(template=made))
            pods = await each.pods()
            assert len(pods) == 3
            for pod in pods:
                reference = controller_of(pod)
                assert reference is not None
                assert (
                    reference.kind,
                    reference.api_version,
                    reference.uid,
                    reference.block_owner_deletion,
                ) == (
                    "ReplicaSet",
                    "apps/v1",
                    owner.metadata.uid,
                    True,
                )
                assert pod.metadata.generate_name == "web-"
                assert pod.metadata.labels == {"app": "web", "tier": "front"}
                assert pod.metadata.annotations == {"note": "kept"}
                assert pod.metadata.finalizers == ["example.com/hold"]
            told = [each.message for each in await each.events("SuccessfulCreate")]
            assert sorted(told) == sorted(f"Created pod: {pod.metadata.name}" for pod in pods)

    run_virtual(main)


def test_its_status_counts_pods_as_they_come() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, start_seconds=5.0) as each:
            await each.create(replica_set(), seconds=2)
            status = (await each.replica_set()).status
            assert (status.replicas, status.fully_labeled_replicas, status.ready_replicas) == (3, 3, 0)
            assert status.observed_generation == 1
            await each.cluster.pass_time(5)
            status = (await each.replica_set()).status
            assert (status.ready_replicas, status.available_replicas, status.terminating_replicas) == (
                3,
                3,
                0,
            )

    run_virtual(main)


@pytest.mark.parametrize(("before", "after"), [(2, 7), (7, 2), (3, 0), (0, 3), (700, 3), (3, 700)])
def test_it_scales_up_and_down(before: int, after: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set(replicas=before))
            assert len(await each.pods()) == before
            await each.change(ReplicaSet, {"replicas": after}, seconds=10)
            pods = await each.pods(lambda pod: True)
            assert len(pods) == after
            status = (await each.replica_set()).status
            assert (status.replicas, status.available_replicas, status.observed_generation) == (
                after,
                after,
                2,
            )

    run_virtual(main)


def test_a_pod_that_is_deleted_or_fails_is_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set())
            one, two, three = await each.pods()
            await each.cluster.client.delete(Pod, one.metadata.name, NAMESPACE)
            await each.kubelets.finish(two, "Failed")
            await each.cluster.pass_time(10)
            names = [pod.metadata.name for pod in await each.pods()]
            assert len(names) == 3
            assert three.metadata.name in names
            assert one.metadata.name not in names
            assert two.metadata.name not in names

    run_virtual(main)


def test_a_terminating_pod_is_replaced_at_once_and_told_apart() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, stop_seconds=100.0, nodes=("n1",)) as each:
            await each.create(replica_set())
            await each.cluster.client.delete(Pod, (await each.pods())[0].metadata.name, NAMESPACE)
            await each.cluster.pass_time(5)
            assert len(await each.pods()) == 3
            assert len(await each.pods(is_terminating)) == 1
            status = (await each.replica_set()).status
            assert (status.replicas, status.available_replicas, status.terminating_replicas) == (3, 3, 1)

    run_virtual(main)


def test_scaling_down_deletes_what_does_not_serve_first_and_heeds_costs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, nodes=("n1", "n2")) as each:
            await each.create(replica_set(replicas=4))
            unready, cheap, *others = await each.pods()
            await each.kubelets.set_ready(unready, False)
            annotation = {"metadata": {"annotations": {DELETION_COST: "-10"}}}
            await each.cluster.client.patch(Pod, cheap.metadata.name, annotation, namespace=NAMESPACE)
            await each.change(ReplicaSet, {"replicas": 2}, seconds=10)
            left = sorted(pod.metadata.name for pod in await each.pods())
            assert left == sorted(pod.metadata.name for pod in others)
            told = sorted(event.message for event in await each.events("SuccessfulDelete"))
            assert told == sorted(f"Deleted pod: {pod.metadata.name}" for pod in (unready, cheap))

    run_virtual(main)


def test_matching_orphans_are_adopted_instead_of_making_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(bare_pod("mine"))
            await each.create(bare_pod("stranger", {"app": "other"}))
            await each.create(replica_set(replicas=2))
            pods = await each.pods(lambda pod: pod.metadata.labels == LABELS)
            assert len(pods) == 2
            assert "mine" in [pod.metadata.name for pod in pods]
            assert owners(pods) == ["web"]
            stranger = await each.cluster.client.get(Pod, "stranger", NAMESPACE)
            assert controller_of(stranger) is None

    run_virtual(main)


def test_an_orphan_too_many_is_adopted_and_one_pod_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set(replicas=2))
            await each.create(bare_pod("late"))
            assert len(await each.pods()) == 2
            assert owners(await each.pods()) == ["web"]

    run_virtual(main)


def test_a_pod_whose_labels_no_longer_match_is_released_and_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set())
            name = (await each.pods())[0].metadata.name
            relabel = {"metadata": {"labels": {"app": "quarantine"}}}
            await each.cluster.client.patch(Pod, name, relabel, namespace=NAMESPACE)
            await each.cluster.pass_time(10)
            released = await each.cluster.client.get(Pod, name, NAMESPACE)
            assert released.metadata.owner_references == []
            assert is_active(released)
            assert len(await each.pods(lambda pod: controller_of(pod) is not None)) == 3

    run_virtual(main)


def test_what_another_controls_is_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set("one", replicas=2))
            await each.create(replica_set("two", replicas=3))
            by_owner = [owner.name for pod in await each.pods() if (owner := controller_of(pod))]
            assert sorted(by_owner) == ["one", "one", "two", "two", "two"]

    run_virtual(main)


def test_pods_are_available_after_min_ready_seconds_without_any_other_event() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set(min_ready_seconds=60), seconds=10)
            status = (await each.replica_set()).status
            assert (status.ready_replicas, status.available_replicas) == (3, 0)
            await each.cluster.pass_time(55)
            assert (await each.replica_set()).status.available_replicas == 3

    run_virtual(main)


def test_a_replica_set_that_is_being_deleted_makes_no_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            owner = replica_set()
            owner.metadata.finalizers = ["example.com/hold"]
            await each.create(owner)
            await each.cluster.client.delete(ReplicaSet, "web", NAMESPACE)
            await each.cluster.client.delete(Pod, (await each.pods())[0].metadata.name, NAMESPACE)
            await each.cluster.pass_time(10)
            assert len(await each.pods()) == 2
            assert (await each.replica_set()).status.replicas == 2

    run_virtual(main)


def test_an_owner_that_is_gone_by_now_adopts_nothing() -> None:
    """The informer may not have heard yet; the controller asks the API before it takes a pod."""

    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(replica_set(replicas=1))
            stored = await each.replica_set()
            transport = each.cluster.transports["replicaset-controller"]

            async def another_by_that_name(
                request: Request, send: Callable[[Request], Awaitable[Response]]
            ) -> Response:
                response = await send(request)
                if request.method == "GET" and request.path.endswith("/replicasets/web"):
                    uid = stored.metadata.uid.encode()
                    response.body = (response.body or b"").replace(uid, uid[::-1])
                return response

            transport.alter = another_by_that_name
            await each.create(bare_pod("late"))
            late = await each.cluster.client.get(Pod, "late", NAMESPACE)
            assert controller_of(late) is None

    run_virtual(main)


def test_a_replication_controller_does_the_same() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            spec = ReplicationControllerSpec(replicas=3, selector=LABELS, template=template())
            meta = ObjectMeta(name="old", namespace=NAMESPACE)
            await each.create(ReplicationController(metadata=meta, spec=spec))
            assert len(await each.pods()) == 3
            await each.change(ReplicationController, {"replicas": 1}, name="old")
            found = await each.cluster.client.get(ReplicationController, "old", NAMESPACE)
            assert (found.status.replicas, found.status.available_replicas) == (1, 1)
            assert owners(await each.pods()) == ["old"]

    run_virtual(main)


def test_a_thousand_pods_cost_few_looks_and_few_writes() -> None:
    """News are gathered: writing the status for every pod would be a thousand looks at a thousand pods."""

    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, start_seconds=0.5) as each:
            writes = 0

            async def count(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal writes
                writes += request.method == "PUT"
                return await send(request)

            each.cluster.transports["replicaset-controller"].alter = count
            await each.create(replica_set(replicas=1000))
            assert (await each.replica_set()).status.available_replicas == 1000
            assert writes <= 12

    run_virtual(main)


def test_what_is_never_seen_to_happen_is_given_up_after_five_minutes() -> None:
    """A create that the server says it did, and did not."""

    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            lies = 1

            async def lie(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal lies
                if request.method == "POST" and request.path.endswith("/pods") and lies:
                    lies -= 1
                    return Response(201, {"content-type": "application/json"}, request.body)
                return await send(request)

            each.cluster.transports["replicaset-controller"].alter = lie
            await each.create(replica_set(), seconds=290)
            assert len(await each.pods()) == 2
            await each.cluster.pass_time(15)
            assert len(await each.pods()) == 3

    run_virtual(main)
