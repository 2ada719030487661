"""Disruption budgets: what their status says, and an eviction that waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.apps_v1 import ReplicaSet, ReplicaSetSpec
from nodeward.api.core_v1.cluster import ConfigMap, Event
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta, OwnerReference
from nodeward.api.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from nodeward.base.timestamp import rfc3339
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers

NAME = "disruption-controller"
ONLY = tuple(entry for entry in CONTROLLERS if entry.name == NAME)
LABELS = {"app": "web"}


def run(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await main(each)

    run_virtual(inner)


async def make_budget(
    each: Cluster,
    name: str = "b",
    *,
    least: int | str | None = None,
    missing: int | str | None = None,
    policy: str | None = None,
) -> None:
    spec = PodDisruptionBudgetSpec(
        min_available=least,
        max_unavailable=missing,
        selector=LabelSelector(match_labels=dict(LABELS)),
        unhealthy_pod_eviction_policy=policy,
    )
    meta = ObjectMeta(name=name, namespace="default")
    await each.client.create(PodDisruptionBudget(metadata=meta, spec=spec))


async def make_set(each: Cluster, replicas: int) -> KubeObject:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=dict(LABELS)), spec=PodSpec(containers=[Container(name="c", image="i")])
    )
    spec = ReplicaSetSpec(
        replicas=replicas, selector=LabelSelector(match_labels=dict(LABELS)), template=template
    )
    return await each.client.create(
        ReplicaSet(metadata=ObjectMeta(name="rs", namespace="default"), spec=spec)
    )


async def make_pod(
    each: Cluster, name: str, owner: KubeObject | None = None, *, is_ready: bool = True
) -> None:
    owners = []
    if owner is not None:
        owners = [
            OwnerReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.metadata.name,
                uid=owner.metadata.uid,
                controller=True,
            )
        ]
    meta = ObjectMeta(name=name, namespace="default", labels=dict(LABELS), owner_references=owners)
    spec = PodSpec(containers=[Container(name="c", image="i")], node_name="n")
    await each.client.create(Pod(metadata=meta, spec=spec))
    await set_ready(each, name, is_ready)


async def set_ready(each: Cluster, name: str, is_ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if is_ready else "False"}
    body = {"status": {"phase": "Running", "conditions": [condition]}}
    await each.client.patch(Pod, name, body, namespace="default", subresource="status")


async def get(each: Cluster) -> PodDisruptionBudget:
    return await each.client.get(PodDisruptionBudget, "b", "default")


async def counts(each: Cluster) -> tuple[int, int, int, int]:
    """Expected, desired, healthy, allowed."""
    status = (await get(each)).status
    return status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed


async def condition(each: Cluster) -> tuple[str, str, str]:
    (found,) = (await get(each)).status.conditions
    assert found.type == "DisruptionAllowed"
    assert found.last_transition_time is not None
    return found.status, found.reason, found.message


async def refusal(each: Cluster, pod: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await each.client.evict(pod, "default")
    return caught.value


def cause(error: ApiError) -> str:
    assert error.status.details is not None
    (found,) = error.status.details.causes
    assert found.reason == "DisruptionBudget"
    return found.message


@pytest.mark.parametrize(
    ("least", "missing", "expected"),
    [
        (2, None, (3, 2, 3, 1)),
        (5, None, (3, 5, 3, 0)),
        ("50%", None, (4, 2, 3, 1)),
        ("60%", None, (4, 3, 3, 0)),
        (None, 1, (4, 3, 3, 0)),
        (None, "50%", (4, 2, 3, 1)),
        (None, "100%", (4, 0, 3, 3)),
        (None, 9, (4, 0, 3, 3)),
    ],
    ids=str,
)
def test_numbers_and_percentages_are_taken_of_what_the_owners_want(
    least: int | str | None, missing: int | str | None, expected: tuple[int, int, int, int]
) -> None:
    async def main(each: Cluster) -> None:
        owner = await make_set(each, 4)
        for number in range(3):
            await make_pod(each, f"p{number}", owner)
        await make_budget(each, least=least, missing=missing)
        await each.pass_time()
        assert await counts(each) == expected
        found = await get(each)
        assert found.status.observed_generation == found.metadata.generation
        wanted = ("True", "SufficientPods", "") if expected[3] else ("False", "InsufficientPods", "")
        assert await condition(each) == wanted

    run(main)


def test_an_eviction_is_refused_until_another_pod_is_ready() -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, least=2)
        await make_pod(each, "a")
        await make_pod(each, "b")
        await make_pod(each, "c", is_ready=False)
        await each.pass_time()
        error = await refusal(each, "a")
        assert (error.code, error.reason) == (429, "TooManyRequests")
        assert str(error) == "Cannot evict pod as it would violate the pod's disruption budget."
        assert cause(error) == "The disruption budget b needs 2 healthy pods and has 2 currently"
        await set_ready(each, "c", True)
        await each.pass_time()
        await each.client.evict("a", "default", dry_run=True)
        assert await counts(each) == (3, 2, 3, 1), "a rehearsal spends nothing"
        await each.client.evict("a", "default")
        spent = (await get(each)).status
        assert (spent.disruptions_allowed, list(spent.disrupted_pods)) == (0, ["a"])
        assert await condition(each) == ("False", "InsufficientPods", "")
        assert (await refusal(each, "b")).code == 429
        await each.pass_time()
        assert (await get(each)).status.disrupted_pods == {}, (
            "the pod is going: nothing needs to be remembered"
        )
        assert await counts(each) == (3, 2, 2, 0)
        await each.client.delete(Pod, "a", "default", grace_period=0)
        await make_pod(each, "d")
        await each.pass_time()
        await each.client.evict("b", "default")

    run(main)


def test_before_the_controller_has_looked_nothing_is_allowed() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=()) as each:
            await make_budget(each, least=0)
            await make_pod(each, "a")
            error = await refusal(each, "a")
            assert error.code == 429
            assert cause(error) == "The disruption budget b is still being processed by the server."
            assert error.status.details is not None
            assert error.status.details.retry_after_seconds == 10
            async with more_controllers(each, ONLY):
                await each.pass_time()
                await each.client.evict("a", "default")

    run_virtual(main)


def test_an_eviction_that_came_to_nothing_is_forgotten_after_two_minutes() -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, least=1)
        await make_pod(each, "a")
        await make_pod(each, "b")
        await each.pass_time()
        found = await get(each)
        found.status.disrupted_pods = {"a": rfc3339(each.clock.now_ns())}
        await each.client.update(found, subresource="status")
        await each.pass_time(119)
        assert await counts(each) == (2, 1, 1, 0)
        await each.pass_time(3)
        assert await counts(each) == (2, 1, 2, 1)
        assert (await get(each)).status.disrupted_pods == {}
        events = (await each.client.list(Event, "default")).items
        assert [event.message for event in events if event.reason == "NotDeleted"] == [
            "Pod was expected by PDB default/b to be deleted but it wasn't"
        ]

    run(main)


@pytest.mark.parametrize(
    ("policy", "is_allowed"), [(None, False), ("IfHealthyBudget", False), ("AlwaysAllow", True)]
)
def test_an_unhealthy_pod_of_a_disturbed_application_goes_only_if_always_allowed(
    policy: str | None, is_allowed: bool
) -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, least=2, policy=policy)
        await make_pod(each, "good")
        await make_pod(each, "bad", is_ready=False)
        await each.pass_time()
        if is_allowed:
            await each.client.evict("bad", "default")
        else:
            assert (await refusal(each, "bad")).code == 429
        await make_pod(each, "another")
        await each.pass_time()
        if not is_allowed:
            await each.client.evict("bad", "default")  # enough others are healthy
        assert (await each.client.get(Pod, "bad", "default")).metadata.deletion_timestamp is not None
        assert (await get(each)).status.disrupted_pods == {}, "it did not count, so it costs nothing"

    run(main)


def test_two_budgets_for_a_pod_are_an_error_of_the_cluster() -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, least=0)
        await make_budget(each, "second", least=0)
        await make_pod(each, "a")
        await each.pass_time()
        error = await refusal(each, "a")
        assert (error.code, error.reason) == (500, "")
        assert str(error) == (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )

    run(main)


def test_a_pod_with_two_budgets_is_warned_of_before_anybody_drains_its_node() -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, "a", least=1)
        await make_pod(each, "one")
        await each.pass_time()
        await make_budget(each, "b", least=1)
        await make_pod(each, "two")
        await each.pass_time()
        told = (await each.client.list(Event, "default")).items
        found = {
            event.involved_object.name: (event.type, event.message)
            for event in told
            if event.reason == "MultiplePodDisruptionBudgets"
        }
        text = 'Pod "default"/"two" matches multiple PodDisruptionBudgets.  Chose "a" arbitrarily.'
        assert found == {"two": ("Warning", text)}

    run(main)


def test_what_cannot_be_counted_allows_nothing_and_says_why() -> None:
    async def main(each: Cluster) -> None:
        owner = await each.client.create(ConfigMap(metadata=ObjectMeta(name="odd", namespace="default")))
        await make_pod(each, "a", owner)
        await make_budget(each, missing=1)
        await each.pass_time()
        why = "configmaps does not implement the scale subresource"
        assert await condition(each) == ("False", "SyncFailed", why)
        events = (await each.client.list(Event, "default")).items
        assert ("Warning", f"Failed to calculate the number of expected pods: {why}") in [
            (event.type, event.message)
            for event in events
            if event.reason == "CalculateExpectedPodCountFailed"
            and event.source.component == "controllermanager"
        ]
        found = await get(each)
        found.status.observed_generation = found.metadata.generation
        await each.client.update(found, subresource="status")
        assert cause(await refusal(each, "a")) == (
            f"The disruption budget b does not allow evicting pods currently because it failed sync: {why}"
        )

    run(main)


def test_pods_that_nobody_manages_are_pointed_out_and_not_counted() -> None:
    async def main(each: Cluster) -> None:
        owner = await make_set(each, 2)
        await make_pod(each, "a", owner)
        await make_pod(each, "alone")
        await make_budget(each, missing="50%")
        await each.pass_time()
        assert await counts(each) == (2, 1, 2, 1)
        events = (await each.client.list(Event, "default")).items
        (event,) = [event for event in events if event.reason == "UnmanagedPods"]
        assert event.message.startswith(
            "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string"
            "{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged."
        )

    run(main)


def test_a_pod_said_to_be_disrupted_and_left_alone_is_not_said_so_any_more() -> None:
    async def main(each: Cluster) -> None:
        for name, reason in (("a", "PreemptionByScheduler"), ("b", "TerminationByKubelet")):
            await make_pod(each, name)
            target = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reason,
                "message": "soon",
                "lastTransitionTime": rfc3339(each.clock.now_ns()),
            }
            body = {"status": {"conditions": [target]}}
            await each.client.patch(Pod, name, body, namespace="default", subresource="status")

        async def said(name: str) -> list[tuple[str, str, str]]:
            pod = await each.client.get(Pod, name, "default")
            found = [one for one in pod.status.conditions if one.type == "DisruptionTarget"]
            return [(one.status, one.reason, one.message) for one in found]

        await each.pass_time(119)
        assert await said("a") == [("True", "PreemptionByScheduler", "soon")]
        await each.pass_time(2)
        assert await said("a") == [("False", "", "")]
        assert await said("b") == [("True", "TerminationByKubelet", "soon")], "the kubelet takes its time"

    run(main)


def test_a_conflict_with_an_eviction_is_no_failure_of_the_budget() -> None:
    async def main(each: Cluster) -> None:
        await make_budget(each, least=1)
        for name in ("a", "b", "c"):
            await make_pod(each, name)
        await each.pass_time()
        assert await counts(each) == (3, 1, 3, 2)
        conflicts: list[int] = []

        async def evict_meanwhile(
            request: Request, send: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            if request.method == "PUT" and not conflicts:
                conflicts.append(0)
                await each.client.evict("b", "default")
                response = await send(request)
                conflicts[0] = response.status
                return response
            return await send(request)

        each.transports[NAME].alter = evict_meanwhile
        await set_ready(each, "a", False)
        await each.pass_time()
        assert conflicts == [409]
        assert await counts(each) == (3, 1, 1, 0)
        assert (await condition(each))[1] == "InsufficientPods"

    run(main)
