"""Cluster events that may make a waiting pod schedulable, and the queueing hints of plugins about them.

A plugin registers the events it cares about, each with a hint function: given the pod, and the object before and after,
`QUEUE` says "try again", `SKIP` "this changes nothing for me". A waiting pod is woken only by an event that a plugin
which rejected it says `QUEUE` to; a plugin without a hint function is always told `QUEUE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from nodeward.api.meta import KubeObject
    from nodeward.scheduler.framework.pod import PodView


class Action(IntFlag):
    """What happened to an object; node and pod updates are told apart by what changed."""

    NONE = 0
    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    #: KEP-5328: status.declaredFeatures changed
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    #: KEP-5233: spec.readinessGates changed
    UPDATE_NODE_READINESS_GATE = 1 << 8
    UPDATE_POD_LABEL = 1 << 9
    UPDATE_POD_SCALE_DOWN = 1 << 10
    UPDATE_POD_TOLERATION = 1 << 11
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 12
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 13
    #: any other change of an object; of a node: of what a plugin's column or index holds
    UPDATE_OTHER = 1 << 14
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE | UPDATE_NODE_LABEL | UPDATE_NODE_TAINT | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION | UPDATE_NODE_DECLARED_FEATURE | UPDATE_NODE_READINESS_GATE | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN | UPDATE_POD_TOLERATION | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM | UPDATE_OTHER
    )  # fmt: skip
    ALL = ADD | DELETE | UPDATE


class Resource(Enum):
    """What it happened to, where that is not simply an object of some kind."""

    #: a pod that runs (or is about to), on some node
    ASSIGNED_POD = "AssignedPod"
    #: the waiting pod itself
    UNSCHEDULED_POD = "UnscheduledPod"
    NODE = "Node"
    #: matches everything; also the periodic flush of pods that waited too long
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One kind of event. `label` is its name in metrics.

    Of kinds beside nodes and pods the resource is the type of the object; a plugin that names one declares it in
    `objects`, and changes of such objects are ADD, UPDATE_OTHER or DELETE.
    """

    resource: Resource | type[KubeObject]
    action: Action
    label: str = ""

    def covers(self, other: ClusterEvent) -> bool:
        """Whether a plugin that registered this one wants to hear of `other`."""
        is_same = self.resource in (Resource.WILDCARD, other.resource) or other.resource is Resource.WILDCARD
        return is_same and bool(self.action & other.action or other.action is Action.NONE)


class QueueingHint(Enum):
    """A plugin's answer to an event: is the pod worth another try?"""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


#: (waiting pod, object before or None, object after or None) -> hint. Objects are what the informers hold.
QueueingHintFunction: TypeAlias = "Callable[[PodView, Any, Any], QueueingHint]"


@dataclass(frozen=True, slots=True, eq=False)
class WaitingPodIndex:
    """Finds the waiting pods an event may help by keys that the event and the pods have in common.

    Without it the hint is asked about every waiting pod the plugin rejected. The keys of a pod depend on the pod alone.
    """

    keys_of_pod: Callable[[PodView], Sequence[str]]
    #: (object before or None, object after or None) -> keys; None: ask about every pod
    keys_of_event: Callable[[Any, Any], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """One line of a plugin's `events_to_register`."""

    event: ClusterEvent
    hint: QueueingHintFunction | None = None
    pod_index: WaitingPodIndex | None = None
