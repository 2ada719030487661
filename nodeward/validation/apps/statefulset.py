"""Stateful sets: pods with names and claims of their own, whose rules mostly never change once set.

The claims in `volumeClaimTemplates` are volumes of the template's pods, whether or not the template names them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.apps_v1 import StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec
from nodeward.api.context import Context
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.int_or_percent import amount
from nodeward.rules.names import dns_label
from nodeward.validation.apps.counts import (
    validate_at_most_100_percent,
    validate_counts,
    validate_int_or_percent,
    validate_not_decremented,
)
from nodeward.validation.apps.workloads import (
    validate_availability,
    validate_chosen,
    validate_parts,
    validate_restarting,
    validate_selector,
    validate_selector_usable,
    workload_warnings,
)
from nodeward.validation.checks import Fields, check_immutable, check_label, check_not_negative, one_of
from nodeward.validation.kinds import changed, kind
from nodeward.validation.meta.labels import is_empty, is_usable, validate_labels
from nodeward.validation.meta.metadata import (
    validate_annotations,
)
from nodeward.validation.pod.pod import validate_pod_template_spec
from nodeward.validation.pod.volume_claim import validate_claim_spec

_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")
_TEMPLATE: Final = _SPEC.child("template")
_SELECTOR: Final = _SPEC.child("selector")
_RECREATE_GATE: Final = "StatefulSetRecreateStrategy"


def _strategy(spec: StatefulSetSpec, *, may_recreate: bool) -> list[FieldError]:
    at = _SPEC.child("updateStrategy")
    strategy = spec.update_strategy
    rolling = strategy.rolling_update
    known = ["RollingUpdate", "OnDelete", *(["Recreate"] if may_recreate else [])]
    if not strategy.type:
        return [required(at)]
    if strategy.type not in known:
        listed = ", ".join(f"'{name}'" for name in known[:-1])
        listed += f", or '{known[-1]}'" if may_recreate else f" or '{known[-1]}'"
        return [invalid(at, strategy, f"must be {listed}")]
    if rolling is None:
        return []
    if strategy.type != "RollingUpdate":
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        return [invalid(at.child("rollingUpdate"), rolling, detail)]
    at = at.child("rollingUpdate")
    errors = validate_counts(rolling, at, "partition")
    if rolling.max_unavailable is not None:
        at = at.child("maxUnavailable")
        errors += validate_int_or_percent(rolling.max_unavailable, at)
        if amount(rolling.max_unavailable) == 0:
            errors.append(invalid(at, rolling.max_unavailable, "cannot be 0"))
        errors += validate_at_most_100_percent(rolling.max_unavailable, at)
    return errors


_RETENTION: Final = Fields(
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    when_deleted=one_of("Retain", "Delete"),
    when_scaled=one_of("Retain", "Delete"),
)


def _template(spec: StatefulSetSpec) -> PodTemplateSpec:
    """The template as its pods will be: with their claims, and without the names the controller writes itself."""
    claims = {
        claim.metadata.name: Volume(
            name=claim.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim.metadata.name),
        )
        for claim in spec.volume_claim_templates
    }
    kept = [volume for volume in spec.template.spec.volumes if volume.name not in claims]
    pod = msgspec.structs.replace(
        spec.template.spec, subdomain="", hostname="", volumes=[*claims.values(), *kept]
    )
    return msgspec.structs.replace(spec.template, spec=pod)


def _spec(spec: StatefulSetSpec, old: StatefulSetSpec | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    at = _SPEC.child("podManagementPolicy")
    if not spec.pod_management_policy:
        errors.append(required(at))
    elif spec.pod_management_policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid(at, spec.pod_management_policy, "must be 'OrderedReady' or 'Parallel'"))
    may_recreate = ctx.on(_RECREATE_GATE) or (old is not None and old.update_strategy.type == "Recreate")
    errors += _strategy(spec, may_recreate=may_recreate)
    at = _SPEC.child("persistentVolumeClaimRetentionPolicy")
    errors += _RETENTION(spec.persistent_volume_claim_retention_policy, at)
    if old is None:
        for i, claim in enumerate(spec.volume_claim_templates):
            claim_at = _SPEC.child("volumeClaimTemplates").index(i).child("spec")
            errors += validate_claim_spec(claim.spec, claim_at)
    errors += validate_counts(spec, _SPEC, "replicas", "min_ready_seconds")
    if spec.ordinals is not None:
        errors += check_not_negative(spec.ordinals.start, _SPEC.child("ordinals.start"))
    if old is None and spec.service_name:
        errors += check_label(spec.service_name, _SPEC.child("serviceName"))
    errors += validate_selector(spec.selector, _SELECTOR, "statefulset")
    errors += validate_selector_usable(spec.selector, _SELECTOR, "")
    if is_usable(spec.selector):
        errors += _pods(spec, old, ctx)
    return errors + validate_restarting(spec.template, _TEMPLATE, "StatefulSet")


def _pods(spec: StatefulSetSpec, old: StatefulSetSpec | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.selector is None or not is_empty(spec.selector):
        errors += validate_chosen(spec.selector, spec.template, _TEMPLATE)
    # A set whose pods could never be made under today's rules can still be scaled and deleted.
    is_old_broken = old is not None and bool(_spec_of_old(old, ctx))
    if not is_old_broken:
        before = old.template if old else None
        errors += validate_pod_template_spec(_template(spec), _TEMPLATE, ctx, before)
    meta = spec.template.metadata
    errors += validate_labels(meta.labels, _TEMPLATE.child("labels"))
    return errors + validate_annotations(meta.annotations, _TEMPLATE.child("annotations"))


def _spec_of_old(old: StatefulSetSpec, ctx: Context) -> list[FieldError]:
    return validate_pod_template_spec(_template(old), _TEMPLATE, ctx, old.template)


def _rules(new: StatefulSet, old: StatefulSet | None, ctx: Context) -> list[FieldError]:
    return _spec(new.spec, old.spec if old else None, ctx)


def _change(new: StatefulSet, old: StatefulSet, ctx: Context) -> list[FieldError]:
    now, was = new.spec, old.spec
    errors = check_immutable(now.selector, was.selector, _SELECTOR)
    claims = _SPEC.child("volumeClaimTemplates")
    errors += check_immutable(now.volume_claim_templates, was.volume_claim_templates, claims)
    errors += check_immutable(now.service_name, was.service_name, _SPEC.child("serviceName"))
    policy = _SPEC.child("podManagementPolicy")
    return errors + check_immutable(now.pod_management_policy, was.pod_management_policy, policy)


def _counts(new: StatefulSet, old: StatefulSet, ctx: Context) -> list[FieldError]:
    status = new.status
    parts = ("ready_replicas", "current_replicas", "updated_replicas", "available_replicas")
    errors = validate_counts(status, _STATUS, "replicas", *parts, "observed_generation", "collision_count")
    errors += validate_parts(status, status.replicas, _STATUS, *parts)
    return errors + validate_availability(
        status.ready_replicas, status.available_replicas, "status.readyReplicas"
    )


def _collisions(new: StatefulSet, old: StatefulSet, ctx: Context) -> list[FieldError]:
    at = _STATUS.child("collisionCount")
    return validate_not_decremented(new.status.collision_count, old.status.collision_count, at)


def _warnings(new: StatefulSet, old: StatefulSet | None, ctx: Context) -> list[str]:
    before = old.metadata if old else None
    warnings = workload_warnings(new.metadata, before, new.spec.template, ctx, names_pods=False)
    limit = new.spec.revision_history_limit
    if limit is None or limit >= 0:
        return warnings
    return [
        *warnings,
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
    ]


STATEFUL_SET: Final = kind(
    dns_label,
    _rules,
    update=(changed, _rules, _change),
    status=(_counts, changed, _collisions),
    warnings=_warnings,
)
