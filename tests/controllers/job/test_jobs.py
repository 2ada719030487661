"""A job runs pods to their end: the behaviours the Kubernetes documentation promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.job.pod_facts import TRACKING, is_tracked
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.state import is_active
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.job.jobs import conditions, counts, end, found, job, jobs
from tests.controllers.workloads import NAMESPACE, Workloads, template

HOUR = 3600.0


class Crowd:
    """The most pods of a job at work at once."""

    def __init__(self, each: Workloads) -> None:
        self.most = 0
        self.made = 0
        self._pods = each.kubelets.pods
        self._pods.add_handler(self._new, lambda _, __: self._look())

    def _new(self, _: Pod) -> None:
        self.made += 1
        self._look()

    def _look(self) -> None:
        self.most = max(self.most, sum(map(is_active, self._pods.list(NAMESPACE))))


@pytest.mark.parametrize(
    ("completions", "parallelism", "made", "at_once"),
    [(1, 1, 1, 1), (5, 2, 5, 2), (3, 10, 3, 3), (7, 7, 7, 7), (None, 4, 4, 4), (0, 3, 0, 0)],
)
def test_as_many_succeed_as_asked_for_and_never_more_run_than_allowed(
    completions: int | None, parallelism: int, made: int, at_once: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, _):
            crowd = Crowd(each)
            await each.create(job(completions=completions, parallelism=parallelism), 60)
            one = await found(each)
            assert (crowd.made, crowd.most) == (made, at_once)
            assert counts(one) == (0, made, 0)
            assert conditions(one) == {
                "SuccessCriteriaMet": ("True", "CompletionsReached"),
                "Complete": ("True", "CompletionsReached"),
            }
            assert one.status.start_time is not None
            assert one.status.completion_time is not None
            assert one.status.uncounted_terminated_pods is not None
            assert (one.status.ready, one.status.terminating) == (0, 0)
            assert [event.message for event in await each.events("Completed")] == ["Job completed"]
            assert not any(is_tracked(pod) for pod in await each.pods(lambda pod: True))

    run_virtual(main)


def test_pods_carry_the_finalizer_and_the_labels_of_their_job() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            owner = await each.create(job(), 5)
            (pod,) = await each.pods()
            assert pod.metadata.finalizers == [TRACKING]
            assert pod.metadata.generate_name == "web-"
            reference = controller_of(pod)
            assert reference is not None
            assert (reference.kind, reference.uid) == ("Job", owner.metadata.uid)
            assert pod.metadata.labels["batch.kubernetes.io/job-name"] == "web"
            one = await found(each)
            assert (one.status.active, one.status.ready) == (1, 1)

    run_virtual(main)


def test_failed_pods_are_replaced_after_ten_seconds_and_twice_as_long_each_time() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 1, seconds=0.5, start_seconds=0.5) as (each, _):
            born: list[int] = []
            each.kubelets.pods.add_handler(lambda pod: born.append(clock.now_ns() // SECOND_NS))
            await each.create(job(backoff_limit=4), HOUR)
            gaps = [after - before for before, after in pairwise(born)]
            assert [round(gap / 10) for gap in gaps] == [1, 2, 4, 8]
            one = await found(each)
            assert counts(one) == (0, 0, 5)
            assert conditions(one) == {
                "FailureTarget": ("True", "BackoffLimitExceeded"),
                "Failed": ("True", "BackoffLimitExceeded"),
            }
            (event,) = await each.events("BackoffLimitExceeded")
            assert event.message == "Job has reached the specified backoff limit"
            assert one.status.completion_time is None

    run_virtual(main)


def test_pauses_after_failures_never_pass_ten_minutes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 1, seconds=0.5, start_seconds=0.5) as (each, _):
            born: list[float] = []
            each.kubelets.pods.add_handler(lambda pod: born.append(clock.now_ns() / SECOND_NS))
            await each.create(job(backoff_limit=9), 3 * HOUR)
            gaps = [after - before for before, after in pairwise(born)]
            assert len(gaps) == 9
            assert gaps[-1] == gaps[-2] == pytest.approx(600, abs=3)

    run_virtual(main)


def test_when_a_job_fails_what_still_runs_is_stopped_and_counted_as_failed() -> None:
    async def main(clock: VirtualClock) -> None:
        fails = {"first": True}

        def once(pod: Pod) -> int | None:
            return 1 if fails.pop("first", False) else None

        async with jobs(clock, once, stop_seconds=20, nodes=("n1",)) as (each, _):
            await each.create(job(completions=3, parallelism=3, backoff_limit=0), 10)
            one = await found(each)
            assert conditions(one) == {"FailureTarget": ("True", "BackoffLimitExceeded")}
            assert (one.status.active, one.status.terminating) == (0, 2)
            await each.cluster.pass_time(20)
            one = await found(each)
            assert conditions(one)["Failed"] == ("True", "BackoffLimitExceeded")
            assert counts(one) == (0, 0, 3)

    run_virtual(main)


def test_restarts_in_place_count_towards_the_limit_too() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(job(restart="OnFailure", backoff_limit=3), 5)
            for restarts, ends in ((2, False), (3, True)):
                (pod,) = await each.pods()
                status = {
                    "name": "web",
                    "ready": True,
                    "restartCount": restarts,
                    "image": "web:1",
                    "imageID": "",
                }
                await each.kubelets.set_ready(pod, True, containerStatuses=[status])
                await each.cluster.pass_time(10)
                assert ("Failed" in conditions(await found(each))) == ends

    run_virtual(main)


def test_a_deadline_ends_the_job_whatever_it_does() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(job(active_deadline_seconds=100), 95)
            assert counts(await found(each)) == (1, 0, 0)
            await each.cluster.pass_time(10)
            one = await found(each)
            assert conditions(one)["Failed"] == ("True", "DeadlineExceeded")
            assert counts(one) == (0, 0, 1)
            assert await each.pods() == []

    run_virtual(main)


def test_a_suspended_job_has_no_pods_and_its_deadline_starts_when_it_is_resumed() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(job(parallelism=2, completions=2, active_deadline_seconds=100), 50)
            assert len(await each.pods()) == 2
            await each.change(Job, {"suspend": True}, 200)
            one = await found(each)
            assert counts(one) == (0, 0, 0)
            assert conditions(one) == {"Suspended": ("True", "JobSuspended")}
            assert one.status.start_time is None
            assert await each.pods(lambda pod: True) == []
            await each.change(Job, {"suspend": False}, 95)
            one = await found(each)
            assert counts(one) == (2, 0, 0)
            assert conditions(one) == {"Suspended": ("False", "JobResumed")}
            assert [len(await each.events(reason)) for reason in ("Suspended", "Resumed")] == [1, 1]
            await each.cluster.pass_time(20)
            assert conditions(await found(each))["Failed"] == ("True", "DeadlineExceeded")

    run_virtual(main)


def test_a_job_created_suspended_waits_and_then_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, _):
            await each.create(job(suspend=True), 60)
            one = await found(each)
            assert (one.status.start_time, counts(one)) == (None, (0, 0, 0))
            await each.change(Job, {"suspend": False}, 30)
            assert conditions(await found(each))["Complete"] == ("True", "CompletionsReached")

    run_virtual(main)


@pytest.mark.parametrize(("policy", "at_once"), [(None, 2), ("TerminatingOrFailed", 2), ("Failed", 1)])
def test_a_pod_that_is_going_is_replaced_at_once_or_when_it_is_gone(policy: str | None, at_once: int) -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None, stop_seconds=120, nodes=("n1",)) as (each, _):
            await each.create(job(pod_replacement_policy=policy), 5)
            (pod,) = await each.pods()
            await each.cluster.client.delete(Pod, pod.metadata.name, NAMESPACE)
            await each.cluster.pass_time(60)
            assert len(await each.pods(lambda pod: True)) == at_once
            one = await found(each)
            assert (one.status.terminating, one.status.active) == (1, at_once - 1)
            assert one.status.failed == (0 if policy == "Failed" else 1)
            if policy == "Failed":
                await end(each, pod, 143)
                await each.cluster.pass_time(30)
                assert counts(await found(each)) == (1, 0, 1)

    run_virtual(main)


def test_parallelism_may_be_changed_while_it_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(job(completions=10, parallelism=2), 5)
            for parallelism in (6, 1, 0, 3):
                await each.change(Job, {"parallelism": parallelism}, 10)
                assert counts(await found(each)) == (parallelism, 0, 0)

    run_virtual(main)


def test_matching_orphans_are_adopted_and_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, _):
            orphan = Pod(
                metadata=ObjectMeta(name="orphan", namespace=NAMESPACE, labels={"task": "a"}),
                spec=template().spec,
            )
            orphan.spec.restart_policy = "Never"
            await each.cluster.client.create(orphan)
            made = job(manual_selector=True, selector=LabelSelector(match_labels={"task": "a"}))
            made.spec.template.metadata.labels = {"task": "a"}
            await each.create(made, 30)
            one = await found(each)
            assert counts(one) == (0, 1, 0)
            assert [pod.metadata.name for pod in await each.pods(lambda pod: True)] == ["orphan"]

    run_virtual(main)


def test_pods_of_a_deleted_job_are_let_go_whether_orphaned_or_not() -> None:
    async def main(clock: VirtualClock) -> None:
        collected = tuple(
            entry for entry in CONTROLLERS if entry.name in ("job-controller", "generic-garbage-collector")
        )
        async with jobs(clock, lambda pod: None, controllers=collected) as (each, _):
            for name, propagation in (("a", "Background"), ("b", "Foreground"), ("c", "Orphan")):
                await each.create(job(name), 5)
                await each.cluster.client.delete(Job, name, NAMESPACE, propagation=propagation)
                await each.cluster.pass_time(60)
                assert not await each.cluster.exists(Job, name, NAMESPACE)
            pods = await each.pods(lambda pod: True)
            assert [pod.metadata.generate_name for pod in pods] == ["c-"]
            assert [pod.metadata.finalizers for pod in pods] == [[]]

    run_virtual(main)


def test_a_job_that_another_controller_manages_is_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, _):
            await each.create(job(managed_by="example.com/other"), 30)
            assert await each.pods(lambda pod: True) == []
            assert (await found(each)).status.start_time is None

    run_virtual(main)


def test_a_refused_template_is_tried_less_and_less_with_one_event_and_one_condition() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, _):
            tries = 0

            async def listen(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
                nonlocal tries
                tries += request.method == "POST" and request.path.endswith("/pods")
                return await send(request)

            each.cluster.transports["job-controller"].alter = listen
            refused = job()
            refused.spec.template.spec.priority_class_name = "nobody-made-this"
            await each.create(refused, HOUR)
            assert 15 <= tries <= 25
            (event,) = await each.events("FailedCreate")
            assert "nobody-made-this" in event.message
            one = await found(each)
            assert conditions(one) == {"ReplicaFailure": ("True", "FailedCreate")}
            assert counts(one) == (0, 0, 0)

    run_virtual(main)


def test_many_completions_are_counted_exactly() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, seconds=0.1, start_seconds=0.1) as (each, _):
            crowd = Crowd(each)
            await each.create(job(completions=90, parallelism=70), 120)
            assert counts(await found(each)) == (0, 90, 0)
            assert (crowd.made, crowd.most) == (90, 70)

    run_virtual(main)
