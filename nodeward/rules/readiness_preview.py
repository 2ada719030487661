"""What a readiness rule would do to a cluster, nodes and pods, if it were in force now.

In go a rule, all nodes and all pods; out comes who would be touched. "Now" is meant literally: conditions may change
between a preview and the day the rule is made.

* A pod is *evicted* if it is on a node that would get a NoExecute taint, and does not tolerate it, or only for some
  seconds. What has ended or is being deleted anyway does not count.
* A pod is *held* if it does not tolerate the taint, which is NoSchedule or NoExecute, and either waits for a node and
  would accept one of the nodes that would get it (by its node selector and node affinity; resources are not asked),
  or is on one of them and could not be placed there again.
* PreferNoSchedule neither holds nor evicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.references import Taint
from nodeward.api.readiness_v1alpha1 import AffectedPod, AffectedPods, DryRunResults
from nodeward.rules.affinity import fits_node
from nodeward.rules.readiness_rules import Finding, Rule, RuleAction, action_for, find
from nodeward.rules.taints import NO_EXECUTE, blocking_taint, seconds_until_eviction

#: So many pods of each sort are named in a status; all are counted.
NAMED_PODS: Final = 100


@dataclass(frozen=True, slots=True)
class NodeForecast:
    """One node of the rule."""

    name: str
    finding: Finding
    action: RuleAction


@dataclass(frozen=True, slots=True)
class Forecast:
    """Everything a rule would do."""

    nodes: tuple[NodeForecast, ...]
    held: tuple[AffectedPod, ...]
    evicted: tuple[AffectedPod, ...]

    def count(self, action: RuleAction) -> int:
        return sum(each.action is action for each in self.nodes)

    @property
    def risky(self) -> int:
        """Nodes that do not report at least one of the conditions."""
        return sum(each.finding.missing > 0 for each in self.nodes)

    def summary(self) -> str:
        """Return the summary in node-readiness-controller's words, with the effect on pods."""
        add, remove = self.count(RuleAction.ADD), self.count(RuleAction.REMOVE)
        parts = [
            text
            for number, text in (
                (add, f"would add {add} taints"),
                (remove, f"would remove {remove} taints"),
                (self.risky, f"{self.risky} nodes have missing conditions"),
                (len(self.evicted), f"would evict {len(self.evicted)} pods"),
                (len(self.held), f"would hold {len(self.held)} pods"),
            )
            if number
        ]
        return ", ".join(parts) or "No changes needed"

    def results(self) -> DryRunResults:
        """Return the results for the rule's status."""
        return DryRunResults(
            affected_nodes=len(self.nodes),
            taints_to_add=self.count(RuleAction.ADD),
            taints_to_remove=self.count(RuleAction.REMOVE),
            risky_operations=self.risky,
            summary=self.summary(),
            pods_held=AffectedPods(count=len(self.held), pods=list(self.held[:NAMED_PODS])),
            pods_evicted=AffectedPods(count=len(self.evicted), pods=list(self.evicted[:NAMED_PODS])),
        )


def forecast(rule: Rule, nodes: Iterable[Node], pods: Iterable[Pod], *, numeric: bool) -> Forecast:
    """Return what the rule would do; `numeric`: whether tolerations may compare numbers."""
    found: list[NodeForecast] = []
    closing: dict[str, Node] = {}
    for node in sorted(nodes, key=lambda each: each.metadata.name):
        if not rule.selects(node):
            continue
        finding = find(rule, node)
        action = action_for(rule, finding)
        found.append(NodeForecast(node.metadata.name, finding, action))
        if action is RuleAction.ADD:
            closing[node.metadata.name] = node
    held: list[AffectedPod] = []
    evicted: list[AffectedPod] = []
    if closing:
        for pod in pods:
            _consider(pod, rule.taint, closing, held, evicted, numeric=numeric)
    key = _by_place
    return Forecast(tuple(found), tuple(sorted(held, key=key)), tuple(sorted(evicted, key=key)))


def _by_place(pod: AffectedPod) -> tuple[str, str]:
    return pod.namespace, pod.name


def _accepts(pod: Pod, nodes: Iterable[Node]) -> bool:
    """Tell whether the pod would take one of the nodes."""
    spec = pod.spec
    if not spec.node_selector and (spec.affinity is None or spec.affinity.node_affinity is None):
        return True
    return any(fits_node(spec, node) for node in nodes)


def _consider(
    pod: Pod,
    taint: Taint,
    closing: dict[str, Node],
    held: list[AffectedPod],
    evicted: list[AffectedPod],
    *,
    numeric: bool,
) -> None:
    meta, where = pod.metadata, pod.spec.node_name
    if is_terminal(pod) or meta.deletion_timestamp is not None or (where and where not in closing):
        return
    if where and taint.effect == NO_EXECUTE:
        seconds = seconds_until_eviction((taint,), pod.spec.tolerations, numeric=numeric)
        if seconds is not None:
            evicted.append(
                AffectedPod(namespace=meta.namespace, name=meta.name, node_name=where, after_seconds=seconds)
            )
    if blocking_taint((taint,), pod.spec.tolerations, numeric=numeric) is None:
        return
    if where or _accepts(pod, closing.values()):
        held.append(AffectedPod(namespace=meta.namespace, name=meta.name, node_name=where))
