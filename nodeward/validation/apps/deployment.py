"""Deployments and the replica sets they make."""

from __future__ import annotations

from typing import Final

from nodeward.api.apps_v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from nodeward.api.context import Context
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.int_or_percent import amount
from nodeward.rules.names import dns_subdomain
from nodeward.validation.apps.counts import (
    validate_at_most_100_percent,
    validate_counts,
    validate_int_or_percent,
    validate_not_decremented,
)
from nodeward.validation.apps.workloads import (
    validate_availability,
    validate_parts,
    validate_replica_template,
    validate_selector,
    validate_selector_usable,
    workload_warnings,
)
from nodeward.validation.checks import check_immutable, check_not_negative
from nodeward.validation.kinds import changed, kind

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_TEMPLATE: Final = _SPEC.child("template")
_SELECTOR: Final = _SPEC.child("selector")


def _selected(
    spec: DeploymentSpec | ReplicaSetSpec, old: PodTemplateSpec | None, ctx: Context
) -> list[FieldError]:
    errors = validate_selector(spec.selector, _SELECTOR, "deployment")
    errors += validate_selector_usable(spec.selector, _SELECTOR, "invalid label selector")
    return errors + validate_replica_template(spec.template, old, spec.selector, _TEMPLATE, ctx)


def _rolling(update: RollingUpdateDeployment, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    unavailable, surge = update.max_unavailable, update.max_surge
    at = path.child("maxUnavailable")
    if unavailable is not None:
        errors += validate_int_or_percent(unavailable, at)
    if surge is not None:
        errors += validate_int_or_percent(surge, path.child("maxSurge"))
    if amount(unavailable) == 0 and amount(surge) == 0:
        errors.append(invalid(at, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors if unavailable is None else errors + validate_at_most_100_percent(unavailable, at)


def _strategy(strategy: DeploymentStrategy) -> list[FieldError]:
    path = _SPEC.child("strategy")
    rolling = path.child("rollingUpdate")
    match strategy.type:
        case "Recreate":
            if strategy.rolling_update is None:
                return []
            return [forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")]
        case "RollingUpdate":
            if strategy.rolling_update is None:
                return [required(rolling, "this should be defaulted and never be nil")]
            return _rolling(strategy.rolling_update, rolling)
        case _:
            return [not_supported(path, strategy, ("Recreate", "RollingUpdate"))]


def _deployment(new: Deployment, old: Deployment | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = validate_counts(spec, _SPEC, "replicas")
    errors += _selected(spec, old.spec.template if old else None, ctx)
    errors += _strategy(spec.strategy)
    errors += validate_counts(spec, _SPEC, "min_ready_seconds", "revision_history_limit")
    if spec.progress_deadline_seconds is not None:
        at = _SPEC.child("progressDeadlineSeconds")
        errors += check_not_negative(spec.progress_deadline_seconds, at)
        if spec.progress_deadline_seconds <= spec.min_ready_seconds:
            errors.append(invalid(at, spec.progress_deadline_seconds, "must be greater than minReadySeconds"))
    return errors


def _same_selector(
    new: Deployment | ReplicaSet, old: Deployment | ReplicaSet, ctx: Context
) -> list[FieldError]:
    return check_immutable(new.spec.selector, old.spec.selector, _SELECTOR)


def _deployment_status(new: Deployment, old: Deployment, ctx: Context) -> list[FieldError]:
    status = new.status
    parts = ("updated_replicas", "ready_replicas", "available_replicas")
    counts = ("observed_generation", "replicas", *parts, "unavailable_replicas", "terminating_replicas")
    errors = validate_counts(status, _STATUS, *counts, "collision_count")
    errors += validate_parts(status, status.replicas, _STATUS, *parts)
    errors += validate_availability(status.ready_replicas, status.available_replicas, "readyReplicas")
    at = _STATUS.child("collisionCount")
    return errors + validate_not_decremented(status.collision_count, old.status.collision_count, at)


def _replica_set(new: ReplicaSet, old: ReplicaSet | None, ctx: Context) -> list[FieldError]:
    errors = validate_counts(new.spec, _SPEC, "replicas", "min_ready_seconds")
    return errors + _selected(new.spec, old.spec.template if old else None, ctx)


def _replica_set_status(new: ReplicaSet, old: ReplicaSet, ctx: Context) -> list[FieldError]:
    status = new.status
    parts = ("fully_labeled_replicas", "ready_replicas", "available_replicas")
    counts = ("replicas", *parts, "observed_generation", "terminating_replicas")
    errors = validate_counts(status, _STATUS, *counts)
    errors += validate_parts(status, status.replicas, _STATUS, *parts)
    return errors + validate_availability(status.ready_replicas, status.available_replicas, "readyReplicas")


def _warnings(new: Deployment | ReplicaSet, old: Deployment | ReplicaSet | None, ctx: Context) -> list[str]:
    return workload_warnings(new.metadata, old.metadata if old else None, new.spec.template, ctx)


DEPLOYMENT: Final = kind(
    dns_subdomain,
    _deployment,
    update=(changed, _deployment, _same_selector),
    status=_deployment_status,
    warnings=_warnings,
)
REPLICA_SET: Final = kind(
    dns_subdomain,
    _replica_set,
    update=(changed, _replica_set, _same_selector),
    status=_replica_set_status,
    warnings=_warnings,
)
