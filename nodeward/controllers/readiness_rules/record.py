"""What one rule found on its nodes, and how that is told in its status.

The record is kept for all nodes; a status lists no more than an object can hold (`EVALUATIONS`, nodes that are held
first: those are what somebody wants explained). What a former controller wrote there is read back once, so that taints
it managed are known to be managed.

What must stay true: a status is written only if something is different from what is there; the time of an evaluation
alone is no difference.

Called by `controller` and `known`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.api.readiness_v1alpha1 import (
    DryRunResults,
    NodeEvaluation,
    NodeFailure,
    NodeReadinessRule,
    NodeReadinessRuleStatus,
)
from nodeward.rules.readiness_rules import Finding
from nodeward.validation.readiness_rule import STATUS_NODES_LIMIT

#: So many nodes are explained in a status.
EVALUATIONS: Final = 1000
_MESSAGE_LIMIT: Final = 10240
PRESENT: Final = "Present"
ABSENT: Final = "Absent"
EVALUATION_ERROR: Final = "EvaluationError"


@dataclass(slots=True)
class RuleRecord:
    """What is known of a rule's nodes."""

    uid: str
    evaluations: dict[str, NodeEvaluation] = field(default_factory=dict)
    failures: dict[str, NodeFailure] = field(default_factory=dict)
    #: nodes this controller itself has looked at
    applied: dict[str, None] = field(default_factory=dict)
    dry_run: DryRunResults | None = None

    @classmethod
    def of(cls, rule: NodeReadinessRule) -> RuleRecord:
        """Return what a rule's status says."""
        status = rule.status
        return cls(
            uid=rule.metadata.uid,
            evaluations={each.node_name: each for each in status.node_evaluations},
            failures={each.node_name: each for each in status.failed_nodes},
        )

    def manages(self, node: str) -> bool:
        """Tell whether the taint on this node is known to be this rule's."""
        known = self.evaluations.get(node)
        return known is not None and known.taint_status == PRESENT

    def knows(self, node: str) -> bool:
        return node in self.evaluations or node in self.failures or node in self.applied

    def prune(self, keeps: Callable[[str], bool]) -> None:
        """Drop nodes that disappeared while this controller was not running."""
        for name in [name for name in (*self.evaluations, *self.failures) if not keeps(name)]:
            self.drop(name)

    def record_evaluation(self, node: str, finding: Finding, now: str, *, has_taint: bool) -> bool:
        """Record an evaluation of the node; tell whether it changed anything."""
        before = self.evaluations.get(node)
        self.evaluations[node] = NodeEvaluation(
            node_name=node,
            condition_results=list(finding.results),
            taint_status=PRESENT if has_taint else ABSENT,
            last_evaluation_time=now,
        )
        is_news = node not in self.applied or self.failures.pop(node, None) is not None or before is None
        self.applied[node] = None
        return (
            is_news
            or before is None
            or before.taint_status != self.evaluations[node].taint_status
            or before.condition_results != self.evaluations[node].condition_results
        )

    def fail(self, node: str, message: str, now: str) -> None:
        self.applied.pop(node, None)
        self.failures[node] = NodeFailure(
            node_name=node,
            reason=EVALUATION_ERROR,
            message=message[:_MESSAGE_LIMIT],
            last_evaluation_time=now,
        )

    def drop(self, node: str) -> bool:
        """Drop a node that is gone or no longer selected; tell whether anything was known of it."""
        was_known = self.knows(node)
        self.evaluations.pop(node, None)
        self.failures.pop(node, None)
        self.applied.pop(node, None)
        return was_known

    def count(self, status: str) -> int:
        return sum(each.taint_status == status for each in self.evaluations.values())

    def status(self, rule: NodeReadinessRule) -> NodeReadinessRuleStatus:
        """Return the whole record as the rule's status."""
        listed = sorted(self.evaluations.values(), key=_held_first)[:EVALUATIONS]
        return NodeReadinessRuleStatus(
            observed_generation=rule.metadata.generation,
            applied_nodes=sorted(self.applied)[:STATUS_NODES_LIMIT],
            failed_nodes=[self.failures[name] for name in sorted(self.failures)[:EVALUATIONS]],
            node_evaluations=sorted(listed, key=lambda each: each.node_name),
            dry_run_results=self.dry_run,
        )


def _held_first(each: NodeEvaluation) -> tuple[bool, str]:
    return each.taint_status != PRESENT, each.node_name


def is_told(new: NodeReadinessRuleStatus, old: NodeReadinessRuleStatus) -> bool:
    """Tell whether a status says already what it should, times aside."""
    return _timeless(new) == _timeless(old)


def _timeless(status: NodeReadinessRuleStatus) -> Mapping[str, Any]:
    return {
        "generation": status.observed_generation,
        "applied": status.applied_nodes,
        "failed": [(each.node_name, each.reason, each.message) for each in status.failed_nodes],
        "evaluations": [
            (each.node_name, each.taint_status, each.condition_results) for each in status.node_evaluations
        ],
        "dryRun": status.dry_run_results,
    }
