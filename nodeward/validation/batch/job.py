"""Jobs: how many pods, how often they may fail, and what of a job may change while it runs.

The selector of a job is made by the API server before the rules are asked; `batch_job_status` has the rules for what
controllers report.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.batch_v1 import Job, JobSpec
from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import Affinity
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import BAD_HTTP_PATH, dns_label, dns_subdomain, http_path
from nodeward.rules.selectors import selects
from nodeward.validation.apps.counts import validate_counts
from nodeward.validation.apps.workloads import validate_chosen, workload_warnings
from nodeward.validation.batch.job_policies import (
    validate_job_scheduling,
    validate_pod_failure_policy,
    validate_success_policy,
)
from nodeward.validation.batch.job_status import is_true, validate_job_status
from nodeward.validation.checks import (
    IMMUTABLE,
    check_immutable,
    check_kept,
    check_one_of,
    check_present,
    check_size,
    check_subdomain,
)
from nodeward.validation.kinds import kind
from nodeward.validation.meta.labels import has_invalid_label_value, is_usable, validate_label_selector
from nodeward.validation.meta.metadata import (
    METADATA,
)
from nodeward.validation.pod.pod import validate_pod_template_spec

_SPEC: Final = ROOT.child("spec")
_MANAGED_BY_LIMIT: Final = 63
_INDEXED_LIMIT: Final = 100_000
_HIGH_COMPLETIONS: Final = 100_000
_HIGH_COMPLETIONS_LIMIT: Final = 10_000
JOB_NAME: Final = "batch.kubernetes.io/job-name"
CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
#: The labels by which a job knows its pods: of its uid, and of its name; the old ones and the prefixed ones.
LEGACY_LABELS: Final = ("controller-uid", "job-name")
LABELS: Final = (CONTROLLER_UID, JOB_NAME)


def _generated_selector(job: Job) -> list[FieldError]:
    """Unless the user made the selector, it and the template's labels are those the server generates."""
    if job.spec.manual_selector or job.spec.selector is None:
        return []
    errors = check_present(job.metadata.uid, METADATA.child("uid"))
    values = (job.metadata.uid, job.metadata.name)
    expected = dict(zip((*LEGACY_LABELS, *LABELS), values * 2, strict=True))
    at = _SPEC.child("template", "metadata", "labels")
    labels = job.spec.template.metadata.labels
    for name, value in expected.items():
        if name not in labels:
            errors.append(required(at.key(name), f"must be '{value}'"))
        elif labels[name] != value:
            errors.append(invalid(at.key(name), labels, f"must be '{value}'"))
    if is_usable(job.spec.selector) and not selects(job.spec.selector, expected):
        errors.append(invalid(_SPEC.child("selector"), job.spec.selector, "`selector` not auto-generated"))
    return errors


def _hostnames(job: Job) -> list[FieldError]:
    """The pods of an indexed job are called after it; the last one has the longest name."""
    if job.spec.completion_mode != "Indexed" or not job.spec.completions or job.spec.completions < 0:
        return []
    longest = f"{job.metadata.name}-{job.spec.completions - 1}"
    if not dns_label(longest):
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [invalid(METADATA.child("name"), job.metadata.name, detail)]


