"""Printers of nodes and runtime classes."""

from __future__ import annotations

from nodeward.api.core_v1.node import Node
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.printing.cells import NONE, UNKNOWN, age
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer, wide
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _status(node: Node) -> str:
    ready = {c.type: c.status for c in node.status.conditions}.get("Ready")
    if ready is None:
        status = "Unknown"
    else:
        status = "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def _roles(node: Node) -> str:
    roles: list[str] = []
    for key, value in node.metadata.labels.items():
        if key.startswith(_ROLE_PREFIX):
            roles.append(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.append(value)
    return ",".join(sorted({role for role in roles if role})) or NONE


def _address(node: Node, kind: str) -> str:
    return next((a.address for a in node.status.addresses if a.type == kind), NONE)


def _node(node: Node, now_ns: int) -> Cells:
    info = node.status.node_info
    kernel = info.kernel_version or UNKNOWN
    if info.architecture:
        kernel += f" ({info.architecture})"
    return [
        node.metadata.name,
        _status(node),
        _roles(node),
        age(node, now_ns),
        info.kubelet_version,
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.os_image or UNKNOWN,
        kernel,
        info.container_runtime_version or UNKNOWN,
    ]


def _runtime_class(obj: RuntimeClass, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.handler, age(obj, now_ns)]


def _readiness_rule(rule: NodeReadinessRule, now_ns: int) -> Cells:
    spec = rule.spec
    return [
        rule.metadata.name,
        spec.enforcement_mode,
        spec.taint.key,
        spec.taint.effect,
        spec.dry_run,
        age(rule, now_ns),
    ]


NODE = Printer(
    (
        NAME,
        Column("Status", description="Whether the node is ready and open for new pods."),
        Column("Roles", description="Roles named by the node's labels."),
        AGE,
        Column("Version", description="Version of the kubelet."),
        wide("Internal-IP", "First address inside the cluster."),
        wide("External-IP", "First address for the outside."),
        wide("OS-Image", "Operating system."),
        wide("Kernel-Version", "Kernel and architecture."),
        wide("Container-Runtime", "Container runtime and its version."),
    ),
    _node,
)
RUNTIME_CLASS = Printer(
    (NAME, Column("Handler", description="Runtime configuration that runs the pods."), AGE), _runtime_class
)
NODE_READINESS_RULE = Printer(
    (
        NAME,
        Column("Mode", description="Whether nodes are held once (bootstrap-only) or whenever they fail."),
        Column("Taint", description="Key of the taint that nodes carry until they are ready."),
        Column("Effect", description="What the taint does to pods that do not tolerate it."),
        Column("DryRun", type="boolean", description="Whether the rule only tells what it would do."),
        AGE,
    ),
    _readiness_rule,
)
