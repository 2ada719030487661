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
from nodeward.controllers.job.pod_facts import counts_by_index, is_failed, is_indexed, is_suspended, restarts
from nodeward.controllers.job.policies import judge_failure, success_by_policy
from nodeward.controllers.job.scene import Scene


def decided(scene: Scene) -> JobCondition | None:
    """The first step of the end (`FailureTarget` or `SuccessCriteriaMet`), as it was told or as it is now."""
    status = scene.job.status
    for type_ in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        if is_true(status, type_):
            return find(status, type_)
    failure = _fatal_pod(scene) or _limit_reached(scene) or _index_limit_reached(scene)
    if failure is not None:
        return condition(FAILURE_TARGET, *failure, scene.now_ns)
    rule = success_by_policy(scene.job, scene.succeeded_indexes) if is_indexed(scene.job) else None
    return None if rule is None else condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", rule, scene.now_ns)


def completed(scene: Scene, active: int) -> JobCondition | None:
    """Whether enough pods have succeeded and none runs; without a number of completions the first success is enough."""
    wanted = scene.job.spec.completions
    if active or scene.succeeded < (1 if wanted is None else wanted):
        return None
    text = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", text, scene.now_ns)


def seconds_to_deadline(job: Job, now_ns: int) -> float | None:
    """How long the job may run yet; None: for ever."""
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or start is None or is_suspended(job):
        return None
    return limit - (now_ns - parse_rfc3339(start)) / SECOND_NS


def _fatal_pod(scene: Scene) -> tuple[str, str] | None:
    if scene.job.spec.pod_failure_policy is None:
        return None
    for pod in scene.pods:
        if is_failed(pod, scene.job) and (message := judge_failure(scene.job, pod).message):
            return "PodFailurePolicy", message
    return None


def _limit_reached(scene: Scene) -> tuple[str, str] | None:
    job = scene.job
    limit = job.spec.backoff_limit or 0
    restarted = restarts(scene.pods) if job.spec.template.spec.restart_policy == "OnFailure" else 0
    if scene.failed > limit or (restarted and restarted >= limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = seconds_to_deadline(job, scene.now_ns)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _index_limit_reached(scene: Scene) -> tuple[str, str] | None:
    job, broken = scene.job, len(scene.failed_indexes)
    if not is_indexed(job) or not counts_by_index(job):
        return None
    if job.spec.max_failed_indexes is not None and broken > job.spec.max_failed_indexes:
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if broken and broken + len(scene.succeeded_indexes) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None
