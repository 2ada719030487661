"""What an update of a node may mean to waiting pods. What it means to columns of plugins, the table says.

A kubelet reports every few seconds; nearly all of these updates change nothing a decision could depend on. Those must
wake nobody and cost next to nothing, so what is compared here are whole parts of the object, in C.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import Node, NodeCondition
from nodeward.scheduler.framework.events import Action, ClusterEvent, Resource

NODE_ADD: Final = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE: Final = ClusterEvent(Resource.NODE, Action.DELETE)
#: a column or an index that a plugin declared has changed
NODE_UPDATE: Final = ClusterEvent(Resource.NODE, Action.UPDATE_OTHER)
_EVENTS: Final = {
    action: ClusterEvent(Resource.NODE, action)
    for action in (
        Action.UPDATE_NODE_TAINT,
        Action.UPDATE_NODE_ALLOCATABLE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_CONDITION,
        Action.UPDATE_NODE_ANNOTATION,
        Action.UPDATE_NODE_DECLARED_FEATURE,
        Action.UPDATE_NODE_READINESS_GATE,
    )
}


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """The events an update amounts to; none if no pod could care."""
    found: list[Action] = []
    if old.spec != new.spec:
        has_become_schedulable = old.spec.unschedulable and not new.spec.unschedulable
        if has_become_schedulable or old.spec.taints != new.spec.taints:
            found.append(Action.UPDATE_NODE_TAINT)
        if old.spec.readiness_gates != new.spec.readiness_gates:
            found.append(Action.UPDATE_NODE_READINESS_GATE)
    if old.status.allocatable != new.status.allocatable:
        found.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        found.append(Action.UPDATE_NODE_LABEL)
    if old.status.conditions != new.status.conditions and _verdicts(old) != _verdicts(new):
        found.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        found.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        found.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [_EVENTS[action] for action in found]


def _verdicts(node: Node) -> dict[str, tuple[str, str]]:
    """Conditions without the times of their last report.

    Unlike upstream the reason counts: a gate whose condition is Unknown because it timed out is open (KEP-5233).
    """
    return {each.type: _verdict(each) for each in node.status.conditions}


def _verdict(condition: NodeCondition) -> tuple[str, str]:
    return condition.status, condition.reason
