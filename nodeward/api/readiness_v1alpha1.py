"""Readiness rules, the form node-readiness-controller gave them: readiness.node.x-k8s.io/v1alpha1.

A rule says which conditions nodes must report, and which taint they carry until they do. The shapes are those of that
project's CustomResourceDefinition; `podsHeld` and `podsEvicted` of a dry run are ours.
"""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import Taint
from nodeward.api.fields import (
    REQUIRED,
    Int32,
    Int64,
    KubeStruct,
    ListMap,
    OneOf,
    Time,
    always,
    always_list,
    nested,
)
from nodeward.api.meta import KubeObject, LabelSelector


class ConditionRequirement(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    required_status: Annotated[str, REQUIRED, OneOf("True", "False", "Unknown")] = always("")
    default_status: Annotated[str, OneOf("True", "False", "Unknown")] = ""


class NodeReadinessRuleSpec(KubeStruct):
    conditions: Annotated[list[ConditionRequirement], REQUIRED, ListMap("type")] = always_list()
    enforcement_mode: Annotated[str, REQUIRED, OneOf("bootstrap-only", "continuous")] = always("")
    taint: Annotated[Taint, REQUIRED] = nested(Taint)
    node_selector: Annotated[LabelSelector, REQUIRED] = nested(LabelSelector)
    condition_policy: Annotated[str, OneOf("allOf", "anyOf")] = ""
    dry_run: bool = False


class NodeFailure(KubeStruct):
    node_name: Annotated[str, REQUIRED] = always("")
    reason: str = ""
    message: str = ""
    last_evaluation_time: Annotated[Time | None, REQUIRED] = None


class ConditionEvaluationResult(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    current_status: Annotated[str, REQUIRED, OneOf("True", "False", "Unknown")] = always("")
    required_status: Annotated[str, REQUIRED, OneOf("True", "False", "Unknown")] = always("")
    default_status: Annotated[str, OneOf("True", "False", "Unknown")] = ""


class NodeEvaluation(KubeStruct):
    node_name: Annotated[str, REQUIRED] = always("")
    # Unlike upstream: owned whole, or managedFields of a big cluster would be larger than what they are about.
    condition_results: Annotated[list[ConditionEvaluationResult], REQUIRED] = always_list()
    taint_status: Annotated[str, REQUIRED, OneOf("Present", "Absent")] = always("")
    last_evaluation_time: Annotated[Time | None, REQUIRED] = None


class AffectedPod(KubeStruct):
    namespace: str = ""
    name: Annotated[str, REQUIRED] = always("")
    node_name: str = ""
    after_seconds: Int64 | None = None


class AffectedPods(KubeStruct):
    count: Annotated[Int32, REQUIRED] = always(0)
    pods: list[AffectedPod] = []


class DryRunResults(KubeStruct):
    affected_nodes: Int32 | None = None
    taints_to_add: Int32 | None = None
    taints_to_remove: Int32 | None = None
    risky_operations: Int32 | None = None
    summary: Annotated[str, REQUIRED] = always("")
    pods_held: AffectedPods | None = None
    pods_evicted: AffectedPods | None = None


class NodeReadinessRuleStatus(KubeStruct):
    observed_generation: Int64 = 0
    applied_nodes: list[str] = []
    failed_nodes: list[NodeFailure] = []
    node_evaluations: list[NodeEvaluation] = []
    dry_run_results: DryRunResults | None = None


class NodeReadinessRule(KubeObject):
    spec: NodeReadinessRuleSpec = nested(NodeReadinessRuleSpec)
    status: NodeReadinessRuleStatus = nested(NodeReadinessRuleStatus)
