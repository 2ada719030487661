"""Cron jobs: when they run, what they make, and how much of it is kept."""

from __future__ import annotations

from typing import Final

from nodeward.api.batch_v1 import CronJob, CronJobSpec
from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.cron_grammar import schedule_fault, time_zone_fault
from nodeward.rules.names import dns_subdomain, size
from nodeward.validation.apps.counts import validate_counts
from nodeward.validation.apps.workloads import workload_warnings
from nodeward.validation.batch.job import validate_job_spec
from nodeward.validation.checks import check_choice
from nodeward.validation.kinds import kind
from nodeward.validation.meta.metadata import METADATA

_SPEC: Final = ROOT.child("spec")
#: The jobs made are called after the cron job, with a dash and ten digits.
_NAME_LIMIT: Final = 63 - 11
_POLICIES: Final = ("Allow", "Forbid", "Replace")


def _schedule(spec: CronJobSpec, old: CronJobSpec | None) -> list[FieldError]:
    at = _SPEC.child("schedule")
    if not spec.schedule:
        return []
    fault = schedule_fault(spec.schedule)
    errors = [] if fault is None else [invalid(at, spec.schedule, fault)]
    if "TZ" not in spec.schedule:
        return errors
    if old is None or "TZ" not in old.schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid(at, spec.schedule, detail))
    elif spec.time_zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(invalid(at, spec.schedule, detail))
    return errors


def _spec(spec: CronJobSpec, old: CronJobSpec | None, ctx: Context) -> list[FieldError]:
    errors = _schedule(spec, old)
    errors += validate_counts(spec, _SPEC, "starting_deadline_seconds")
    if spec.time_zone is not None and (old is None or old.time_zone != spec.time_zone):
        fault = time_zone_fault(spec.time_zone)
        errors += [] if fault is None else [invalid(_SPEC.child("timeZone"), spec.time_zone, fault)]
    errors += check_choice(spec.concurrency_policy, _SPEC.child("concurrencyPolicy"), _POLICIES)
    errors += _template(spec, old, ctx)
    errors += validate_counts(spec, _SPEC, "successful_jobs_history_limit", "failed_jobs_history_limit")
    # Checked by declaration, hence last.
    return errors if spec.schedule else [*errors, required(_SPEC.child("schedule"))]


def _template(spec: CronJobSpec, old: CronJobSpec | None, ctx: Context) -> list[FieldError]:
    at = _SPEC.child("jobTemplate", "spec")
    job = spec.job_template.spec
    errors = validate_job_spec(job, old.job_template.spec if old else None, at, ctx)
    if job.selector is not None:
        errors.append(invalid(at.child("selector"), job.selector, "`selector` will be auto-generated"))
    if job.manual_selector:
        errors.append(not_supported(at.child("manualSelector"), job.manual_selector, ("nil", "false")))
    return errors


def _cron(new: CronJob, old: CronJob | None, ctx: Context) -> list[FieldError]:
    errors = _spec(new.spec, old.spec if old else None, ctx)
    if old is None and size(new.metadata.name) > _NAME_LIMIT:
        detail = f"must be no more than {_NAME_LIMIT} characters"
        errors.append(invalid(METADATA.child("name"), new.metadata.name, detail))
    return errors


def _warnings(new: CronJob, old: CronJob | None, ctx: Context) -> list[str]:
    template = new.spec.job_template.spec.template
    at = _SPEC.child("jobTemplate", "spec", "template")
    warnings = workload_warnings(new.metadata, old.metadata if old else None, template, ctx, at)
    if old is None or "TZ" not in new.spec.schedule:
        return warnings
    return [
        *warnings,
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, "
        "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
    ]


CRON_JOB: Final = kind(dns_subdomain, _cron, status=lambda new, old, ctx: [], warnings=_warnings)
