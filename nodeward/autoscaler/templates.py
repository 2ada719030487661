"""The node a group would add: from one it has, or from what is known of a group that has none (KEP-5328).

A template is a `Node` for simulations only. It declares what the new node will declare, so that a pod which needs a
feature makes the right group grow, and no group grows in vain.

What must stay true: for the same version, gates and configuration a template from nothing declares exactly what a
kubelet with them reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nodeward.api.core_v1.node import Node, NodeCondition, NodeSpec, NodeStatus
from nodeward.api.core_v1.references import Taint
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.features import Gates, Version
from nodeward.features.declared import FRAMEWORK, Framework, NodeConfiguration

#: Taints that say how a node is right now, and nothing about the next one of its kind.
_PASSING: Final = "node.kubernetes.io/"
_HOSTNAME: Final = "kubernetes.io/hostname"
_READY: Final = NodeCondition(type="Ready", status="True")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What is known of nodes nobody has seen: machine, labels, taints, and the kubelet they will run."""

    name: str
    #: of the kubelet, like "1.36"
    version: str
    gates: Gates
    allocatable: Mapping[str, Quantity]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    #: what the kubelet's configuration and runtime add to what features depend on
    static_config: Mapping[str, str] = field(default_factory=dict)


def from_existing(node: Node, name: str) -> Node:
    """Make a fresh node like this one: with its features, labels and gates, without what is only temporary."""
    taints = [taint for taint in node.spec.taints if not taint.key.startswith(_PASSING)]
    return Node(
        metadata=ObjectMeta(name=name, labels={**node.metadata.labels, _HOSTNAME: name}),
        spec=msgspec.structs.replace(node.spec, taints=taints, unschedulable=False, provider_id=""),
        status=NodeStatus(
            capacity=node.status.capacity,
            allocatable=node.status.allocatable,
            conditions=[_READY],
            declared_features=list(node.status.declared_features),
            node_info=node.status.node_info,
        ),
    )


def from_nothing(group: NodeGroup, framework: Framework = FRAMEWORK) -> Node:
    """Return the first node of a group; its list is discovered as its kubelet will discover it."""
    config = NodeConfiguration(Version.parse(group.version), group.gates, group.static_config)
    return Node(
        metadata=ObjectMeta(name=group.name, labels={**group.labels, _HOSTNAME: group.name}),
        spec=NodeSpec(taints=list(group.taints)),
        status=NodeStatus(
            capacity=dict(group.allocatable),
            allocatable=dict(group.allocatable),
            conditions=[_READY],
            declared_features=sorted(framework.discover_node_features(config)),
        ),
    )
