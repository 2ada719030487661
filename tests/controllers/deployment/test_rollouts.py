"""Rolling out: the behaviours the Kubernetes documentation of deployments promises."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import Deployment, DeploymentStrategy, ReplicaSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.fields import IntOrString
from nodeward.controllers.deployment.revisions import HASH_LABEL, REVISION, REVISION_HISTORY
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.state import is_active, is_ready
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.workloads import (
    LABELS,
    NAMESPACE,
    Workloads,
    conditions,
    deployment,
    replica_set,
    template,
    workloads,
)


def image(pod: Pod) -> str:
    return pod.spec.containers[0].image


class Bounds:
    """Looks at all pods at every event about one, and keeps the extremes."""

    def __init__(self, each: Workloads) -> None:
        self.most = 0
        self.fewest_ready = 10**6
        self._pods = each.kubelets.pods
        self._pods.add_handler(lambda _: self._look(), lambda _, __: self._look(), lambda _: self._look())

    def _look(self) -> None:
        active = [pod for pod in self._pods.list(NAMESPACE) if is_active(pod)]
        self.most = max(self.most, len(active))
        self.fewest_ready = min(self.fewest_ready, sum(map(is_ready, active)))


def test_a_new_deployment_makes_a_replica_set_and_completes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            found = await each.deployment()
            (made,) = await each.replica_sets()
            hash_ = made.metadata.labels[HASH_LABEL]
            assert made.metadata.name == f"web-{hash_}"
            assert made.spec.selector is not None
            assert made.spec.selector.match_labels == {**LABELS, HASH_LABEL: hash_}
            assert made.metadata.labels == made.spec.template.metadata.labels == {**LABELS, HASH_LABEL: hash_}
            owner = controller_of(made)
            assert owner is not None
            assert owner.uid == found.metadata.uid
            assert found.metadata.annotations == {REVISION: "1"}
            status = found.status
            assert (status.observed_generation, status.replicas, status.updated_replicas) == (1, 3, 3)
            assert (status.ready_replicas, status.available_replicas, status.unavailable_replicas) == (
                3,
                3,
                0,
            )
            assert conditions(found) == {
                "Available": ("True", "MinimumReplicasAvailable"),
                "Progressing": ("True", "NewReplicaSetAvailable"),
            }
            progressing = next(each for each in status.conditions if each.type == "Progressing")
            assert progressing.message == f'ReplicaSet "{made.metadata.name}" has successfully progressed.'
            told = [event.message for event in await each.events("ScalingReplicaSet")]
            assert told == [f"Scaled up replica set {made.metadata.name} from 0 to 3"]

    run_virtual(main)


def test_before_any_pod_is_ready_the_status_says_what_is_going_on() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, start_seconds=100.0) as each:
            await each.create(deployment())
            found = await each.deployment()
            assert conditions(found) == {
                "Available": ("False", "MinimumReplicasUnavailable"),
                "Progressing": ("True", "ReplicaSetUpdated"),
            }
            assert (found.status.replicas, found.status.unavailable_replicas) == (3, 3)

    run_virtual(main)


CASES: list[tuple[int, IntOrString, IntOrString, int, int]] = [
    # replicas, surge, unavailable: at most so many pods, at least so many ready
    (10, "25%", "25%", 13, 8),
    (10, 3, 2, 13, 8),
    (10, 0, 1, 10, 9),
    (10, 1, 0, 11, 10),
    (3, "25%", "25%", 4, 3),
    (4, "50%", 0, 6, 4),
    (5, "100%", "100%", 10, 0),
    (1, 1, 0, 2, 1),
    (3, "1%", "1%", 4, 3),
    (2, 0, "10%", 2, 1),
    (7, "30%", "30%", 10, 5),
]


@pytest.mark.parametrize(("replicas", "surge", "unavailable", "most", "fewest"), CASES)
def test_a_rolling_update_stays_within_its_bounds_at_every_event(
    replicas: int, surge: IntOrString, unavailable: IntOrString, most: int, fewest: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, nodes=("n1", "n2", "n3")) as each:
            await each.create(deployment(replicas=replicas, surge=surge, unavailable=unavailable))
            bounds = Bounds(each)
            bounds.fewest_ready = replicas
            await each.set_image("web:2", seconds=120)
            pods = await each.pods(lambda pod: True)
            assert [image(pod) for pod in pods] == ["web:2"] * replicas
            assert bounds.most <= most
            assert bounds.fewest_ready >= fewest
            found = await each.deployment()
            assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
            assert found.metadata.annotations[REVISION] == "2"

    run_virtual(main)


def test_each_step_of_a_rolling_update_is_told() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            (old,) = [found.metadata.name for found in await each.replica_sets()]
            await each.set_image("web:2")
            (new,) = [found.metadata.name for found in await each.replica_sets() if found.spec.replicas]
            told = sorted(await each.events("ScalingReplicaSet"), key=lambda event: event.metadata.name)
            assert [event.message for event in told] == [
                f"Scaled up replica set {old} from 0 to 3",
                f"Scaled up replica set {new} from 0 to 1",
                f"Scaled down replica set {old} from 3 to 2",
                f"Scaled up replica set {new} from 1 to 2",
                f"Scaled down replica set {old} from 2 to 1",
                f"Scaled up replica set {new} from 2 to 3",
                f"Scaled down replica set {old} from 1 to 0",
            ]

    run_virtual(main)


def test_a_rollout_that_never_becomes_ready_keeps_the_old_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: image(pod) != "web:bad") as each:
            await each.create(deployment(replicas=10, surge=3, unavailable=2))
            await each.set_image("web:bad", seconds=300)
            assert await each.sizes() == {"web:1": 8, "web:bad": 5}
            found = await each.deployment()
            assert (found.status.updated_replicas, found.status.available_replicas) == (5, 8)
            assert conditions(found)["Available"] == ("True", "MinimumReplicasAvailable")

    run_virtual(main)


def test_a_rollout_over_a_stuck_one_replaces_the_stuck_pods_first() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: image(pod) != "web:bad") as each:
            await each.create(deployment(replicas=10, surge=3, unavailable=2))
            await each.set_image("web:bad", seconds=60)
            bounds = Bounds(each)
            bounds.fewest_ready = 8
            await each.set_image("web:3", seconds=120)
            assert await each.sizes() == {"web:3": 10}
            assert bounds.fewest_ready >= 8
            assert bounds.most <= 13

    run_virtual(main)


def test_a_rollback_is_a_new_revision_of_the_old_replica_set() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            (first,) = await each.replica_sets()
            await each.set_image("web:2")
            # What `kubectl rollout undo` sends: the template of the replica set with the revision asked for.
            await each.set_image("web:1")
            by_name = {found.metadata.name: found for found in await each.replica_sets()}
            assert len(by_name) == 2
            again = by_name[first.metadata.name]
            assert again.metadata.uid == first.metadata.uid
            assert again.spec.replicas == 3
            assert again.metadata.annotations[REVISION] == "3"
            assert again.metadata.annotations[REVISION_HISTORY] == "1"
            found = await each.deployment()
            assert found.metadata.annotations[REVISION] == "3"
            assert conditions(found)["Progressing"] == ("True", "NewReplicaSetAvailable")
            await each.set_image("web:2")
            await each.set_image("web:1")
            again = await each.replica_set(first.metadata.name)
            assert again.metadata.annotations[REVISION_HISTORY] == "1,3"

    run_virtual(main)


def test_without_progress_the_deadline_passes_and_a_fix_is_progress_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: image(pod) != "web:bad") as each:
            await each.create(deployment(progress_deadline_seconds=60))
            await each.set_image("web:bad", seconds=58)
            assert conditions(await each.deployment())["Progressing"] == ("True", "ReplicaSetUpdated")
            await each.cluster.pass_time(5)
            found = await each.deployment()
            (bad,) = [
                each for each in await each.replica_sets() if each.metadata.annotations[REVISION] == "2"
            ]
            late = next(each for each in found.status.conditions if each.type == "Progressing")
            assert (late.status, late.reason) == ("False", "ProgressDeadlineExceeded")
            assert late.message == f'ReplicaSet "{bad.metadata.name}" has timed out progressing.'
            await each.set_image("web:2")
            assert conditions(await each.deployment())["Progressing"] == ("True", "NewReplicaSetAvailable")

    run_virtual(main)


def test_a_rollback_that_does_not_progress_has_a_deadline_too() -> None:
    async def main(clock: VirtualClock) -> None:
        broken: list[str] = []
        async with workloads(clock, is_healthy=lambda pod: image(pod) not in broken) as each:
            await each.create(deployment(replicas=1, progress_deadline_seconds=60))
            await each.set_image("web:2")
            broken.append("web:1")
            await each.set_image("web:1", seconds=70)
            assert conditions(await each.deployment())["Progressing"] == ("False", "ProgressDeadlineExceeded")

    run_virtual(main)


def test_while_paused_nothing_is_rolled_out_and_no_deadline_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment(progress_deadline_seconds=60))
            await each.change(Deployment, {"paused": True}, seconds=5)
            found = await each.deployment()
            paused = next(each for each in found.status.conditions if each.type == "Progressing")
            assert (paused.status, paused.reason) == ("Unknown", "DeploymentPaused")
            assert paused.message == "Deployment is paused"
            await each.set_image("web:2", seconds=600)
            assert await each.sizes() == {"web:1": 3}
            assert conditions(await each.deployment())["Progressing"] == ("Unknown", "DeploymentPaused")
            await each.change(Deployment, {"replicas": 5}, seconds=10)
            assert await each.sizes() == {"web:1": 5}
            await each.change(Deployment, {"paused": False})
            assert await each.sizes() == {"web:2": 5}
            assert conditions(await each.deployment())["Progressing"] == ("True", "NewReplicaSetAvailable")

    run_virtual(main)


def test_resuming_is_told_until_something_moves() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: image(pod) != "web:bad") as each:
            await each.create(deployment(progress_deadline_seconds=100))
            await each.set_image("web:bad", seconds=10)
            await each.change(Deployment, {"paused": True}, seconds=500)
            await each.change(Deployment, {"paused": False}, seconds=50)
            resumed = next(
                each for each in (await each.deployment()).status.conditions if each.type == "Progressing"
            )
            assert (resumed.status, resumed.reason) == ("Unknown", "DeploymentResumed")
            assert resumed.message == "Deployment is resumed"
            await each.cluster.pass_time(60)
            assert conditions(await each.deployment())["Progressing"] == ("False", "ProgressDeadlineExceeded")

    run_virtual(main)


def test_recreate_ends_all_old_pods_before_it_makes_new_ones() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, stop_seconds=20.0, nodes=("n1",)) as each:
            await each.create(deployment(strategy=DeploymentStrategy(type="Recreate")))
            seen: list[list[str]] = []
            pods = each.kubelets.pods
            pods.add_handler(lambda _: seen.append(sorted({image(pod) for pod in pods.list(NAMESPACE)})))
            seen.clear()
            await each.set_image("web:2", seconds=15)
            assert await each.pods() == []
            assert await each.sizes() == {}
            await each.cluster.pass_time(15)
            assert [image(pod) for pod in await each.pods(is_ready)] == ["web:2"] * 3
            assert seen == [["web:2"]] * 3
            assert conditions(await each.deployment())["Progressing"] == ("True", "NewReplicaSetAvailable")

    run_virtual(main)


@pytest.mark.parametrize(("limit", "left"), [(2, ["web:4", "web:5", "web:6"]), (0, ["web:6"])])
def test_old_replica_sets_beyond_the_history_limit_are_deleted(limit: int, left: list[str]) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment(revision_history_limit=limit))
            for number in range(2, 7):
                await each.set_image(f"web:{number}")
            found = [each.spec.template.spec.containers[0].image for each in await each.replica_sets()]
            assert sorted(found) == left
            assert (await each.deployment()).metadata.annotations[REVISION] == "6"

    run_virtual(main)


def test_mid_rollout_scaling_keeps_the_proportions() -> None:
    """The example of the documentation: 10 replicas at 8 + 5, scaled to 15, become 11 + 7."""

    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, is_healthy=lambda pod: image(pod) != "web:bad") as each:
            await each.create(deployment(replicas=10, surge=3, unavailable=2))
            await each.set_image("web:bad", seconds=60)
            assert await each.sizes() == {"web:1": 8, "web:bad": 5}
            await each.change(Deployment, {"replicas": 15})
            assert await each.sizes() == {"web:1": 11, "web:bad": 7}
            await each.change(Deployment, {"replicas": 0})
            assert await each.sizes() == {}

    run_virtual(main)


def test_min_ready_seconds_slow_a_rollout_down() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(
                deployment(replicas=2, surge=1, unavailable=0, min_ready_seconds=30), seconds=40
            )
            await each.set_image("web:2", seconds=25)
            assert await each.sizes() == {"web:1": 2, "web:2": 1}
            await each.cluster.pass_time(60)
            assert await each.sizes() == {"web:2": 2}

    run_virtual(main)


def test_a_change_of_scale_or_of_annotations_is_no_new_revision() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            await each.change(Deployment, {"replicas": 5}, seconds=10)
            note = {"metadata": {"annotations": {"kubernetes.io/change-cause": "by hand"}}}
            await each.cluster.client.patch(Deployment, "web", note, namespace=NAMESPACE)
            await each.cluster.pass_time(5)
            (only,) = await each.replica_sets()
            assert only.spec.replicas == 5
            assert only.metadata.annotations["kubernetes.io/change-cause"] == "by hand"
            assert only.metadata.annotations["deployment.kubernetes.io/max-replicas"] == "7"
            assert (await each.deployment()).metadata.annotations[REVISION] == "1"

    run_virtual(main)


def test_a_replica_set_scaled_by_hand_is_put_right() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            (only,) = await each.replica_sets()
            await each.change(ReplicaSet, {"replicas": 9}, name=only.metadata.name)
            assert await each.sizes() == {"web:1": 3}
            assert len(await each.pods()) == 3

    run_virtual(main)


def test_an_orphaned_replica_set_of_the_same_template_is_adopted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            orphan = replica_set("before", replicas=2)
            orphan.metadata.labels = dict(LABELS)
            await each.create(orphan)
            await each.create(deployment())
            (only,) = await each.replica_sets()
            assert only.metadata.name == "before"
            assert only.spec.replicas == 3
            owner = controller_of(only)
            assert owner is not None
            assert owner.kind == "Deployment"

    run_virtual(main)


def test_a_name_that_is_taken_by_another_template_is_counted_as_a_collision() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.create(deployment())
            (first,) = await each.replica_sets()
            await each.cluster.client.delete(Deployment, "web", NAMESPACE, propagation="Background")
            taken = replica_set(first.metadata.name, replicas=0, template=template("other"))
            await each.cluster.client.delete(ReplicaSet, first.metadata.name, NAMESPACE)
            await each.create(taken)
            await each.create(deployment())
            found = await each.deployment()
            assert found.status.collision_count == 1
            assert found.status.available_replicas == 3

    run_virtual(main)


def test_a_deployment_that_is_being_deleted_only_counts() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            held = deployment()
            held.metadata.finalizers = ["example.com/hold"]
            await each.create(held)
            await each.cluster.client.delete(Deployment, "web", NAMESPACE)
            await each.set_image("web:2")
            assert await each.sizes() == {"web:1": 3}
            assert (await each.deployment()).status.observed_generation >= 3

    run_virtual(main)


def test_pods_lost_with_their_node_mid_rollout_are_replaced_and_the_rollout_ends() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock, nodes=("n1", "n2", "n3", "n4"), start_seconds=3.0) as each:
            await each.create(deployment(replicas=12, surge="25%", unavailable="25%"))
            await each.set_image("web:2", seconds=4)
            bounds = Bounds(each)
            lost = await each.pods(lambda pod: is_active(pod) and pod.spec.node_name == "n1")
            assert lost
            for pod in lost:
                await each.cluster.client.delete(Pod, pod.metadata.name, NAMESPACE, grace_period=0)
            await each.cluster.pass_time(60)
            assert [image(pod) for pod in await each.pods(is_ready)] == ["web:2"] * 12
            assert bounds.most <= 15
            assert bounds.fewest_ready >= 9 - len(lost)

    run_virtual(main)
