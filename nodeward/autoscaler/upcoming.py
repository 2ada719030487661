"""Nodes on their way: there, ready, and held by readiness gates (KEP-5233).

Such a node is no capacity yet, and no failure either: pods that wait for it need no other node. So an autoscaler
counts it as upcoming, and plans with it as it will be when its gates hold.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from nodeward.api.core_v1.node import Node, NodeCondition
from nodeward.rules.readiness import is_open, is_ready, waiting_for


class Usability(Enum):
    """What a node is worth to somebody who plans."""

    USABLE = "usable"
    #: its kubelet is ready, and gates hold pods off; it will be usable, or its gates will be given up
    UPCOMING = "upcoming"
    UNREADY = "unready"


def usability(node: Node) -> Usability:
    if not is_ready(node.status.conditions):
        return Usability.UNREADY
    return Usability.USABLE if is_open(node) else Usability.UPCOMING


def as_it_will_be(node: Node) -> Node:
    """Return the node once its gates hold, for simulations."""
    missing = {*waiting_for(node)}
    kept = [condition for condition in node.status.conditions if condition.type not in missing]
    will_hold = [NodeCondition(type=name, status="True") for name in sorted(missing)]
    status = msgspec.structs.replace(node.status, conditions=[*kept, *will_hold])
    return msgspec.structs.replace(node, status=status)
