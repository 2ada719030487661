"""What a job's controller, ours or another, may report: no finished job becomes unfinished, no count runs back.

Most rules look only at what a report changes, so that a report on a job that broke a rule long ago still goes
through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeward.api.batch_v1 import Job, JobStatus
from nodeward.api.context import Context
from nodeward.base.fielderror import OMITTED, FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.validation.apps.counts import validate_counts
from nodeward.validation.batch.indexes import IndexesFault, count_indexes, overlap
from nodeward.validation.checks import IMMUTABLE

_STATUS: Final = ROOT.child("status")
_CONDITIONS: Final = _STATUS.child("conditions")


def is_true(job: Job, condition: str) -> bool:
    return any(c.type == condition and c.status == "True" for c in job.status.conditions)


def _is_finished(job: Job) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


class _Change:
    """Which parts of a status differ between two reports."""

    def __init__(self, new: Job, old: Job) -> None:
        now, was = new.status, old.status
        self.finished = _is_finished(new) != _is_finished(old)
        self.complete = is_true(new, "Complete") != is_true(old, "Complete")
        self.failed = is_true(new, "Failed") != is_true(old, "Failed")
        self.failure_target = is_true(new, "FailureTarget") != is_true(old, "FailureTarget")
        self.success_met = is_true(new, "SuccessCriteriaMet") != is_true(old, "SuccessCriteriaMet")
        self.completed_indexes = now.completed_indexes != was.completed_indexes
        self.failed_indexes = now.failed_indexes != was.failed_indexes
        self.active = now.active != was.active
        self.start = now.start_time != was.start_time
        self.completion = now.completion_time != was.completion_time
        self.uncounted = now.uncounted_terminated_pods != was.uncounted_terminated_pods
        self.ready = now.ready != was.ready
        self.terminating = now.terminating != was.terminating


def _about_conditions(detail: str) -> FieldError:
    return invalid(_CONDITIONS, OMITTED, detail)


def validate_job_status(new: Job, old: Job, ctx: Context) -> list[FieldError]:
    counts = ("active", "succeeded", "failed", "ready", "terminating")
    errors = validate_counts(new.status, _STATUS, *counts)
    errors += _uncounted(new.status)
    if ctx.on("JobManagedBy"):
        change = _Change(new, old)
        errors += _conditions_and_times(new, change)
        errors += _finished(new, change)
        errors += _indexes(new, change)
        errors += _pods(new, change)
    errors += _success_criteria(new)
    if ctx.on("JobManagedBy"):
        errors += _never_back(new, old)
    return [*errors, *_success_criteria_change(new, old)]


def _uncounted(status: JobStatus) -> list[FieldError]:
    pods = status.uncounted_terminated_pods
    if pods is None:
        return []
    errors: list[FieldError] = []
    seen: set[str] = set()
    for field, uids in (("succeeded", pods.succeeded), ("failed", pods.failed)):
        for i, uid in enumerate(uids):
            at = _STATUS.child("uncountedTerminatedPods", field).index(i)
            if not uid:
                errors.append(invalid(at, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(at, uid))
            seen.add(uid)
    return errors


def _conditions_and_times(job: Job, change: _Change) -> Iterator[FieldError]:
    status, is_complete = job.status, is_true(job, "Complete")
    at = _STATUS.child("completionTime")
    if (change.complete or change.failed) and is_complete and is_true(job, "Failed"):
        yield _about_conditions("cannot set Complete=True and Failed=true conditions")
    if (change.complete or change.failure_target) and is_complete and is_true(job, "FailureTarget"):
        yield _about_conditions("cannot set Complete=True and FailureTarget=true conditions")
    if change.complete or change.completion:
        if status.completion_time is not None and not is_complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield invalid(at, status.completion_time, detail)
        if status.completion_time is None and is_complete:
            yield required(at, "completionTime is required for Complete jobs")
    if change.start or change.completion:
        start, end = status.start_time, status.completion_time
        if start is not None and end is not None and end < start:
            yield invalid(at, end, "must be equal to or after `startTime`")
    is_failed_untargeted = is_true(job, "Failed") and not is_true(job, "FailureTarget")
    if (change.failed or change.failed_indexes) and is_failed_untargeted:
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield _about_conditions(detail)
    if (change.complete or change.success_met) and is_complete and not is_true(job, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _about_conditions(detail)


def _finished(job: Job, change: _Change) -> Iterator[FieldError]:
    status = job.status
    if not _is_finished(job):
        return
    if (change.finished or change.active) and status.active > 0:
        yield invalid(_STATUS.child("active"), status.active, "active>0 is invalid for finished job")
    never_started = bool(job.spec.suspend) and job.spec.completions == 0
    if (change.finished or change.start) and status.start_time is None and not never_started:
        yield required(_STATUS.child("startTime"), "startTime is required for finished job")
    pods = status.uncounted_terminated_pods
    if (change.finished or change.uncounted) and pods is not None and (pods.failed or pods.succeeded):
        yield invalid(_STATUS.child("uncountedTerminatedPods"), pods, "must be empty for finished job")


def _indexes(job: Job, change: _Change) -> Iterator[FieldError]:
    completions = job.spec.completions
    done, failed = job.status.completed_indexes, job.status.failed_indexes
    done_at, failed_at = _STATUS.child("completedIndexes"), _STATUS.child("failedIndexes")
    if change.completed_indexes and completions is not None:
        try:
            count_indexes(done, completions)
        except IndexesFault as fault:
            yield invalid(done_at, done, f"error parsing completedIndexes: {fault}")
    has_limit = job.spec.backoff_limit_per_index is not None
    if change.failed_indexes and completions is not None and has_limit and failed is not None:
        try:
            count_indexes(failed, completions)
        except IndexesFault as fault:
            yield invalid(failed_at, failed, f"error parsing failedIndexes: {fault}")
    if change.completed_indexes and done and job.spec.completion_mode != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid(done_at, done, detail)
    if change.failed_indexes and failed is not None and not has_limit:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid(failed_at, failed, detail)
    if (change.failed_indexes or change.completed_indexes) and completions is not None and failed:
        both = overlap(done, failed, completions)
        if both is not None:
            yield invalid(failed_at, failed, f"failedIndexes and completedIndexes overlap at index: {both}")


def _pods(job: Job, change: _Change) -> Iterator[FieldError]:
    status = job.status
    if (change.finished or change.terminating) and (status.terminating or 0) > 0 and _is_finished(job):
        detail = "terminating>0 is invalid for finished job"
        yield invalid(_STATUS.child("terminating"), status.terminating, detail)
    if (change.ready or change.active) and status.ready is not None and status.ready > status.active:
        yield invalid(_STATUS.child("ready"), status.ready, "cannot set more ready pods than active")


def _success_criteria(job: Job) -> Iterator[FieldError]:
    is_met = is_true(job, "SuccessCriteriaMet")
    if is_met and is_true(job, "Failed"):
        yield _about_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if is_met and is_true(job, "FailureTarget"):
        yield _about_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    if job.spec.success_policy is not None and not is_met and is_true(job, "Complete"):
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _about_conditions(detail)


def _never_back(new: Job, old: Job) -> Iterator[FieldError]:
    now, was = new.status, old.status
    for condition in ("Failed", "Complete", "FailureTarget"):
        if is_true(old, condition) and not is_true(new, condition):
            yield _about_conditions(f"cannot disable the terminal {condition}=True condition")
    if now.failed < was.failed:
        yield invalid(_STATUS.child("failed"), now.failed, "cannot decrease the failed counter")
    # An indexed job that is scaled down forgets the successes beyond its new end.
    can_shrink = new.spec.completion_mode == "Indexed" and new.spec.completions == new.spec.parallelism
    if now.succeeded < was.succeeded and not can_shrink:
        yield invalid(_STATUS.child("succeeded"), now.succeeded, "cannot decrease the succeeded counter")
    if None not in (now.completion_time, was.completion_time) and now.completion_time != was.completion_time:
        yield invalid(_STATUS.child("completionTime"), now.completion_time, IMMUTABLE)
    is_resuming = is_true(old, "Suspended") and any(
        c.type == "Suspended" and c.status == "False" for c in now.conditions
    )
    may_restart = is_resuming or bool(new.spec.suspend)
    if was.start_time is not None and now.start_time != was.start_time and not may_restart:
        detail = "field is immutable for unsuspended job once set"
        yield invalid(_STATUS.child("startTime"), now.start_time, detail)


def _success_criteria_change(new: Job, old: Job) -> Iterator[FieldError]:
    is_met, was_met = is_true(new, "SuccessCriteriaMet"), is_true(old, "SuccessCriteriaMet")
    if was_met and not is_met:
        yield _about_conditions("cannot disable the SuccessCriteriaMet=True condition")
    if is_true(old, "Complete") and not was_met and is_met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield _about_conditions(detail)
