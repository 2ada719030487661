"""Finished jobs go after the time they ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.batch_v1 import Job, JobSpec
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import PodSpec, PodTemplateSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

NAME = "ttl-after-finished-controller"
WITH_GC = tuple(entry for entry in CONTROLLERS if entry.name in (NAME, "generic-garbage-collector"))


def run(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=WITH_GC) as each:
            await main(each)

    run_virtual(inner)


async def make(each: Cluster, ttl: int | None) -> None:
    template = PodTemplateSpec(
        spec=PodSpec(containers=[Container(name="c", image="i")], restart_policy="Never")
    )
    spec = JobSpec(template=template, ttl_seconds_after_finished=ttl)
    await each.client.create(Job(metadata=ObjectMeta(name="j", namespace="default"), spec=spec))


async def finish(each: Cluster, type_: str = "Failed", *, in_seconds: int = 0) -> None:
    when = rfc3339(each.clock.now_ns() + in_seconds * SECOND_NS)
    started = rfc3339(each.clock.now_ns())
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": when}
        for name in (
            ("SuccessCriteriaMet", "Complete") if type_ == "Complete" else ("FailureTarget", "Failed")
        )
    ]
    status: dict[str, object] = {"conditions": conditions, "startTime": started}
    if type_ == "Complete":
        status["completionTime"] = when
    body = {"status": status}
    await each.client.patch(Job, "j", body, namespace="default", subresource="status")


async def is_left(each: Cluster) -> bool:
    return await each.exists(Job, "j", "default")


def test_a_finished_job_goes_when_its_time_to_live_is_over() -> None:
    async def main(each: Cluster) -> None:
        await make(each, 100)
        await each.pass_time(300)
        assert await is_left(each), "not finished"
        await finish(each)
        await each.pass_time(99)
        assert await is_left(each)
        await each.pass_time(2)
        assert not await is_left(each)
        took = each.runner.metrics.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds", "", ()
        )
        assert took.of().count == 1

    run(main)


def test_a_time_to_live_of_nothing_means_at_once_and_none_means_never() -> None:
    async def main(each: Cluster) -> None:
        await make(each, None)
        await finish(each, "Complete")
        await each.pass_time(10_000)
        assert await is_left(each)
        await each.client.patch(Job, "j", {"spec": {"ttlSecondsAfterFinished": 0}}, namespace="default")
        await each.pass_time(1)
        assert not await is_left(each)

    run(main)


def test_a_job_that_finished_in_the_future_waits_for_that() -> None:
    async def main(each: Cluster) -> None:
        await make(each, 10)
        await finish(each, in_seconds=60)
        await each.pass_time(69)
        assert await is_left(each)
        await each.pass_time(2)
        assert not await is_left(each)

    run(main)


def test_a_job_that_was_given_more_time_at_the_last_moment_stays() -> None:
    async def main(each: Cluster) -> None:
        await make(each, 10)
        await finish(each)

        async def prolong(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
            if request.method == "GET" and request.path.endswith("/jobs/j"):
                each.transports[NAME].alter = None
                more = {"spec": {"ttlSecondsAfterFinished": 100}}
                await each.client.patch(Job, "j", more, namespace="default")
            return await send(request)

        each.transports[NAME].alter = prolong
        await each.pass_time(50)
        assert each.transports[NAME].alter is None, "it was about to be deleted"
        assert await is_left(each)
        await each.pass_time(55)
        assert not await is_left(each)

    run(main)