def validate_job_spec(spec: JobSpec, old: JobSpec | None, path: FieldPath, ctx: Context) -> list[FieldError]:
    """What holds for a job and for the jobs a cron job makes alike: all but the selector."""
    errors = validate_counts(
        spec,
        path,
        "parallelism",
        "completions",
        "active_deadline_seconds",
        "backoff_limit",
        "ttl_seconds_after_finished",
        "backoff_limit_per_index",
        "max_failed_indexes",
    )
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        errors.append(required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    if spec.managed_by is not None:
        errors += _managed_by(spec.managed_by, path.child("managedBy"))
    errors += _completion_mode(spec, path)
    if spec.pod_failure_policy is not None:
        errors += validate_pod_failure_policy(spec.pod_failure_policy, spec, path.child("podFailurePolicy"))
    if spec.success_policy is not None:
        at = path.child("successPolicy")
        if spec.completion_mode != "Indexed":
            errors.append(invalid(at, spec.success_policy, "requires indexed completion mode"))
        else:
            errors += validate_success_policy(spec.success_policy.rules, spec.completions or 0, at)
    errors += _replacement(spec, path.child("podReplacementPolicy"))
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    errors += validate_job_scheduling(spec.scheduling, parallelism, path.child("scheduling"), ctx)
    before = old.template if old else None
    errors += validate_pod_template_spec(spec.template, path.child("template"), ctx, before)
    return errors + _restart(spec, path.child("template", "spec", "restartPolicy"))


def _managed_by(name: str, path: FieldPath) -> list[FieldError]:
    host, slash, rest = name.partition("/")
    if not name:
        return [required(path)]
    errors: list[FieldError] = []
    if not slash or not host or not rest:
        errors.append(invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        errors += check_subdomain(host, path)
        if not http_path(rest):
            errors.append(invalid(path, rest, BAD_HTTP_PATH))
    return errors + check_size(name, path, _MANAGED_BY_LIMIT)


def _completion_mode(spec: JobSpec, path: FieldPath) -> list[FieldError]:
    mode = spec.completion_mode
    errors = check_one_of(mode, path.child("completionMode"), ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        errors += _indexed(spec, path)
    if mode in (None, "NonIndexed"):
        detail = "requires indexed completion mode"
        for field, value in (
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ):
            if value is not None:
                errors.append(invalid(path.child(field), value, detail))
    return errors


def _indexed(spec: JobSpec, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    completions, parallelism, failed = spec.completions, spec.parallelism, spec.max_failed_indexes
    parallel_at, failed_at = path.child("parallelism"), path.child("maxFailedIndexes")
    if completions is None:
        errors.append(required(path.child("completions"), "when completion mode is Indexed"))
    if parallelism is not None and parallelism > _INDEXED_LIMIT:
        detail = f"must be less than or equal to {_INDEXED_LIMIT} when completion mode is Indexed"
        errors.append(invalid(parallel_at, parallelism, detail))
    if completions is not None and failed is not None and failed > completions:
        errors.append(invalid(failed_at, failed, "must be less than or equal to completions"))
    if failed is not None and failed > _INDEXED_LIMIT:
        errors.append(invalid(failed_at, failed, f"must be less than or equal to {_INDEXED_LIMIT}"))
    if completions is None or completions <= _HIGH_COMPLETIONS or spec.backoff_limit_per_index is None:
        return errors
    detail = (
        f"must be less than or equal to {_HIGH_COMPLETIONS_LIMIT} when completions are above "
        f"{_HIGH_COMPLETIONS} and used with backoff limit per index"
    )
    if failed is None:
        missing = f"must be specified when completions is above {_HIGH_COMPLETIONS}"
        errors.append(required(failed_at, missing))
    if parallelism is not None and parallelism > _HIGH_COMPLETIONS_LIMIT:
        errors.append(invalid(parallel_at, parallelism, detail))
    if failed is not None and failed > _HIGH_COMPLETIONS_LIMIT:
        errors.append(invalid(failed_at, failed, detail))
    return errors


def _replacement(spec: JobSpec, path: FieldPath) -> list[FieldError]:
    policy = spec.pod_replacement_policy
    known = ("Failed",) if spec.pod_failure_policy is not None else ("Failed", "TerminatingOrFailed")
    return [] if policy is None or policy in known else [not_supported(path, policy, known)]


def _restart(spec: JobSpec, path: FieldPath) -> list[FieldError]:
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.pod_failure_policy is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _with_selector(job: Job, old: Job | None, ctx: Context) -> list[FieldError]:
    spec = job.spec
    errors = validate_job_spec(spec, old.spec if old else None, _SPEC, ctx)
    at = _SPEC.child("selector")
    if spec.selector is None:
        errors.append(required(at))
    lenient = has_invalid_label_value(old.spec.selector) if old else False
    errors += validate_label_selector(spec.selector, at, allow_invalid_values=lenient)
    if is_usable(spec.selector):
        errors += validate_chosen(spec.selector, spec.template, _SPEC.child("template"))
    return errors


def _job(new: Job, old: Job | None, ctx: Context) -> list[FieldError]:
    errors = (
        _with_selector(new, old, ctx) if old else _generated_selector(new) + _with_selector(new, None, ctx)
    )
    return errors + (_changes(new, old, ctx) if old else []) + _hostnames(new)


def _changes(new: Job, old: Job, ctx: Context) -> list[FieldError]:
    now, was = new.spec, old.spec
    errors = _completions_change(now, was)
    errors += check_immutable(now.selector, was.selector, _SPEC.child("selector"))
    errors += _template_change(new, old, ctx)
    for field, value, before in (
        ("completionMode", now.completion_mode, was.completion_mode),
        ("podFailurePolicy", now.pod_failure_policy, was.pod_failure_policy),
        ("backoffLimitPerIndex", now.backoff_limit_per_index, was.backoff_limit_per_index),
        ("managedBy", now.managed_by, was.managed_by),
        ("successPolicy", now.success_policy, was.success_policy),
    ):
        errors += check_immutable(value, before, _SPEC.child(field))
    return errors + _scheduling_change(now, was)


def _completions_change(new: JobSpec, old: JobSpec) -> list[FieldError]:
    at = _SPEC.child("completions")
    if new.completions == old.completions:
        return []
    if new.completion_mode != "Indexed":
        return [invalid(at, new.completions, IMMUTABLE)]
    if new.completions is None or new.completions == new.parallelism:
        return []
    return [invalid(at, new.completions, "can only be modified in tandem with spec.parallelism")]


def _scheduling_change(new: JobSpec, old: JobSpec) -> list[FieldError]:
    path = _SPEC.child("scheduling")
    if new.scheduling is None or old.scheduling is None:
        verb = "set once created" if old.scheduling is None else "cleared once set"
        return [] if new.scheduling is old.scheduling else [invalid(path, None, f"field cannot be {verb}")]
    now, was = new.scheduling, old.scheduling
    errors: list[FieldError] = []
    policy, before = now.scheduling_policy, was.scheduling_policy
    if policy is not None and before is not None and (policy.basic is None) != (before.basic is None):
        detail = (
            "the basic/gang policy variant is immutable after creation; "
            "only schedulingPolicy.gang.minCount may be updated"
        )
        errors.append(invalid(path.child("schedulingPolicy"), None, detail))
    for field, value, kept in (
        ("schedulingConstraints", now.scheduling_constraints, was.scheduling_constraints),
        ("disruptionMode", now.disruption_mode, was.disruption_mode),
        ("resourceClaims", now.resource_claims, was.resource_claims),
    ):
        errors += check_kept(value, kept, path.child(field))
    return errors


def _is_at_rest(job: Job) -> bool:
    """Suspended, and no pod runs on the old template."""
    never_ran = job.status.start_time is None or is_true(job, "Suspended")
    return bool(job.spec.suspend) and never_ran and job.status.active == 0


def _template_change(new: Job, old: Job, ctx: Context) -> list[FieldError]:
    at = _SPEC.child("template")
    now, was = new.spec.template, old.spec.template
    if ctx.on("MutableSchedulingDirectivesForSuspendedJobs"):
        may_move = _is_at_rest(old)
    else:
        may_move = bool(old.spec.suspend) and old.status.start_time is None
    if may_move:
        was = _moved(was, now)
    if old.spec.suspend and ctx.on("MutablePodResourcesForSuspendedJobs") and _is_at_rest(old):
        resized = msgspec.structs.replace(
            was.spec,
            containers=_resized(was.spec.containers, now.spec.containers),
            init_containers=_resized(was.spec.init_containers, now.spec.init_containers),
        )
        return check_immutable(now.spec, resized, at.child("spec"))
    return check_immutable(now, was, at)


def _moved(old: PodTemplateSpec, new: PodTemplateSpec) -> PodTemplateSpec:
    """The old template with the new one's word on where its pods go."""
    node_affinity = new.spec.affinity.node_affinity if new.spec.affinity else None
    affinity = old.spec.affinity
    if affinity is not None:
        affinity = msgspec.structs.replace(affinity, node_affinity=node_affinity)
        if new.spec.affinity is None and affinity == Affinity():
            affinity = None
    elif new.spec.affinity is not None:
        affinity = Affinity(node_affinity=node_affinity)
    spec = msgspec.structs.replace(
        old.spec,
        affinity=affinity,
        node_selector=new.spec.node_selector,
        tolerations=new.spec.tolerations,
        scheduling_gates=new.spec.scheduling_gates,
    )
    meta = msgspec.structs.replace(
        old.metadata, labels=new.metadata.labels, annotations=new.metadata.annotations
    )
    return msgspec.structs.replace(old, metadata=meta, spec=spec)


def _resized(old: list[Container], new: list[Container]) -> list[Container]:
    if len(old) != len(new):
        return old
    return [
        msgspec.structs.replace(was, resources=now.resources) if was.name == now.name else was
        for was, now in zip(old, new, strict=True)
    ]


def _warnings(new: Job, old: Job | None, ctx: Context) -> list[str]:
    return workload_warnings(new.metadata, old.metadata if old else None, new.spec.template, ctx)


JOB: Final = kind(dns_subdomain, _job, status=validate_job_status, warnings=_warnings)
