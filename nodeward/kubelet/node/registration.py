"""Making a node known, or making itself known again under a name that is there already.

A new node is created whole. For one that exists, the kubelet puts right what is its own: the well-known labels, the
annotations that say who attaches volumes and who keeps the time of readiness gates, and the readiness gates of its
configuration (KEP-5233), which are merged into the spec by their condition type. Gates, labels and taints somebody else
wrote stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.node import Node, NodeReadinessGate
from nodeward.kubelet.node.specification import (
    ARCH_LABEL,
    ATTACH_ANNOTATION,
    BETA_ARCH_LABEL,
    BETA_OS_LABEL,
    HOSTNAME_LABEL,
    OS_LABEL,
    NodeSpecification,
    bare_node,
)
from nodeward.rules.readiness import NOT_TIMED, TIMED_BY_ANNOTATION

#: Labels a kubelet keeps as it would register them.
_OWN_LABELS: Final = (
    HOSTNAME_LABEL,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    OS_LABEL,
    ARCH_LABEL,
    BETA_OS_LABEL,
    BETA_ARCH_LABEL,
)
FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 7.0


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Strategic merge patches for a node that was there already; None where there is nothing to put right."""

    #: for nodes/status, as upstream: metadata goes with it
    status_patch: dict[str, Any] | None = None
    #: for nodes
    spec_patch: dict[str, Any] | None = None


def reconcile(existing: Node, specification: NodeSpecification) -> Reconciliation:
    """What differs between the node that is there and the one this kubelet would have registered."""
    wanted = bare_node(specification)
    metadata: dict[str, Any] = {}
    labels = {
        key: value
        for key in _OWN_LABELS
        if (value := wanted.metadata.labels.get(key)) and existing.metadata.labels.get(key) != value
    }
    if labels:
        metadata["labels"] = labels
    annotations = _annotations(existing.metadata.annotations, wanted.metadata.annotations, specification)
    if annotations:
        metadata["annotations"] = annotations
    gates = _gate_patches(existing.spec.readiness_gates, wanted.spec.readiness_gates)
    return Reconciliation(
        {"metadata": metadata} if metadata else None,
        {"spec": {"readinessGates": gates}} if gates else None,
    )


def retry_after_seconds(failures: int) -> float:
    """How long to wait before the next attempt to register: 0.1 s, then twice as long each time, 7 s at most."""
    return min(FIRST_WAIT_SECONDS * 2.0 ** min(failures - 1, 16), LONGEST_WAIT_SECONDS) if failures else 0.0


def _annotations(
    existing: Mapping[str, str], wanted: Mapping[str, str], specification: NodeSpecification
) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    attach = wanted.get(ATTACH_ANNOTATION)
    if existing.get(ATTACH_ANNOTATION) != attach:
        found[ATTACH_ANNOTATION] = attach
    timed_by = wanted.get(TIMED_BY_ANNOTATION)
    if timed_by is None and TIMED_BY_ANNOTATION in existing:
        # An earlier run kept the time of gates. A kubelet too old to know of gates leaves this as it is.
        timed_by = NOT_TIMED if specification.settings.gates.knows("NodeReadinessGates") else None
    if timed_by is not None and existing.get(TIMED_BY_ANNOTATION) != timed_by:
        found[TIMED_BY_ANNOTATION] = timed_by
    return found


def _gate_patches(existing: list[NodeReadinessGate], wanted: list[NodeReadinessGate]) -> list[dict[str, Any]]:
    known = {gate.condition_type: gate for gate in existing}
    changed = [gate for gate in wanted if known.get(gate.condition_type) != gate]
    patches = []
    for gate in changed:
        tree = dict(to_tree(gate))
        before = known.get(gate.condition_type)
        # What the configuration no longer says must go: a merge would keep it.
        left = to_tree(before) if before is not None else {}
        patches.append(tree | dict.fromkeys(key for key in left if key not in tree))
    return patches
