"""Printers of jobs and cron jobs."""

from __future__ import annotations

from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.printing.cells import NONE, UNSET, age, container_cells, moment, selector_cell, since
from nodeward.api.printing.printer import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cells, Column, Printer
from nodeward.base.duration import human_duration


def _status(job: Job) -> str:
    first: dict[str, str] = {}
    for condition in job.status.conditions:
        first.setdefault(condition.type, condition.status)
    for ended in ("Complete", "Failed"):
        if first.get(ended) == "True":
            return ended
    if job.metadata.deletion_timestamp is not None:
        return "Terminating"
    for condition_type in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if first.get(condition_type) == "True":
            return condition_type
    return "Running"


def _completions(job: Job) -> str:
    succeeded = job.status.succeeded
    if job.spec.completions is not None:
        return f"{succeeded}/{job.spec.completions}"
    parallelism = job.spec.parallelism or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Job, now_ns: int) -> str:
    start = moment(job.status.start_time)
    if start is None:
        return ""
    end = moment(job.status.completion_time)
    return human_duration((now_ns if end is None else end) - start)


def _job(job: Job, now_ns: int) -> Cells:
    return [
        job.metadata.name,
        _status(job),
        _completions(job),
        _duration(job, now_ns),
        age(job, now_ns),
        *container_cells(job.spec.template.spec.containers),
        selector_cell(job.spec.selector),
    ]


def _cron_job(cron_job: CronJob, now_ns: int) -> Cells:
    spec, last = cron_job.spec, cron_job.status.last_schedule_time
    return [
        cron_job.metadata.name,
        spec.schedule,
        NONE if spec.time_zone is None else spec.time_zone,
        UNSET if spec.suspend is None else str(spec.suspend),
        len(cron_job.status.active),
        NONE if last is None else since(last, now_ns),
        age(cron_job, now_ns),
        *container_cells(spec.job_template.spec.template.spec.containers),
        selector_cell(spec.job_template.spec.selector),
    ]


_WIDE = (CONTAINERS, IMAGES, SELECTOR)

JOB = Printer(
    (
        NAME,
        Column("Status", description="How far the job is."),
        Column("Completions", description="Pods that succeeded of those that must."),
        Column("Duration", description="How long the job runs or ran."),
        AGE,
        *_WIDE,
    ),
    _job,
)
CRON_JOB = Printer(
    (
        NAME,
        Column("Schedule", description="When jobs are started, in cron form."),
        Column("Timezone", description="Time zone of the schedule."),
        Column("Suspend", "boolean", description="Whether no further jobs are started."),
        Column("Active", "integer", description="Jobs that are running."),
        Column("Last Schedule", description="Time since a job was last started."),
        AGE,
        *_WIDE,
    ),
    _cron_job,
)
