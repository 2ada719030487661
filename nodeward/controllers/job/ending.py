"""Whether a job is over, and why. Pure.

What was decided before stays decided. Then failures come before success: a pod that a rule calls fatal, too many
failures, the deadline, too many failed indexes; then the success policy. That all completions are there is seen last,
once it is known what runs.
"""

from __future__ import annotations

from nodeward.api.batch_v1 import Job, JobCondition
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.job.conditions import FAILURE_TARGET, SUCCESS_CRITERIA_MET, condition, find, is_true
from nodeward.controllers.job.job_state import JobState
from nodeward.controllers.job.pod_facts import counts_by_index, is_failed, is_indexed, is_suspended, restarts
from nodeward.controllers.job.policies import judge_failure, success_by_policy


def decided(state: JobState) -> JobCondition | None:
    """Return the first step of the end (`FailureTarget` or `SuccessCriteriaMet`), as it was told or as it is now."""
    status = state.job.status
    for type_ in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        if is_true(status, type_):
            return find(status, type_)
    failure = _fatal_pod(state) or _limit_reached(state) or _index_limit_reached(state)
    if failure is not None:
        return condition(FAILURE_TARGET, *failure, state.now_ns)
    rule = success_by_policy(state.job, state.succeeded_indexes) if is_indexed(state.job) else None
    return None if rule is None else condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", rule, state.now_ns)


def completed(state: JobState, active: int) -> JobCondition | None:
    """Tell whether enough pods have succeeded (without `completions`: one) and none runs."""
    wanted = state.job.spec.completions
    if active or state.succeeded < (1 if wanted is None else wanted):
        return None
    text = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", text, state.now_ns)


def seconds_to_deadline(job: Job, now_ns: int) -> float | None:
    """Return how long the job may run yet; None: for ever."""
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or start is None or is_suspended(job):
        return None
    return limit - (now_ns - parse_rfc3339(start)) / SECOND_NS


def _fatal_pod(state: JobState) -> tuple[str, str] | None:
    if state.job.spec.pod_failure_policy is None:
        return None
    for pod in state.pods:
        if is_failed(pod, state.job) and (message := judge_failure(state.job, pod).message):
            return "PodFailurePolicy", message
    return None


def _limit_reached(state: JobState) -> tuple[str, str] | None:
    job = state.job
    limit = job.spec.backoff_limit or 0
    restarted = restarts(state.pods) if job.spec.template.spec.restart_policy == "OnFailure" else 0
    if state.failed > limit or (restarted and restarted >= limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = seconds_to_deadline(job, state.now_ns)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _index_limit_reached(state: JobState) -> tuple[str, str] | None:
    job, broken = state.job, len(state.failed_indexes)
    if not is_indexed(job) or not counts_by_index(job):
        return None
    if job.spec.max_failed_indexes is not None and broken > job.spec.max_failed_indexes:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if broken and broken + len(state.succeeded_indexes) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None
