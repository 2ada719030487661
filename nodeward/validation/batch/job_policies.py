"""When a job's pod failure counts, when the job has succeeded early, and how its pods are scheduled together."""

from __future__ import annotations

from typing import Final

from nodeward.api.batch_v1 import (
    JobSchedulingConfiguration,
    JobSpec,
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from nodeward.api.context import Context
from nodeward.api.scheduling_v1alpha3 import TopologyConstraint, WorkloadPodGroupResourceClaim
from nodeward.base.fielderror import (
    OMITTED,
    FieldError,
    forbidden,
    invalid,
    quote,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, label_key_faults
from nodeward.validation.batch.indexes import IndexesFault, count_indexes
from nodeward.validation.checks import (
    Distinct,
    Fields,
    check_count,
    check_each,
    check_not_negative,
    check_one_of,
    check_qualified,
    check_size,
    check_subdomain,
    named,
)
from nodeward.validation.meta.unions import validate_exactly_one

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")
_RULES_LIMIT: Final = 20
_EXIT_CODES_LIMIT: Final = 255
_INDEXES_LIMIT: Final = 64 * 1024
_CLAIMS_LIMIT: Final = 4


def _choice(value: str, path: FieldPath, values: tuple[str, ...]) -> list[FieldError]:
    if value:
        return check_one_of(value, path, values)
    return [required(path, f"valid values: [{' '.join(quote(each) for each in values)}]")]


def validate_pod_failure_policy(policy: PodFailurePolicy, spec: JobSpec, path: FieldPath) -> list[FieldError]:
    at = path.child("rules")
    errors = check_count(policy.rules, at, _RULES_LIMIT)
    pod = spec.template.spec
    names = {container.name for container in (*pod.containers, *pod.init_containers)}
    for i, rule in enumerate(policy.rules):
        errors += _failure_rule(rule, spec, names, at.index(i))
    return errors


def _failure_rule(
    rule: PodFailurePolicyRule, spec: JobSpec, names: set[str], path: FieldPath
) -> list[FieldError]:
    at = path.child("action")
    errors = _choice(rule.action, at, _ACTIONS)
    if rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
        errors.append(invalid(at, rule.action, "requires the backoffLimitPerIndex to be set"))
    codes, conditions = rule.on_exit_codes, rule.on_pod_conditions
    if codes is not None:
        errors += _exit_codes(codes, names, path.child("onExitCodes"))
    errors += _conditions(conditions, path.child("onPodConditions"))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(invalid(path, OMITTED, detail))
    if codes is None and not conditions:
        errors.append(invalid(path, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _exit_codes(
    codes: PodFailurePolicyOnExitCodesRequirement, names: set[str], path: FieldPath
) -> list[FieldError]:
    errors = _choice(codes.operator, path.child("operator"), ("In", "NotIn"))
    if codes.container_name is not None and codes.container_name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(path.child("containerName"), codes.container_name, detail))
    at, values = path.child("values"), codes.values
    if not values:
        errors.append(invalid(at, values, "at least one value is required"))
    errors += check_count(values, at, _EXIT_CODES_LIMIT)
    seen = Distinct()
    for i, value in enumerate(values):
        if codes.operator == "In" and value == 0:
            errors.append(invalid(at.index(i), value, "must not be 0 for the In operator"))
        errors += seen.add(value, at.index(i))
    if values != sorted(values):
        errors.append(invalid(at, values, "must be ordered"))
    return errors


def _conditions(patterns: list[PodFailurePolicyOnPodConditionsPattern], path: FieldPath) -> list[FieldError]:
    errors = check_count(patterns, path, _RULES_LIMIT)
    for i, pattern in enumerate(patterns):
        at = path.index(i)
        errors += check_qualified(pattern.type, at.child("type"))
        errors += _choice(pattern.status, at.child("status"), _STATUSES)
    return errors


def validate_success_policy(
    rules: list[SuccessPolicyRule], completions: int, path: FieldPath
) -> list[FieldError]:
    at = path.child("rules")
    errors: list[FieldError] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(at, detail))
    errors += check_count(rules, at, _RULES_LIMIT)
    for i, rule in enumerate(rules):
        errors += _success_rule(rule, completions, at.index(i))
    return errors


def _success_rule(rule: SuccessPolicyRule, completions: int, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    indexes, count = rule.succeeded_indexes, rule.succeeded_count
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(required(path, detail))
    named = 0
    if indexes is not None:
        at = path.child("succeededIndexes")
        errors += check_size(indexes, at, _INDEXES_LIMIT)
        try:
            named = count_indexes(indexes, completions)
        except IndexesFault as fault:
            errors.append(invalid(at, indexes, f"error parsing succeededIndexes: {fault}"))
    if count is not None:
        at = path.child("succeededCount")
        errors += check_not_negative(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(at, count, detail))
        if indexes is not None and count > named:
            where = "(the number of indexes in the specified succeededIndexes field)"
            errors.append(invalid(at, count, f"must be less than or equal to {named} {where}"))
    return errors


_TOPOLOGY: Final = Fields(TopologyConstraint, key=named(label_key_faults))


def validate_job_scheduling(
    scheduling: JobSchedulingConfiguration | None, parallelism: int, path: FieldPath, ctx: Context
) -> list[FieldError]:
    """Scheduling a job's pods as a group, an alpha feature."""
    if scheduling is None:
        return []
    if not ctx.on("WorkloadWithJob"):
        return [forbidden(path, "")]
    errors: list[FieldError] = []
    policy, mode = scheduling.scheduling_policy, scheduling.disruption_mode
    at = path.child("schedulingPolicy")
    if policy is not None:
        members = {"basic": policy.basic is not None, "gang": policy.gang is not None}
        errors += validate_exactly_one(at, members)
        count = policy.gang.min_count if policy.gang is not None else None
        if count is not None and count < 1:
            errors.append(invalid(at.child("gang", "minCount"), count, "must be greater than or equal to 1"))
        if count is not None and count > parallelism:
            detail = f"must not be greater than parallelism ({parallelism})"
            errors.append(invalid(at.child("gang", "minCount"), count, detail))
    if scheduling.scheduling_constraints is not None:
        at, topology = (
            path.child("schedulingConstraints", "topology"),
            scheduling.scheduling_constraints.topology,
        )
        errors += check_count(topology, at, 1) + check_each(topology, at, _TOPOLOGY)
    if mode is not None:
        members = {"single": mode.single is not None, "all": mode.all is not None}
        errors += validate_exactly_one(path.child("disruptionMode"), members)
    return errors + _claims(scheduling.resource_claims, path.child("resourceClaims"))


_CLAIM: Final = Fields(
    WorkloadPodGroupResourceClaim,
    name=named(dns_label),
    resource_claim_name=check_subdomain,
    resource_claim_template_name=check_subdomain,
)


def _claims(claims: list[WorkloadPodGroupResourceClaim], path: FieldPath) -> list[FieldError]:
    if errors := check_count(claims, path, _CLAIMS_LIMIT):
        return errors
    names = Distinct()
    for i, claim in enumerate(claims):
        at = path.index(i)
        errors += names.add(claim.name, at, {"name": claim.name})
        members = {
            "resourceClaimName": claim.resource_claim_name is not None,
            "resourceClaimTemplateName": claim.resource_claim_template_name is not None,
        }
        errors += validate_exactly_one(at, members) + _CLAIM(claim, at)
    return errors
