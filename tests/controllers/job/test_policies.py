"""Indexed jobs, and the rules users give for failures and success."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.batch_v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicy,
    SuccessPolicyRule,
)
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.pod_facts import INDEX, INDEX_FAILURES, index_of
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.job.jobs import conditions, counts, end, found, indexed, job, jobs

HOUR = 3600.0


def on_code(
    action: str, *codes: int, operator: str = "In", container: str | None = None
) -> PodFailurePolicyRule:
    wish = PodFailurePolicyOnExitCodesRequirement(
        container_name=container, operator=operator, values=list(codes)
    )
    return PodFailurePolicyRule(action=action, on_exit_codes=wish)


def on_condition(action: str, type_: str) -> PodFailurePolicyRule:
    pattern = PodFailurePolicyOnPodConditionsPattern(type=type_, status="True")
    return PodFailurePolicyRule(action=action, on_pod_conditions=[pattern])


def test_every_index_is_done_once_and_a_pod_knows_which_it_is() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock) as (each, workers):
            await each.create(indexed(5, 2), 60)
            pods = await each.pods(lambda pod: True)
            assert sorted(index_of(pod) or 0 for pod in pods) == [0, 1, 2, 3, 4]
            for pod in pods:
                index = index_of(pod)
                assert pod.metadata.labels[INDEX] == str(index)
                assert pod.metadata.generate_name == f"web-{index}-"
                assert pod.spec.hostname == f"web-{index}"
                (env,) = pod.spec.containers[0].env
                assert env.name == "JOB_COMPLETION_INDEX"
                assert env.value_from is not None
                assert env.value_from.field_ref is not None
                assert env.value_from.field_ref.field_path == f"metadata.labels['{INDEX}']"
            one = await found(each)
            assert (one.status.completed_indexes, counts(one)) == ("0-4", (0, 5, 0))
            assert "Complete" in conditions(one)
            assert [index for index, _ in workers.ended] == sorted(index for index, _ in workers.ended)

    run_virtual(main)


def test_a_failed_index_is_tried_again_and_others_go_on() -> None:
    async def main(clock: VirtualClock) -> None:
        left = {1: 2, 3: 1}

        def outcome(pod: Pod) -> int:
            index = index_of(pod) or 0
            left[index] = left.get(index, 0) - 1
            return 1 if left[index] >= 0 else 0

        async with jobs(clock, outcome) as (each, _):
            await each.create(indexed(4), 300)
            one = await found(each)
            assert (one.status.completed_indexes, counts(one)) == ("0-3", (0, 4, 3))
            assert "Complete" in conditions(one)

    run_virtual(main)


def test_a_limit_for_each_index_fails_that_index_and_finishes_the_others() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 1 if index_of(pod) == 1 else 0) as (each, workers):
            seen: list[str] = []
            each.kubelets.pods.add_handler(
                lambda pod: (
                    seen.append(pod.metadata.annotations[INDEX_FAILURES]) if index_of(pod) == 1 else None
                )
            )
            await each.create(indexed(4, 2, backoff_limit_per_index=2), HOUR)
            one = await found(each)
            assert (one.status.completed_indexes, one.status.failed_indexes) == ("0,2,3", "1")
            assert counts(one) == (0, 3, 3)
            assert seen == ["0", "1", "2"]
            assert conditions(one)["Failed"] == ("True", "FailedIndexes")
            assert {index for index, code in workers.ended if code == 0} == {0, 2, 3}

    run_virtual(main)


def test_too_many_failed_indexes_end_the_job() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 1 if (index_of(pod) or 0) < 3 else None) as (each, _):
            await each.create(indexed(10, 4, backoff_limit_per_index=0, max_failed_indexes=2), 60)
            one = await found(each)
            assert conditions(one)["Failed"] == ("True", "MaxFailedIndexesExceeded")
            assert one.status.failed_indexes is not None
            assert one.status.failed_indexes.startswith("0-2")

    run_virtual(main)


@pytest.mark.parametrize(
    ("rules", "code", "status", "failed", "reason"),
    [
        ([on_code("FailJob", 42)], 42, {}, 1, "PodFailurePolicy"),
        ([on_code("FailJob", 42)], 41, {}, 3, "BackoffLimitExceeded"),
        ([on_code("FailJob", 42, operator="NotIn")], 41, {}, 1, "PodFailurePolicy"),
        ([on_code("FailJob", 42, container="web")], 42, {}, 1, "PodFailurePolicy"),
        ([on_code("Count", 42), on_code("FailJob", 42)], 42, {}, 3, "BackoffLimitExceeded"),
        ([on_code("Ignore", 42)], 42, {}, 0, ""),
        ([on_condition("FailJob", "ConfigIssue")], 1, {"ConfigIssue": "True"}, 1, "PodFailurePolicy"),
        ([on_condition("Ignore", "DisruptionTarget")], 1, {"DisruptionTarget": "True"}, 0, ""),
    ],
)
def test_the_first_rule_that_matches_decides_what_a_failure_means(
    rules: list[PodFailurePolicyRule], code: int, status: dict[str, str], failed: int, reason: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(job(backoff_limit=2, pod_failure_policy=PodFailurePolicy(rules=rules)), 3)
            for _ in range(4):
                for pod in await each.pods():
                    told: list[Any] = [{"type": kind, "status": value} for kind, value in status.items()]
                    await end(each, pod, code, conditions=told)
                await each.cluster.pass_time(90)
            one = await found(each)
            assert one.status.failed == failed
            if not reason:
                assert conditions(one) == {}
                assert len(await each.pods()) == 1
                return
            assert conditions(one)["Failed"] == ("True", reason)
            if reason == "PodFailurePolicy":
                (event,) = await each.events(reason)
                assert event.message.startswith(("Container web for pod default/web-", "Pod default/web-"))
                assert event.message.endswith("matching FailJob rule at index 0")

    run_virtual(main)


def test_a_rule_can_give_up_one_index_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        policy = PodFailurePolicy(rules=[on_code("FailIndex", 42)])
        async with jobs(clock, lambda pod: 42 if index_of(pod) == 0 else 0) as (each, _):
            await each.create(indexed(3, backoff_limit_per_index=5, pod_failure_policy=policy), 60)
            one = await found(each)
            assert (one.status.completed_indexes, one.status.failed_indexes) == ("1,2", "0")
            assert conditions(one)["Failed"] == ("True", "FailedIndexes")
            assert counts(one) == (0, 2, 1)

    run_virtual(main)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (SuccessPolicyRule(succeeded_indexes="0,2"), "Matched rules at index 0"),
        (SuccessPolicyRule(succeeded_count=2), "Matched rules at index 0"),
        (SuccessPolicyRule(succeeded_indexes="0-4", succeeded_count=2), "Matched rules at index 0"),
        (SuccessPolicyRule(succeeded_indexes="1"), ""),
    ],
)
def test_a_success_policy_ends_the_job_early_and_stops_the_rest_uncounted(
    rule: SuccessPolicyRule, message: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: 0 if index_of(pod) in (0, 2) else None, nodes=("n1",)) as (
            each,
            _,
        ):
            await each.create(indexed(5, success_policy=SuccessPolicy(rules=[rule])), 60)
            one = await found(each)
            assert one.status.completed_indexes == "0,2"
            if not message:
                assert counts(one) == (3, 2, 0)
                return
            assert counts(one) == (0, 2, 0)
            assert conditions(one) == {
                "SuccessCriteriaMet": ("True", "SuccessPolicy"),
                "Complete": ("True", "SuccessPolicy"),
            }
            assert one.status.conditions[0].message == message
            assert await each.pods() == []

    run_virtual(main)


def test_an_indexed_job_may_grow_and_shrink() -> None:
    async def main(clock: VirtualClock) -> None:
        async with jobs(clock, lambda pod: None) as (each, _):
            await each.create(indexed(2), 5)
            for size in (5, 3):
                await each.change(type(await found(each)), {"completions": size, "parallelism": size}, 10)
                assert sorted(index_of(pod) or 0 for pod in await each.pods()) == list(range(size))

    run_virtual(main)
