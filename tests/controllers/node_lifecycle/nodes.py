"""Nodes for tests, in as few words as they need."""

from __future__ import annotations

from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate, NodeSpec, NodeStatus
from nodeward.api.core_v1.references import Taint
from nodeward.api.meta import ObjectMeta

NOW = "2026-01-01T00:00:00Z"
CREATED = "2025-12-31T00:00:00Z"


def node(
    ready: str = "True",
    *conditions: tuple[str, str],
    taints: tuple[Taint, ...] = (),
    gates: tuple[NodeReadinessGate, ...] = (),
    labels: dict[str, str] | None = None,
    unschedulable: bool = False,
    name: str = "n",
) -> Node:
    """A node whose Ready is so (empty: it never said), with these further conditions."""
    found = [NodeCondition(type="Ready", status=ready, last_heartbeat_time=NOW)] if ready else []
    found += [NodeCondition(type=kind, status=status) for kind, status in conditions]
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            creation_timestamp=CREATED,
            resource_version="1",
            labels=labels or {},
        ),
        spec=NodeSpec(taints=list(taints), readiness_gates=list(gates), unschedulable=unschedulable),
        status=NodeStatus(conditions=found),
    )


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def marks(taints: list[Taint]) -> list[str]:
    """Taints in short."""
    return [f"{each.key.rpartition('/')[2]}:{each.effect}" for each in taints]
