"""Daemon sets, and the controller revisions that daemon and stateful sets keep their history in."""

from __future__ import annotations

from typing import Final

from nodeward.api.apps_v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.int_or_percent import amount
from nodeward.rules.names import dns_subdomain
from nodeward.validation.apps.counts import (
    validate_at_most_100_percent,
    validate_counts,
    validate_int_or_percent,
    validate_not_decremented,
)
from nodeward.validation.apps.workloads import validate_chosen, validate_restarting, workload_warnings
from nodeward.validation.checks import check_immutable, check_not_negative
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.labels import (
    has_invalid_label_value,
    is_empty,
    is_usable,
    validate_label_selector,
)
from nodeward.validation.pod.pod import validate_pod_template_spec

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_TEMPLATE: Final = _SPEC.child("template")
_SELECTOR: Final = _SPEC.child("selector")


def _rolling(update: RollingUpdateDaemonSet, path: FieldPath) -> list[FieldError]:
    fields = (("maxUnavailable", update.max_unavailable), ("maxSurge", update.max_surge))
    errors: list[FieldError] = []
    for check in (validate_int_or_percent, validate_at_most_100_percent):
        for field, value in fields:
            if value is not None:
                errors += check(value, path.child(field))
    unavailable, surge = amount(update.max_unavailable) != 0, amount(update.max_surge) != 0
    if unavailable and surge:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(path.child("maxSurge"), update.max_surge, detail))
    if not unavailable and not surge:
        errors.append(required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors


def _strategy(strategy: DaemonSetUpdateStrategy) -> list[FieldError]:
    path = _SPEC.child("updateStrategy")
    match strategy.type:
        case "OnDelete":
            return []
        case "RollingUpdate":
            if strategy.rolling_update is None:
                return [required(path.child("rollingUpdate"))]
            return _rolling(strategy.rolling_update, path.child("rollingUpdate"))
        case _:
            return [not_supported(path, strategy, ("RollingUpdate", "OnDelete"))]


def _daemon_set(spec: DaemonSetSpec, old: DaemonSetSpec | None, ctx: Context) -> list[FieldError]:
    lenient = has_invalid_label_value(old.selector) if old else False
    errors = validate_label_selector(spec.selector, _SELECTOR, allow_invalid_values=lenient)
    if is_usable(spec.selector):
        errors += validate_chosen(spec.selector, spec.template, _TEMPLATE)
    if spec.selector is not None and is_empty(spec.selector):
        errors.append(invalid(_SELECTOR, spec.selector, "empty selector is invalid for daemonset"))
    errors += validate_pod_template_spec(spec.template, _TEMPLATE, ctx, old.template if old else None)
    errors += validate_restarting(spec.template, _TEMPLATE, "DaemonSet")
    errors += validate_counts(spec, _SPEC, "min_ready_seconds")
    return errors + _strategy(spec.update_strategy) + validate_counts(spec, _SPEC, "revision_history_limit")


def _rules(new: DaemonSet, old: DaemonSet | None, ctx: Context) -> list[FieldError]:
    return _daemon_set(new.spec, old.spec if old else None, ctx)


def _same_selector(new: DaemonSet, old: DaemonSet, ctx: Context) -> list[FieldError]:
    return check_immutable(new.spec.selector, old.spec.selector, _SELECTOR)


def _status(new: DaemonSet, old: DaemonSet, ctx: Context) -> list[FieldError]:
    counts = (
        "current_number_scheduled",
        "number_misscheduled",
        "desired_number_scheduled",
        "number_ready",
        "observed_generation",
        "updated_number_scheduled",
        "number_available",
        "number_unavailable",
        "collision_count",
    )
    at = _STATUS.child("collisionCount")
    errors = validate_counts(new.status, _STATUS, *counts)
    return errors + validate_not_decremented(new.status.collision_count, old.status.collision_count, at)


def _warnings(new: DaemonSet, old: DaemonSet | None, ctx: Context) -> list[str]:
    if old is not None and old.spec.template == new.spec.template:
        return []
    return workload_warnings(new.metadata, None, new.spec.template, ctx, names_pods=False)


def _revision(new: ControllerRevision, old: ControllerRevision | None, ctx: Context) -> list[FieldError]:
    errors, at = check_not_negative(new.revision, ROOT.child("revision")), ROOT.child("data")
    if old is not None:
        return errors + check_immutable(new.data, old.data, at)
    if new.data is None:
        return [*errors, required(at, "data is mandatory")]
    return (
        errors if isinstance(new.data, dict) else [*errors, required(at, "data must be a valid JSON object")]
    )


DAEMON_SET: Final = kind(
    dns_subdomain, _rules, update=(changed, _same_selector, _rules), status=_status, warnings=_warnings
)
CONTROLLER_REVISION: Final = kind(
    dns_subdomain, _revision, update=(changed, made(dns_subdomain, namespaced=True), _revision)
)
