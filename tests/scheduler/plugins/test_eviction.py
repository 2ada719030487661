"""What the API is told of a preemption, and when the pod may be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.pod import Pod
from nodeward.apiserver.server import ApiServer
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response, Transport
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code
from tests.apiserver.running import running
from tests.scheduler.cache.objects import pod
from tests.scheduler.plugins.preempting import Cluster


def tree(name: str, **more: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": more.pop("cpu", "2")}}}
    return from_tree({"metadata": metadata, "spec": {"containers": [container], **more}}, Pod)


def within(test: Callable[[ApiServer, Cluster], Awaitable[None]]) -> None:
    """Run a test with an API server and a cluster of one node that uses it."""

    async def run() -> None:
        async with running() as server:
            cluster = Cluster(client=server.client("default-scheduler"))
            cluster.nodes(1)
            await test(server, cluster)

    asyncio.run(run())


async def placed(cluster: Cluster, name: str, **more: Any) -> PodView:
    """A pod that the API knows and that runs on the node."""
    client = cluster.handle.client
    stored = await client.create(tree(name, **more))
    await client.bind(name, "default", "n0", uid=stored.metadata.uid)
    view = PodView(await client.get(Pod, name, "default"))
    cluster.table.add_pod(view)
    return view


def high(cpu: str = "3") -> PodView:
    return pod("high", requests={"cpu": cpu}, priority=100, schedulerName="default-scheduler")


async def finish(cluster: Cluster, view: PodView) -> None:
    work = cluster.make_room(view).work
    assert work is not None
    await work()


def test_a_victim_is_told_why_deleted_and_spoken_of() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        # Its node has not said that it is gone, so that it can be looked at.
        victim = await placed(cluster, "low", metadata={"finalizers": ["example.com/hold"]})
        await finish(cluster, high())
        client = cluster.handle.client
        left = await client.get(Pod, "low", "default")
        assert left.metadata.deletion_timestamp is not None
        (condition,) = [each for each in left.status.conditions if each.type == "DisruptionTarget"]
        assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
        assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
        assert condition.observed_generation == victim.pod.metadata.generation
        assert condition.last_transition_time
        await cluster.recorder.flush()
        (event,) = (await client.list(Event, "default")).items
        assert (event.type, event.reason) == ("Normal", "Preempted")
        assert event.message == "Preempted by pod high on node n0"
        assert event.involved_object.name == "low"
        assert cluster.activated == []

    within(check)


def test_a_pod_is_kept_out_until_its_victims_are_on_their_way() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        for name in ("a", "b"):
            await placed(cluster, name)
        view = high("4")
        made = cluster.make_room(view)
        assert made.node == "n0"
        assert made.status.message == (
            "preemption: found a potential placement for pod on node n0, preempting 2 victims"
        )
        status = cluster.preemption.pre_enqueue(view)
        assert (status.code, status.reasons) == (
            Code.UNRESOLVABLE,
            ("waiting for the preemption for this pod to be finished",),
        )
        assert cluster.preemption.pre_enqueue(pod("other")).is_success
        assert made.work is not None
        await made.work()
        assert cluster.preemption.pre_enqueue(view).is_success
        assert cluster.metrics.counter("scheduler_preemption_goroutines_execution_total", "").value("success")

    within(check)


def test_once_the_last_victim_is_seen_to_go_the_pod_may_enter() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        view = high("4")
        for name in ("a", "b"):
            await placed(cluster, name)
        seen: list[tuple[str, bool]] = []
        deleted = 0

        class Watched:
            """Takes the victim off the table before the answer is read, as an event may."""

            async def send(self, request: Request, *, stream: bool = False) -> Response:
                nonlocal deleted
                answer = await inner.send(request, stream=stream)
                if request.method == "DELETE":
                    deleted += 1
                    uid = next(
                        each.uid for each in cluster.table.pods_on(0) if request.path.endswith(each.name)
                    )
                    cluster.table.remove_pod(uid)
                    seen.append((request.path[-1], cluster.preemption.pre_enqueue(view).is_success))
                return answer

            async def aclose(self) -> None:
                pass

        made = cluster.make_room(view)
        client = cluster.handle.client
        inner: Transport = client.transport
        object.__setattr__(client, "transport", Watched())
        assert made.work is not None
        await made.work()
        assert deleted == 2
        assert [let_in for _, let_in in seen] == [False, True]

    within(check)


def test_a_victim_that_is_gone_already_is_no_trouble() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        await placed(cluster, "low")
        await cluster.handle.client.delete(Pod, "low", "default", grace_period=0)
        # Another pod under its name is left alone.
        await cluster.handle.client.create(tree("low"))
        await finish(cluster, high())
        stored = await cluster.handle.client.get(Pod, "low", "default")
        assert stored.metadata.deletion_timestamp is None
        assert cluster.activated == []
        await cluster.recorder.flush()
        assert not (await cluster.handle.client.list(Event, "default")).items

    within(check)


def test_a_victim_that_is_on_its_way_out_is_not_told_again() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        cluster.run("low", "n0", "3", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        made = cluster.make_room(high())
        assert (made.node, made.work) == ("n0", None)
        assert cluster.preemption.pre_enqueue(high()).is_success

    within(check)


def test_promises_to_lesser_pods_are_taken_back() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        client = cluster.handle.client
        await placed(cluster, "low")
        lesser = await client.create(tree("lesser"))
        body = {"status": {"nominatedNodeName": "n0"}}
        lesser = await client.patch(Pod, "lesser", body, namespace="default", subresource="status")
        cluster.nominator.add(PodView(lesser))
        equal = pod("equal", priority=100, requests={"cpu": "0"})
        cluster.nominator.add(equal, "n0")
        await finish(cluster, high())
        assert [each.name for each in cluster.nominator.for_node("n0")] == ["equal"]
        assert not (await client.get(Pod, "lesser", "default")).status.nominated_node_name

    within(check)


def test_if_the_api_cannot_be_told_the_pod_is_tried_again_at_once() -> None:
    class Broken:
        async def send(self, request: Request, *, stream: bool = False) -> Response:
            raise ConnectionFailed("no route")

        async def aclose(self) -> None:
            pass

    async def check() -> None:
        cluster = Cluster(client=Client(Broken(), clock=RealClock()))
        cluster.nodes(1)
        cluster.run("a", "n0", "2")
        cluster.run("b", "n0", "2")
        view = high("4")
        await finish(cluster, view)
        assert cluster.activated == ["high"]
        assert cluster.preemption.pre_enqueue(view).is_success
        errors = cluster.metrics.counter("scheduler_preemption_goroutines_execution_total", "")
        assert errors.value("error") == 1

    asyncio.run(check())


def test_a_victim_that_waits_to_be_bound_goes_back_to_the_queue() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        client = cluster.handle.client
        stored = PodView(await client.create(tree("low", cpu="3")))
        cluster.table.assume(stored, "n0")
        waiting = cluster.waiting.add(stored, "n0", {"Gang": 60.0})
        await finish(cluster, high())
        assert (await waiting.verdict()).message == "preempted"
        assert (await client.get(Pod, "low", "default")).metadata.deletion_timestamp is None
        await cluster.recorder.flush()
        (event,) = (await client.list(Event, "default")).items
        assert event.message == "Preempted by pod high on node n0 (in kube-scheduler memory)."

    within(check)


def test_a_conflict_about_a_pod_that_is_still_there_is_no_success() -> None:
    async def check(server: ApiServer, cluster: Cluster) -> None:
        await placed(cluster, "low")
        client = cluster.handle.client
        inner: Transport = client.transport

        class Busy:
            async def send(self, request: Request, *, stream: bool = False) -> Response:
                if request.method != "DELETE":
                    return await inner.send(request, stream=stream)
                body = (
                    b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}'
                )
                return Response(409, {"content-type": "application/json"}, body)

            async def aclose(self) -> None:
                pass

        made = cluster.make_room(high())
        object.__setattr__(client, "transport", Busy())
        assert made.work is not None
        await made.work()
        assert cluster.activated == ["high"]

    within(check)
