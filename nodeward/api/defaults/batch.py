"""Defaults of jobs and cron jobs."""

from __future__ import annotations

from typing import Final

from nodeward.api.batch_v1 import CronJob, Job, JobSpec
from nodeward.api.defaults.pod import default_pod_template

_RETRIES: Final = 6
_UNLIMITED: Final = 2**31 - 1


def default_job(job: Job) -> None:
    spec = job.spec
    if spec.completions is None and spec.parallelism is None:
        spec.completions = 1
    if spec.parallelism is None:
        spec.parallelism = 1
    if spec.backoff_limit is None:
        spec.backoff_limit = _RETRIES if spec.backoff_limit_per_index is None else _UNLIMITED
    job.metadata.labels = job.metadata.labels or dict(spec.template.metadata.labels)
    spec.completion_mode = spec.completion_mode or "NonIndexed"
    if spec.suspend is None:
        spec.suspend = False
    if spec.pod_replacement_policy is None:
        policy = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
        spec.pod_replacement_policy = policy
    if spec.manual_selector is None:
        spec.manual_selector = False
    _inside(spec)


def default_cron_job(cron: CronJob) -> None:
    """Default what is inside the job template; the job's own defaults are set when it is created."""
    spec = cron.spec
    spec.concurrency_policy = spec.concurrency_policy or "Allow"
    if spec.suspend is None:
        spec.suspend = False
    if spec.successful_jobs_history_limit is None:
        spec.successful_jobs_history_limit = 3
    if spec.failed_jobs_history_limit is None:
        spec.failed_jobs_history_limit = 1
    _inside(spec.job_template.spec)


def _inside(spec: JobSpec) -> None:
    default_pod_template(spec.template)
    if spec.pod_failure_policy is not None:
        for rule in spec.pod_failure_policy.rules:
            for pattern in rule.on_pod_conditions:
                pattern.status = pattern.status or "True"
