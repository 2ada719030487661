"""A node and its core without an API server: patches are merged by the server's own code, time is a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.codec import from_tree, to_tree
from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate
from nodeward.api.patch.strategic import apply_strategic_merge_patch
from nodeward.api.schema import schema_of
from nodeward.base.duration import SECOND_NS
from nodeward.features.gates import Gates
from nodeward.kubelet.config.settings import GateProbe, KubeletSettings, ReadinessGateSettings
from nodeward.kubelet.node.features import discover
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.node_conditions import ALL_WELL, NodeFacts
from nodeward.kubelet.node.node_core import NodeCore, NodeStep
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.machinery.clock import VIRTUAL_START_NS, SeededChance

READINESS = "NodeReadinessGates=true"


def settings(
    gates: str = "",
    *readiness: NodeReadinessGate,
    probe: GateProbe | None = None,
    version: str = "1.37",
    **others: Any,
) -> KubeletSettings:
    listed = tuple(ReadinessGateSettings(each, probe) for each in readiness)
    return KubeletSettings(gates=Gates.of(version, gates), readiness_gates=listed, **others)


def specification(
    chosen: KubeletSettings | None = None, *, name: str = "n1", boot: str = "boot-1", **model: Any
) -> NodeSpecification:
    return NodeSpecification(
        name, NodeModel(settings=chosen or settings(), **model), ("10.0.0.1",), "machine", "uuid", boot
    )


def merged(node: Node, patch: Mapping[str, Any]) -> Node:
    """What an API server makes of a strategic merge patch."""
    tree = apply_strategic_merge_patch(to_tree(node), dict(patch), schema_of(Node))
    after = from_tree(tree, Node)
    version = int(node.metadata.resource_version or "1") + 1
    after.metadata.resource_version = str(version)
    return after


@dataclass
class Run:
    """One kubelet run on a node that is stored; `restarted` is the next one."""

    specification: NodeSpecification
    facts: NodeFacts = ALL_WELL
    #: seconds since the first run began
    seconds: float = 0.0
    node: Node = field(default_factory=Node)
    #: the API server cannot be reached
    is_cut_off: bool = False
    patches: list[dict[str, Any]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = SeededChance(1)
        self.core = NodeCore(self.specification, discover(self.specification.model), self.monotonic_ns)
        if not self.node.metadata.name:
            self.node, events = self.core.first_node(self.facts, self.now_ns)
            self.node.metadata.resource_version = "1"
            self.events += [event.reason for event in events]
            self.core.reported(self.monotonic_ns, self._chance)

    @property
    def monotonic_ns(self) -> int:
        return int(self.seconds * SECOND_NS)

    @property
    def now_ns(self) -> int:
        return VIRTUAL_START_NS + self.monotonic_ns

    def look(self, **outcomes: ProbeOutcome) -> NodeStep:
        """One check, sent if that can be done. Outcomes are named by what follows the slash of a condition."""
        named = {f"example.com/{name}": outcome for name, outcome in outcomes.items()}
        step = self.core.step(self.node, self.facts, self.now_ns, self.monotonic_ns, named)
        self.events += [event.reason for event in step.events]
        self.expired += step.expired_gates
        if step.patch is not None and not self.is_cut_off:
            self.patches.append(step.patch)
            self.node = merged(self.node, step.patch)
            self.core.reported(self.monotonic_ns, self._chance)
        if step.gate_labels and not self.is_cut_off:
            self.node = merged(self.node, {"metadata": {"labels": step.gate_labels.patch()}})
        return step

    def until(self, seconds: float) -> None:
        """Check when the core wants to, up to a moment."""
        while True:
            due = self.look().next_check_ns / SECOND_NS
            if due > seconds:
                self.seconds = seconds
                return
            self.seconds = due

    def restarted(self, chosen: NodeSpecification | None = None, facts: NodeFacts = ALL_WELL) -> Run:
        return Run(chosen or self.specification, facts, self.seconds, self.node)

    def condition(self, name: str) -> NodeCondition | None:
        return next((each for each in self.node.status.conditions if each.type == name), None)

    def said(self, name: str) -> tuple[str, str]:
        found = self.condition(name)
        return (found.status, found.reason) if found is not None else ("", "")

    def others_write(self, patch: Mapping[str, Any]) -> None:
        self.node = merged(self.node, patch)

    def report(self, name: str, status: str, reason: str = "") -> None:
        """What an outside reporter does."""
        condition = {"type": name, "status": status, "reason": reason}
        self.others_write({"status": {"conditions": [condition]}})
