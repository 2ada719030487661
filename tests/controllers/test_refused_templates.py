"""A template the API refuses costs little and is told once, never in a loop (KEP-5471)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from nodeward.api import codec
from nodeward.api.apps_v1 import Deployment, ReplicaSet
from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError, forbidden, invalid
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.base.fielderror import not_supported
from nodeward.base.fieldpath import FieldPath
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.workloads import (
    Workloads,
    conditions,
    deployment,
    replica_set,
    template,
    workloads,
)

HOUR = 3600.0


def refusal(code: int, name: str) -> ApiError:
    """What an API server says whose gate is off, or whose quota is used up."""
    if code == 422:
        where = FieldPath("spec.tolerations[0].operator")
        return invalid("", "Pod", name, [not_supported(where, "Gt", ["Equal", "Exists"])])
    return forbidden("", "pods", name, "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2")


class Refusing:
    """Refuses new pods after the first few, each under the name it would have had, and counts every request."""

    def __init__(self, each: Workloads, code: int, allowed: int = 0) -> None:
        self.counts: Counter[str] = Counter()
        self.code = code
        self.allowed = allowed
        for transport in each.cluster.transports.values():
            transport.alter = self

    async def __call__(self, request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        resource = "/".join(request.path.split("/namespaces/default/")[-1].split("/")[::2])
        self.counts[f"{request.method} {resource}"] += 1
        if request.method != "POST" or resource != "pods":
            return await send(request)
        if self.allowed:
            self.allowed -= 1
            return await send(request)
        suffix = f"{self.counts['POST pods']:05d}"
        prefix = codec.parse_tree(request.body)["metadata"]["generateName"]
        error = refusal(self.code, prefix + suffix)
        return Response(error.code, {"content-type": "application/json"}, codec.encode(error.status))


@pytest.mark.parametrize("code", [422, 403])
@pytest.mark.parametrize("allowed", [0, 2])
def test_an_hour_of_refusals_is_few_requests_one_event_and_one_condition(code: int, allowed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            refusing = Refusing(each, code, allowed)
            await each.create(replica_set(replicas=50), seconds=HOUR)
            # 5 ms, 10 ms, ... 655 s, then every 1000 s.
            assert 15 <= refusing.counts["POST pods"] - allowed <= 22
            assert 1 <= refusing.counts["PUT replicasets/status"] <= 4 + allowed
            failed = await each.events("FailedCreate")
            assert [event.message for event in failed] == [f"Error creating: {refusal(code, 'web-')}"]
            owner = await each.replica_set()
            assert conditions(owner) == {"ReplicaFailure": ("True", "FailedCreate")}
            assert owner.status.conditions[0].message == str(refusal(code, "web-"))
            assert owner.status.replicas == allowed

    run_virtual(main)


def test_news_of_its_pods_are_no_reason_to_try_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            refusing = Refusing(each, 403, allowed=2)
            await each.create(replica_set(replicas=3), seconds=600)
            before = refusing.counts["POST pods"]
            pod = (await each.pods())[0]
            for number in range(100):
                await each.kubelets.set_ready(pod, bool(number % 2))
                await each.cluster.pass_time(0.5)
            assert refusing.counts["POST pods"] <= before + 1
            assert (await each.replica_set()).status.ready_replicas == 2

    run_virtual(main)


def test_a_changed_template_is_tried_at_once_and_the_condition_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            made = template()
            made.spec.priority_class_name = "gold"
            await each.create(replica_set(template=made), seconds=HOUR)
            owner = await each.replica_set()
            assert owner.status.conditions[0].message.startswith('pods "web-" is forbidden: no PriorityClass')
            await each.change(ReplicaSet, {"template": {"spec": {"priorityClassName": None}}}, seconds=5)
            assert len(await each.pods()) == 3
            assert conditions(await each.replica_set()) == {}

    run_virtual(main)


def test_what_was_missing_is_noticed_at_the_next_try() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            made = template()
            made.spec.priority_class_name = "gold"
            await each.create(replica_set(template=made), seconds=60)
            await each.create(PriorityClass(metadata=ObjectMeta(name="gold"), value=7), seconds=100)
            assert [pod.spec.priority for pod in await each.pods()] == [7, 7, 7]
            assert conditions(await each.replica_set()) == {}

    run_virtual(main)


def test_a_deployment_passes_the_failure_on_and_runs_into_its_deadline() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            refusing = Refusing(each, 422)
            await each.create(deployment(progress_deadline_seconds=300), seconds=HOUR)
            found = await each.deployment()
            assert conditions(found) == {
                "Available": ("False", "MinimumReplicasUnavailable"),
                "Progressing": ("False", "ProgressDeadlineExceeded"),
                "ReplicaFailure": ("True", "FailedCreate"),
            }
            assert refusing.counts["POST pods"] <= 22
            assert 2 <= refusing.counts["PUT deployments/status"] <= 8
            assert sum(refusing.counts.values()) < 120

    run_virtual(main)


def test_a_namespace_on_its_way_out_is_no_failure() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            await each.cluster.create_namespace("going")
            owner = replica_set()
            owner.metadata.namespace = "going"
            owner.metadata.finalizers = ["example.com/hold"]
            await each.create(owner)
            await each.cluster.client.delete(Namespace, "going")
            tries = 0

            async def count(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal tries
                tries += request.method == "POST" and request.path.endswith("/pods")
                return await send(request)

            each.cluster.transports["replicaset-controller"].alter = count
            for pod in (await each.cluster.client.list(Pod, "going")).items:
                await each.cluster.client.delete(Pod, pod.metadata.name, "going")
            await each.cluster.pass_time(HOUR)
            found = await each.cluster.client.get(ReplicaSet, "web", "going")
            assert found.status.conditions == []
            # One for each piece of news.
            assert 1 <= tries <= 6

    run_virtual(main)


def test_a_replica_set_that_is_refused_is_told_by_its_deployment() -> None:
    async def main(clock: VirtualClock) -> None:
        async with workloads(clock) as each:
            tries = 0

            async def refuse(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal tries
                if request.method != "POST" or not request.path.endswith("/replicasets"):
                    return await send(request)
                tries += 1
                error = forbidden("apps", "replicasets", "web-x", "exceeded quota: q")
                return Response(403, {"content-type": "application/json"}, codec.encode(error.status))

            each.cluster.transports["deployment-controller"].alter = refuse
            await each.create(deployment(), seconds=HOUR)
            found = (await each.deployment()).status.conditions[0]
            assert (found.type, found.status, found.reason) == (
                "Progressing",
                "False",
                "ReplicaSetCreateError",
            )
            assert found.message.startswith('Failed to create new replica set "web-')
            assert 15 <= tries <= 25
            assert len(await each.events("ReplicaSetCreateError")) == 1
            each.cluster.transports["deployment-controller"].alter = None
            await each.change(Deployment, {"replicas": 2}, seconds=10)
            assert len(await each.pods()) == 2

    run_virtual(main)
