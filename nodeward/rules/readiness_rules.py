"""What a readiness rule asks of a node now: put its taint on, take it off, or leave the node as it is.

In go rules and one node, as they are; out come findings, decisions and the patches that carry them out. The rules are
node-readiness-controller's: a condition that is absent counts as its default (Unknown unless the rule says otherwise),
a taint is known by key and effect, and a node that passed a bootstrap-only rule has an annotation that says so, which
is written together with the removal of the taint.

What must stay true: nothing is done about nodes a rule does not select, except that a node which leaves the selector
loses the taint that this rule put on it. Unlike upstream, where it keeps it for ever. Of two rules that own the same
taint on one node the one that holds the node wins, so that the taint does not come and go.

Called by the API server, controllers, validation and other rules; calls `selector_overlap`, `selectors` and `taints`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.api.readiness_v1alpha1 import (
    ConditionEvaluationResult,
    ConditionRequirement,
    NodeReadinessRule,
)
from nodeward.rules.selector_overlap import overlap
from nodeward.rules.selectors import EVERYTHING, LabelRequirements, SelectorError, from_label_selector
from nodeward.rules.taints import is_same, without

ALL_OF: Final = "allOf"
ANY_OF: Final = "anyOf"
BOOTSTRAP_ONLY: Final = "bootstrap-only"
CONTINUOUS: Final = "continuous"
FINALIZER: Final = "readiness.node.x-k8s.io/cleanup-taints"
COMPLETED_PREFIX: Final = "readiness.k8s.io/bootstrap-completed-"
UNKNOWN: Final = "Unknown"


class RuleAction(Enum):
    """What is to be done to a node."""

    NOTHING = "nothing"
    ADD = "add"
    REMOVE = "remove"
    #: only the annotation: the node is ready and has no taint
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, ready to be asked."""

    name: str
    uid: str
    selector: LabelRequirements
    requirements: tuple[ConditionRequirement, ...]
    needs_one: bool
    taint: Taint
    is_bootstrap: bool
    is_dry_run: bool
    #: it is being deleted: its taints go, whatever the nodes report
    is_leaving: bool
    #: its finalizer is there, so that no taint outlives it
    is_guarded: bool

    @property
    def changes_nodes(self) -> bool:
        return self.is_leaving or (self.is_guarded and not self.is_dry_run)

    def selects(self, node: Node) -> bool:
        return self.selector.matches(node.metadata.labels)


@dataclass(frozen=True, slots=True)
class Finding:
    """How a node stands with a rule."""

    results: tuple[ConditionEvaluationResult, ...]
    is_satisfied: bool
    #: conditions the node does not report
    missing: int
    has_taint: bool
    #: the node passed this bootstrap-only rule once
    is_completed: bool
    #: types of the conditions that are not as they must be
    unsatisfied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleDecision:
    """What a rule wants of a node. No finding: the node is none of its nodes any more."""

    rule: Rule
    finding: Finding | None
    action: RuleAction


def compiled(rule: NodeReadinessRule) -> Rule:
    """Compile a rule. Raises `SelectorError` for an invalid selector."""
    spec, meta = rule.spec, rule.metadata
    return Rule(
        name=meta.name,
        uid=meta.uid,
        selector=_selector(rule),
        requirements=tuple(spec.conditions),
        needs_one=spec.condition_policy == ANY_OF,
        taint=spec.taint,
        is_bootstrap=spec.enforcement_mode == BOOTSTRAP_ONLY,
        is_dry_run=spec.dry_run,
        is_leaving=meta.deletion_timestamp is not None,
        is_guarded=FINALIZER in meta.finalizers,
    )


def _selector(rule: NodeReadinessRule) -> LabelRequirements:
    return from_label_selector(rule.spec.node_selector) or EVERYTHING


def has_taint(rule: Rule, node: Node) -> bool:
    return any(is_same(rule.taint, each) for each in node.spec.taints)


