"""Defaults of nodes, and the node fields of disabled feature gates.

`default_node` fills in, in place. `drop_disabled_node_fields` runs before validation: a field behind a disabled gate is
dropped, unless the stored object already has it.
"""

from __future__ import annotations

from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node
from nodeward.api.defaults.rounding import round_up


def default_node(node: Node) -> None:
    status = node.status
    if status.capacity:
        round_up(status.capacity)
        if not status.allocatable:
            status.allocatable = dict(status.capacity)
    if status.allocatable:
        round_up(status.allocatable)


def drop_disabled_node_fields(node: Node, old: Node | None, ctx: Context) -> None:
    if old is None or old.status.config is None:
        node.status.config = None
    if old is None or old.spec.config_source is None:
        node.spec.config_source = None
    if node.status.runtime_handlers and not (
        ctx.on("RecursiveReadOnlyMounts") or ctx.on("UserNamespacesSupport")
    ):
        node.status.runtime_handlers = []
    if node.status.features is not None and not (
        ctx.on("SupplementalGroupsPolicy") or (old is not None and old.status.features is not None)
    ):
        node.status.features = None
    if node.status.declared_features and not (
        ctx.on("NodeDeclaredFeatures") or (old is not None and old.status.declared_features)
    ):
        node.status.declared_features = []
    if node.spec.pod_preemption_policy is not None and not (
        ctx.on("InPlacePodVerticalScalingSchedulerPreemption")
        or (old is not None and old.spec.pod_preemption_policy is not None)
    ):
        node.spec.pod_preemption_policy = None
    # KEP-5233
    if node.spec.readiness_gates and not (
        ctx.on("NodeReadinessGates") or (old is not None and old.spec.readiness_gates)
    ):
        node.spec.readiness_gates = []
