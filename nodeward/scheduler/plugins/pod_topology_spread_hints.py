"""Which events may help a pod that spread constraints kept off all nodes.

A pod of the kind that is spread came or went, or became one or ceased to be; a node joined, left or moved between
domains, or changed its taints; the pod itself got a toleration or other labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.rules.selectors import SelectorError
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.spread_constraints import Constraint, SpreadConstraints


class PodTopologySpreadHints:
    """The part of the plugin that is asked about waiting pods."""

    def __init__(self, constraints: SpreadConstraints) -> None:
        self.constraints: Final = constraints

    def hints(self) -> Sequence[ClusterEventWithHint]:
        pods = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
        own = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_LABEL)
        nodes = ClusterEvent(
            Resource.NODE,
            Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
        )
        return (
            ClusterEventWithHint(pods, self._after_pod),
            ClusterEventWithHint(own, self._after_own),
            ClusterEventWithHint(nodes, self._after_node),
        )

    def _hard(self, pod: PodView) -> Sequence[Constraint] | None:
        """The constraints that may have rejected the pod; None if they cannot be understood."""
        try:
            return self.constraints.of(pod).hard
        except SelectorError:
            return None

    def _after_pod(self, pod: PodView, old: Pod | None, new: Pod | None) -> QueueingHint:
        for each in (old, new):
            if each is not None and not _is_near(each, pod):
                return QueueingHint.SKIP
        constraints = self._hard(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        if old is not None and new is not None:
            return _after_labels(constraints, old.metadata.labels, new.metadata.labels)
        only = new if new is not None else old
        labels = only.metadata.labels if only is not None else {}
        is_counted = any(_selects(each, labels) for each in constraints)
        return QueueingHint.QUEUE if is_counted else QueueingHint.SKIP

    def _after_own(self, pod: PodView, old: Pod, new: Pod) -> QueueingHint:
        constraints = self._hard(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        if old.spec.tolerations != new.spec.tolerations and any(each.honors_taints for each in constraints):
            return QueueingHint.QUEUE
        return _after_labels(constraints, old.metadata.labels, new.metadata.labels)

    def _after_node(self, pod: PodView, old: Node | None, new: Node | None) -> QueueingHint:
        constraints = self._hard(pod)
        if constraints is None:
            return QueueingHint.QUEUE
        had, has = _has_keys(constraints, old), _has_keys(constraints, new)
        if old is None or new is None:
            return QueueingHint.QUEUE if had or has else QueueingHint.SKIP
        if had != has:
            return QueueingHint.QUEUE
        before, after = old.metadata.labels, new.metadata.labels
        is_moved = any(before.get(each.topology_key) != after.get(each.topology_key) for each in constraints)
        return (
            QueueingHint.QUEUE
            if has and (is_moved or old.spec.taints != new.spec.taints)
            else QueueingHint.SKIP
        )


def _is_near(other: Pod, pod: PodView) -> bool:
    """Whether the other pod has a node (or is about to), in the namespace in which pods are counted."""
    has_place = bool(other.spec.node_name or other.status.nominated_node_name)
    return has_place and other.metadata.namespace == pod.namespace


def _selects(constraint: Constraint, labels: Mapping[str, str]) -> bool:
    return constraint.selector is not None and constraint.selector.matches(labels)


def _after_labels(
    constraints: Sequence[Constraint], old: Mapping[str, str], new: Mapping[str, str]
) -> QueueingHint:
    """Whether a constraint counts a pod now that it did not count before, or the other way round."""
    if old == new:
        return QueueingHint.SKIP
    has_changed = any(_selects(each, old) != _selects(each, new) for each in constraints)
    return QueueingHint.QUEUE if has_changed else QueueingHint.SKIP


def _has_keys(constraints: Sequence[Constraint], node: Node | None) -> bool:
    return node is not None and all(each.topology_key in node.metadata.labels for each in constraints)
