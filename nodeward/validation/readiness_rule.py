"""Readiness rules: what node-readiness-controller's schema and webhook refuse, as far as one rule alone tells.

Nothing but `dryRun` can be changed once a rule exists: taints that were set under the old words would be nobody's.
Whether two rules fight over a taint is asked at admission, where the other rules are known.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nodeward.api.codec import same
from nodeward.api.context import Context
from nodeward.api.core_v1.references import Taint
from nodeward.api.readiness_v1alpha1 import (
    ConditionRequirement,
    NodeEvaluation,
    NodeReadinessRule,
    NodeReadinessRuleSpec,
)
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
    required,
    too_few,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, size
from nodeward.rules.readiness_rules import ALL_OF, ANY_OF, BOOTSTRAP_ONLY, CONTINUOUS
from nodeward.validation.checks import (
    Distinct,
    Fields,
    check_count,
    check_distinct,
    check_each,
    check_label_value,
    check_name,
    check_not_negative,
    check_one_of,
    check_present,
    check_size,
    choice,
    one_of,
    unless_empty,
)
from nodeward.validation.kinds import kind
from nodeward.validation.meta.labels import is_empty, validate_label_selector

TAINT_PREFIX: Final = "readiness.k8s.io/"
CONDITIONS_LIMIT: Final = 32
CONDITION_TYPE_LIMIT: Final = 316
STATUS_NODES_LIMIT: Final = 5000
_KEY_LIMIT: Final = 253
_PART_LIMIT: Final = 63
_STATUSES: Final = ("True", "False", "Unknown")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SPEC: Final = ROOT.child("spec")
_STATUS: Final = ROOT.child("status")


def _rule(new: NodeReadinessRule, old: NodeReadinessRule | None, ctx: Context) -> list[FieldError]:
    return _spec(new.spec) + (_bootstrap(new.spec) if old is None else _changes(new.spec, old.spec))


_SPEC_BEGIN: Final = Fields(NodeReadinessRuleSpec, enforcement_mode=choice(BOOTSTRAP_ONLY, CONTINUOUS))


def _spec(spec: NodeReadinessRuleSpec) -> list[FieldError]:
    errors = _conditions(spec) + _SPEC_BEGIN(spec, _SPEC) + _taint(spec.taint, _SPEC.child("taint"))
    at, selector = _SPEC.child("nodeSelector"), spec.node_selector
    errors += validate_label_selector(selector, at)
    if is_empty(selector):
        errors.append(required(at, "nodeSelector must not be empty"))
    return errors + check_one_of(
        spec.condition_policy or None, _SPEC.child("conditionPolicy"), (ALL_OF, ANY_OF)
    )


_CONDITION: Final = Fields(
    ConditionRequirement, required_status=choice(*_STATUSES), default_status=unless_empty(one_of(*_STATUSES))
)


def _conditions(spec: NodeReadinessRuleSpec) -> list[FieldError]:
    path = _SPEC.child("conditions")
    if not spec.conditions:
        return [too_few(path, 0, 1)]
    errors = check_count(spec.conditions, path, CONDITIONS_LIMIT)
    types = Distinct()
    for i, each in enumerate(spec.conditions):
        at = path.index(i)
        errors += check_present(each.type, at.child("type"))
        errors += check_size(each.type, at.child("type"), CONDITION_TYPE_LIMIT)
        errors += types.add(each.type, at, {"type": each.type}) + _CONDITION(each, at)
    return errors


def _taint(taint: Taint, path: FieldPath) -> list[FieldError]:
    errors = check_name(taint.key, path.child("key"), _key_faults)
    at = path.child("value")
    if size(taint.value) > _PART_LIMIT:
        errors.append(invalid(at, taint.value, "taint value length must be at most 63 characters"))
    else:
        # Unlike upstream, whose rule is stored and then fails on every node.
        errors += check_label_value(taint.value, at)
    return errors + check_name(taint.effect, path.child("effect"), _effect_faults)


def _effect_faults(effect: str) -> list[str]:
    listed = ", ".join(f"'{each}'" for each in _EFFECTS)
    return [] if effect in _EFFECTS else [f"taint effect must be one of {listed}"]


def _key_faults(key: str) -> list[str]:
    faults: list[str] = []
    if not key.startswith(TAINT_PREFIX):
        faults.append(f"taint key must start with '{TAINT_PREFIX}'")
    if size(key) > _KEY_LIMIT:
        faults.append(f"taint key length must be at most {_KEY_LIMIT} characters")
    if key.count("/") != 1:
        return [*faults, "taint key must have exactly one '/' separator (prefix/name format)"]
    name = key.partition("/")[2]
    if not 0 < size(name) <= _PART_LIMIT:
        faults.append("taint key name part must be 1-63 characters")
    if not _KEY_NAME.fullmatch(name):
        faults.append(
            "taint key name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
            "with an alphanumeric character"
        )
    return faults


def _bootstrap(spec: NodeReadinessRuleSpec) -> list[FieldError]:
    """A node is let in once and for good: what it may be let in by must be reported, all of it."""
    if spec.enforcement_mode != BOOTSTRAP_ONLY:
        return []
    detail = "defaultStatus should not be used with bootstrap-only enforcementMode"
    errors = [
        forbidden(_SPEC.child("conditions").index(i).child("defaultStatus"), detail)
        for i, each in enumerate(spec.conditions)
        if each.default_status
    ]
    if spec.condition_policy == ANY_OF:
        detail = "anyOf conditionPolicy is not supported with bootstrap-only enforcementMode"
        errors.append(forbidden(_SPEC.child("conditionPolicy"), detail))
    return errors


def _changes(new: NodeReadinessRuleSpec, old: NodeReadinessRuleSpec) -> list[FieldError]:
    errors: list[FieldError] = []

    def fixed(path: FieldPath, mine: Any, before: Any, what: str) -> None:
        if not same(mine, before):
            errors.append(invalid(path, mine, f"{what} is immutable"))

    fixed(_SPEC.child("conditions"), new.conditions, old.conditions, "conditions")
    fixed(_SPEC.child("enforcementMode"), new.enforcement_mode, old.enforcement_mode, "enforcementMode")
    at = _SPEC.child("taint")
    fixed(at.child("key"), new.taint.key, old.taint.key, "taint key")
    fixed(at.child("effect"), new.taint.effect, old.taint.effect, "taint effect")
    fixed(at.child("value"), new.taint.value, old.taint.value, "taint value")
    fixed(_SPEC.child("nodeSelector"), new.node_selector, old.node_selector, "nodeSelector")
    policies = new.condition_policy or ALL_OF, old.condition_policy or ALL_OF
    fixed(_SPEC.child("conditionPolicy"), *policies, "conditionPolicy")
    return errors


_EVALUATION: Final = Fields(NodeEvaluation, taint_status=one_of("Present", "Absent"))


def _status(new: NodeReadinessRule, old: NodeReadinessRule, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    status = new.status
    for field, names in (
        ("appliedNodes", status.applied_nodes),
        ("failedNodes", [each.node_name for each in status.failed_nodes]),
        ("nodeEvaluations", [each.node_name for each in status.node_evaluations]),
    ):
        path = _STATUS.child(field)
        errors += check_count(names, path, STATUS_NODES_LIMIT) + check_distinct(names, path)
    errors += check_each(status.node_evaluations, _STATUS.child("nodeEvaluations"), _EVALUATION)
    errors += check_not_negative(status.observed_generation, _STATUS.child("observedGeneration"))
    if status.dry_run_results is not None:
        errors += check_present(status.dry_run_results.summary, _STATUS.child("dryRunResults", "summary"))
    return errors


def _warnings(new: NodeReadinessRule, old: NodeReadinessRule | None, ctx: Context) -> list[str]:
    """Whoever makes a rule that drives pods off is told; the effect cannot be changed later."""
    if old is not None or new.spec.taint.effect != "NoExecute":
        return []
    if new.spec.enforcement_mode == CONTINUOUS:
        return [
            "CAUTION: NoExecute with continuous mode evicts pods when conditions fail, risking workload disruption. "
            "Consider NoSchedule or bootstrap-only"
        ]
    return [
        "NOTE: NoExecute will evict existing pods without tolerations. Ensure critical system pods have appropriate "
        "tolerations"
    ]


NODE_READINESS_RULE: Final = kind(dns_subdomain, _rule, namespaced=False, status=_status, warnings=_warnings)
