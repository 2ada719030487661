"""The plan for one node: every change that this controller wants in its metadata and spec, as one patch.

In go the node as the informer has it and what the zone's limits allow; out comes a plan, or None if the node is as it
should be. The parts are `condition_taints`, `execute_taints`, `gate_failures` and the old names of two labels.

Called by `controller`; calls `condition_taints`, `execute_taints`, `gate_failures` and `reporters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.node_lifecycle.condition_taints import with_condition_taints
from nodeward.controllers.node_lifecycle.execute_taints import execute_key, with_execute_taint
from nodeward.controllers.node_lifecycle.gate_failures import GateDecision, decide
from nodeward.controllers.node_lifecycle.reporters import Reporters
from nodeward.rules.readiness import RECORD_ANNOTATION
from nodeward.rules.taints import is_same

#: The label that rules, and the one under its old name that follows it.
LABELS: Final = (
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
)


@dataclass(frozen=True, slots=True)
class NodeUpdatePlan:
    """What to write to a node, and what to record once it is written."""

    patch: dict[str, Any]
    gates: GateDecision | None
    #: pods will have to leave
    evicts: bool


def plan(
    node: Node,
    now: str,
    *,
    may_add: bool = False,
    must_clear: bool = False,
    has_gates: bool = False,
    reporters: Sequence[Reporters] = (),
) -> NodeUpdatePlan | None:
    """Return the changes; `has_gates` is whether this controller knows readiness gates at all."""
    gates = decide(node, reporters) if has_gates else None
    tainted = with_condition_taints(node, node.spec.taints, now)
    taints = with_execute_taint(node, tainted, now, may_add=may_add, must_clear=must_clear)
    evicts = taints is not tainted and not execute_key(node)
    if gates is not None and gates.taints:
        taints = with_changes(taints, gates.taints.add, gates.taints.remove, now)
    labels = label_changes(node)
    if taints is node.spec.taints and gates is None and not labels:
        return None
    metadata: dict[str, Any] = {
        "uid": node.metadata.uid,
        "resourceVersion": node.metadata.resource_version,
    }
    patch: dict[str, Any] = {"metadata": metadata}
    if labels:
        metadata["labels"] = labels
    if gates is not None:
        metadata["annotations"] = {RECORD_ANNOTATION: gates.record}
    if taints is not node.spec.taints:
        patch["spec"] = {"taints": taints}
    return NodeUpdatePlan(patch, gates, evicts)


def with_changes(taints: list[Taint], add: Iterable[Taint], remove: Iterable[Taint], now: str) -> list[Taint]:
    """Return the taints, less some, and some more as of now."""
    gone = tuple(remove)
    kept = [taint for taint in taints if not any(is_same(taint, each) for each in gone)]
    new = (
        Taint(key=taint.key, value=taint.value, effect=taint.effect, time_added=now)
        for taint in add
        if not any(is_same(taint, each) for each in kept)
    )
    return [*kept, *new]


def label_changes(node: Node) -> dict[str, str]:
    """Return the labels under their old names that must follow those that rule."""
    labels = node.metadata.labels
    return {old: labels[new] for new, old in LABELS if new in labels and labels.get(old) != labels[new]}