def find(rule: Rule, node: Node) -> Finding:
    """Return how the node stands with the rule, whether or not it is one of its nodes."""
    reported = {each.type: each.status for each in node.status.conditions}
    results: list[ConditionEvaluationResult] = []
    unsatisfied: list[str] = []
    for each in rule.requirements:
        default = each.default_status or UNKNOWN
        if reported.get(each.type, default) != each.required_status:
            unsatisfied.append(each.type)
        results.append(
            ConditionEvaluationResult(
                type=each.type,
                current_status=reported.get(each.type) or UNKNOWN,
                required_status=each.required_status,
                default_status=default,
            )
        )
    annotations = node.metadata.annotations
    return Finding(
        results=tuple(results),
        is_satisfied=not unsatisfied or (rule.needs_one and len(unsatisfied) < len(results)),
        missing=sum(each.type not in reported for each in rule.requirements),
        has_taint=has_taint(rule, node),
        is_completed=rule.is_bootstrap
        and any(f"{COMPLETED_PREFIX}{suffix}" in annotations for suffix in (rule.uid, rule.name)),
        unsatisfied=tuple(unsatisfied),
    )


def action_for(rule: Rule, finding: Finding) -> RuleAction:
    """Return what the rule alone would do, dry run or not."""
    if rule.is_leaving:
        return RuleAction.REMOVE if finding.has_taint else RuleAction.NOTHING
    if finding.is_satisfied:
        if finding.has_taint:
            return RuleAction.REMOVE
        is_news = rule.is_bootstrap and not finding.is_completed
        return RuleAction.COMPLETE if is_news else RuleAction.NOTHING
    return RuleAction.NOTHING if finding.has_taint or finding.is_completed else RuleAction.ADD


def decide(rules: Iterable[Rule], node: Node, was_managed: Callable[[Rule], bool]) -> list[RuleDecision]:
    """Return what the enforcing rules want of this node; `was_managed`: whether a rule had selected it."""
    decisions: list[RuleDecision] = []
    held: list[Taint] = []
    for rule in rules:
        if not rule.changes_nodes:
            continue
        if rule.selects(node):
            finding = find(rule, node)
            decisions.append(RuleDecision(rule, finding, action_for(rule, finding)))
            if not rule.is_leaving and not finding.is_satisfied and not finding.is_completed:
                held.append(rule.taint)
        elif was_managed(rule):
            gone = RuleAction.REMOVE if has_taint(rule, node) else RuleAction.NOTHING
            decisions.append(RuleDecision(rule, None, gone))
    return [
        RuleDecision(each.rule, each.finding, RuleAction.NOTHING)
        if each.action is RuleAction.REMOVE and any(is_same(each.rule.taint, taint) for taint in held)
        else each
        for each in decisions
    ]


def patch_for(decision: RuleDecision, node: Node, now: str) -> dict[str, Any]:
    """Return a merge patch that holds only for the version of the node it was worked out from."""
    rule, meta = decision.rule, node.metadata
    metadata: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    patch: dict[str, Any] = {"metadata": metadata}
    if decision.action is RuleAction.ADD:
        new = Taint(key=rule.taint.key, value=rule.taint.value, effect=rule.taint.effect, time_added=now)
        patch["spec"] = {"taints": [*node.spec.taints, new]}
        return patch
    if decision.action is RuleAction.REMOVE:
        patch["spec"] = {"taints": without(node.spec.taints, rule.taint)}
    if completes(decision):
        metadata["annotations"] = {
            f"{COMPLETED_PREFIX}{rule.uid}": json.dumps({"rule-name": rule.name}, separators=(",", ":"))
        }
    return patch


def completes(decision: RuleDecision) -> bool:
    """Tell whether the node passes a bootstrap-only rule by this, for the first time."""
    rule, finding = decision.rule, decision.finding
    return (
        rule.is_bootstrap
        and not rule.is_leaving
        and finding is not None
        and finding.is_satisfied
        and not finding.is_completed
    )


def conflict(rule: NodeReadinessRule, other: NodeReadinessRule) -> str:
    """Return why the two rules conflict; empty if they do not."""
    mine, theirs = rule.spec.taint, other.spec.taint
    if rule.metadata.name == other.metadata.name or not is_same(mine, theirs):
        return ""
    try:
        is_shared = overlap(_selector(rule), _selector(other))
    except SelectorError:
        is_shared = True
    if not is_shared:
        return ""
    return (
        f"conflicts with existing rule '{other.metadata.name}' - same taint key '{mine.key}' and effect "
        f"'{mine.effect}' with overlapping node selectors"
    )
