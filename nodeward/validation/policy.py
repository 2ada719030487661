"""Disruption budgets, and the eviction that asks them."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.policy_v1 import Eviction, PodDisruptionBudget
from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import path_segment_name
from nodeward.validation.apps.counts import (
    validate_at_most_100_percent,
    validate_counts,
    validate_int_or_percent,
)
from nodeward.validation.checks import check_one_of
from nodeward.validation.kinds import kind
from nodeward.validation.meta.conditions import validate_conditions
from nodeward.validation.meta.labels import has_invalid_label_value, validate_label_selector
from nodeward.validation.meta.metadata import validate_metadata

_SPEC: Final = ROOT.child("spec")


def _spec(new: PodDisruptionBudget, old: PodDisruptionBudget | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors: list[FieldError] = []
    if spec.min_available is not None and spec.max_unavailable is not None:
        errors.append(invalid(_SPEC, spec, "minAvailable and maxUnavailable cannot be both set"))
    for field, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if value is not None:
            errors += validate_int_or_percent(value, _SPEC.child(field))
            errors += validate_at_most_100_percent(value, _SPEC.child(field))
    is_lenient = old is not None and has_invalid_label_value(old.spec.selector)
    errors += validate_label_selector(spec.selector, _SPEC.child("selector"), allow_invalid_values=is_lenient)
    at = _SPEC.child("unhealthyPodEvictionPolicy")
    return errors + check_one_of(spec.unhealthy_pod_eviction_policy, at, ("AlwaysAllow", "IfHealthyBudget"))


def _create(new: PodDisruptionBudget, old: None, ctx: Context) -> list[FieldError]:
    # The metadata of a budget is looked at only when its spec is sound, as upstream does where a kind has no
    # rules for its metadata beyond those of every object.
    return _spec(new, None, ctx) or validate_metadata(new.metadata, path_segment_name, namespaced=True)


def _status(new: PodDisruptionBudget, old: PodDisruptionBudget, ctx: Context) -> list[FieldError]:
    at = ROOT.child("status")
    errors = validate_conditions(new.status.conditions, at.child("conditions"))
    counts = ("disruptions_allowed", "current_healthy", "desired_healthy", "expected_pods")
    return errors + validate_counts(new.status, at, *counts)


def validate_eviction(eviction: Eviction) -> list[FieldError]:
    """An eviction deletes a pod that can be read; it is no way to force out one that cannot."""
    options = eviction.delete_options
    if options is not None and options.ignore_store_read_error_with_cluster_breaking_potential:
        at = ROOT.child("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential")
        return [invalid(at, True, "can not be set for pod eviction, try after removing the option")]
    return []


POD_DISRUPTION_BUDGET: Final = kind(path_segment_name, _spec, create=(_create,), status=_status)
