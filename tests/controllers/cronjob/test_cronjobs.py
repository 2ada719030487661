"""A cron job starts a job at every moment of its schedule: the behaviours the Kubernetes documentation promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nodeward.api.batch_v1 import CronJob, CronJobSpec, Job, JobTemplateSpec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.cronjob.jobs import SCHEDULED, end_of
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.job.jobs import Outcome, job, jobs
from tests.controllers.restarting import more_controllers
from tests.controllers.workloads import NAMESPACE, Workloads

MINUTE, HOUR = 60.0, 3600.0
#: The virtual clock starts at the beginning of 2026.
START_MINUTES = 1_767_225_600 // 60
CRON = tuple(entry for entry in CONTROLLERS if entry.name == "cronjob-controller")
BOTH = tuple(entry for entry in CONTROLLERS if entry.name in ("cronjob-controller", "job-controller"))
COLLECTED = (*BOTH, *(entry for entry in CONTROLLERS if entry.name == "generic-garbage-collector"))


def cron_job(schedule: str = "*/10 * * * *", **spec: Any) -> CronJob:
    template = JobTemplateSpec(
        metadata=ObjectMeta(labels={"from": "cron"}, annotations={"note": "kept"}), spec=job().spec
    )
    return CronJob(
        metadata=ObjectMeta(name="web", namespace=NAMESPACE),
        spec=CronJobSpec(schedule=schedule, **{"job_template": template, **spec}),
    )


@asynccontextmanager
async def crons(
    clock: VirtualClock, outcome: Outcome = lambda pod: 0, *, collects: bool = False
) -> AsyncIterator[Workloads]:
    """`collects`: what jobs leave behind goes, for the price of a garbage collector."""
    chosen = COLLECTED if collects else BOTH
    async with jobs(clock, outcome, controllers=chosen, nodes=("n1",)) as (each, _):
        yield each


async def made(each: Workloads) -> dict[int, str]:
    """The jobs there are: how they ended, by the minute after the start they are for."""
    listed = await each.cluster.client.list(Job, NAMESPACE)
    return {
        int(one.metadata.name.removeprefix("web-")) - START_MINUTES: end_of(one)
        for one in sorted(listed.items, key=lambda one: one.metadata.name)
    }


async def found(each: Workloads) -> CronJob:
    return await each.cluster.client.get(CronJob, "web", NAMESPACE)


def test_a_job_is_made_for_every_moment_named_after_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            owner = await each.create(cron_job(successful_jobs_history_limit=10), 35 * MINUTE)
            assert await made(each) == {10: "Complete", 20: "Complete", 30: "Complete"}
            one = await each.cluster.client.get(Job, f"web-{START_MINUTES + 10}", NAMESPACE)
            reference = controller_of(one)
            assert reference is not None
            assert (reference.kind, reference.uid) == ("CronJob", owner.metadata.uid)
            assert one.metadata.labels["from"] == "cron"
            assert one.metadata.annotations["note"] == "kept"
            assert one.metadata.annotations[SCHEDULED] == "2026-01-01T00:10:00Z"
            status = (await found(each)).status
            assert (status.active, status.last_schedule_time) == ([], "2026-01-01T00:30:00Z")
            assert status.last_successful_time is not None
            assert status.last_successful_time.startswith("2026-01-01T00:30:0")
            assert len(await each.events("SawCompletedJob")) == 3

    run_virtual(main)


def test_a_running_job_is_named_in_the_status() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock, lambda pod: None) as each:
            await each.create(cron_job(), 11 * MINUTE)
            (active,) = (await found(each)).status.active
            assert (active.kind, active.api_version, active.name) == (
                "Job",
                "batch/v1",
                f"web-{START_MINUTES + 10}",
            )

    run_virtual(main)


def test_the_time_zone_decides_when_a_day_begins() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            await each.create(cron_job("0 0 * * *", time_zone="America/New_York"), 6 * HOUR)
            assert await made(each) == {300: "Complete"}
            (one,) = (await each.cluster.client.list(Job, NAMESPACE)).items
            assert one.metadata.annotations[SCHEDULED] == "2026-01-01T00:00:00-05:00"

    run_virtual(main)


@pytest.mark.parametrize(
    "schedule", ["TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *", "61 * * * *", "@sometimes"]
)
def test_a_schedule_that_cannot_be_read_is_refused_by_the_api(schedule: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            with pytest.raises(ApiError) as error:
                await each.create(cron_job(schedule))
            assert error.value.code == 422

    run_virtual(main)


@pytest.mark.parametrize(
    ("policy", "left", "active"),
    [("Allow", [10, 20, 30], 3), ("Forbid", [10], 1), ("Replace", [30], 1)],
)
def test_jobs_that_overlap_run_together_wait_or_replace_each_other(
    policy: str, left: list[int], active: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock, lambda pod: None, collects=policy == "Replace") as each:
            await each.create(cron_job(concurrency_policy=policy), 32 * MINUTE)
            assert list(await made(each)) == left
            assert len((await found(each)).status.active) == active
            assert len(await each.pods()) == active
            if policy == "Forbid":
                (event,) = await each.events("JobAlreadyActive")
                assert event.message.startswith("Not starting job because prior execution is running")

    run_virtual(main)


def test_what_was_forbidden_starts_when_the_last_one_has_ended() -> None:
    async def main(clock: VirtualClock) -> None:
        running: list[Pod] = []

        def outcome(pod: Pod) -> int | None:
            running.append(pod)
            return None if len(running) == 1 else 0

        async with crons(clock, outcome) as each:
            await each.create(cron_job(concurrency_policy="Forbid"), 25 * MINUTE)
            await each.kubelets.finish(running[0], "Succeeded")
            await each.cluster.pass_time(MINUTE)
            assert list(await made(each)) == [10, 20]

    run_virtual(main)


def test_a_suspended_cron_job_starts_nothing_and_then_what_it_missed_last() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            await each.create(cron_job(suspend=True), HOUR + 5 * MINUTE)
            assert await made(each) == {}
            await each.change(CronJob, {"suspend": False}, MINUTE)
            assert list(await made(each)) == [60]

    run_virtual(main)


def test_what_was_missed_longer_ago_than_the_deadline_is_not_made_up_for() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            await each.create(cron_job(suspend=True, starting_deadline_seconds=120), HOUR + 5 * MINUTE)
            await each.change(CronJob, {"suspend": False}, MINUTE)
            assert await made(each) == {}
            await each.cluster.pass_time(5 * MINUTE)
            assert list(await made(each)) == [70]

    run_virtual(main)


def test_many_missed_moments_are_told_and_the_last_is_made_up_for() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            await each.create(cron_job("* * * * *", suspend=True), 2 * HOUR + 30)
            await each.change(CronJob, {"suspend": False}, 10)
            assert list(await made(each)) == [120]
            (event,) = await each.events("TooManyMissedTimes")
            assert event.message.startswith("too many missed start times.")

    run_virtual(main)


def test_another_schedule_counts_from_when_it_was_given() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            await each.create(cron_job("0 * * * *"), 45 * MINUTE)
            await each.change(CronJob, {"schedule": "30 * * * *"}, 5 * MINUTE)
            assert await made(each) == {}
            await each.cluster.pass_time(HOUR)
            assert list(await made(each)) == [90]

    run_virtual(main)


@pytest.mark.parametrize(("code", "end"), [(0, "Complete"), (1, "Failed")])
def test_only_so_many_ended_jobs_are_kept(code: int, end: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock, lambda pod: code, collects=True) as each:
            limits: dict[str, Any] = {"successful_jobs_history_limit": 2, "failed_jobs_history_limit": 1}
            template = JobTemplateSpec(spec=job(backoff_limit=0).spec)
            await each.create(cron_job(job_template=template, **limits), HOUR + MINUTE)
            kept = await made(each)
            assert kept == ({50: end, 60: end} if end == "Complete" else {60: end})
            assert len(await each.pods(lambda pod: True)) == len(kept)

    run_virtual(main)


def test_a_job_made_by_hand_is_told_of_but_not_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock, lambda pod: None) as each:
            owner = await each.create(cron_job(), 1)
            manual = job("manual")
            manual.metadata.owner_references = [_reference(owner)]
            await each.create(manual, MINUTE)
            (event,) = await each.events("UnexpectedJob")
            assert event.message.endswith("forgot: manual")
            assert (await found(each)).status.active == []

    run_virtual(main)


def _reference(owner: CronJob) -> OwnerReference:
    meta = owner.metadata
    return OwnerReference(
        api_version="batch/v1", kind="CronJob", name=meta.name, uid=meta.uid, controller=True
    )


def test_a_job_that_was_deleted_leaves_the_status() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock, lambda pod: None, collects=True) as each:
            await each.create(cron_job(), 11 * MINUTE)
            await each.cluster.client.delete(
                Job, f"web-{START_MINUTES + 10}", NAMESPACE, propagation="Background"
            )
            await each.cluster.pass_time(MINUTE)
            assert (await found(each)).status.active == []
            assert await made(each) == {}
            assert await each.events("MissingJob")

    run_virtual(main)


def test_a_refused_job_is_tried_less_and_less_with_one_event() -> None:
    async def main(clock: VirtualClock) -> None:
        async with crons(clock) as each:
            tries = 0

            async def refuse(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal tries
                if request.method != "POST" or not request.path.endswith("/jobs"):
                    return await send(request)
                tries += 1
                body = request.body or b""
                return await send(Request("POST", request.path, request.query, request.headers, body[:-20]))

            each.cluster.transports["cronjob-controller"].alter = refuse
            await each.create(cron_job("* * * * *"), HOUR)
            assert 15 <= tries <= 25
            assert len(await each.events("FailedCreate")) == 1
            each.cluster.transports["cronjob-controller"].alter = None
            await each.change(CronJob, {"suspend": False, "startingDeadlineSeconds": 100}, MINUTE)
            assert await made(each)

    run_virtual(main)


@pytest.mark.parametrize("is_lost", [True, False])
def test_killed_between_job_and_status_no_moment_gets_two_jobs(is_lost: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None, controllers=()) as (each, _):
            await each.cluster.client.create(cron_job(concurrency_policy="Forbid"))
            dead = asyncio.Event()

            async def die(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                is_status = request.path.endswith("/status")
                if request.method in ("GET", "PATCH") or "/events" in request.path:
                    return await send(request)
                if not is_status and not is_lost:
                    return await send(request)
                if not is_status:
                    await send(request)
                dead.set()
                await asyncio.Event().wait()
                raise AssertionError("nobody sets this event")

            async with more_controllers(each.cluster, CRON, alter=die):
                await dead.wait()
            # While nobody looks the next moment comes.
            await each.cluster.pass_time(10 * MINUTE)
            async with more_controllers(each.cluster, CRON):
                await each.cluster.pass_time(MINUTE)
                assert list(await made(each)) == [10]
                assert [one.name for one in (await found(each)).status.active] == [
                    f"web-{START_MINUTES + 10}"
                ]

    run_virtual(main)
