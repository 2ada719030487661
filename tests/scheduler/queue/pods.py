"""Pods and plugins for the tests of the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    CycleState,
    EnqueueExtensions,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, unresolvable
from nodeward.scheduler.queue.backoff import BackoffRule
from nodeward.scheduler.queue.hints import hint_map
from nodeward.scheduler.queue.queued_pod import Place, QueuedPod
from nodeward.scheduler.queue.scheduling_queue import QueueSettings, SchedulingQueue

PROFILE: Final = "default-scheduler"

NODE_ADD: Final = ClusterEvent(Resource.NODE, Action.ADD)
NODE_TAINT: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
NODE_LABEL: Final = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
CLAIM_ADD: Final = ClusterEvent(PersistentVolumeClaim, Action.ADD)


def view(
    name: str,
    *,
    priority: int = 0,
    labels: dict[str, str] | None = None,
    nominated: str = "",
    uid: str = "",
    profile: str = PROFILE,
) -> PodView:
    return PodView(
        Pod(
            metadata=ObjectMeta(
                name=name, namespace="default", uid=uid or f"uid-{name}", labels=labels or {}
            ),
            spec=PodSpec(containers=[], priority=priority, scheduler_name=profile),
            status=PodStatus(nominated_node_name=nominated),
        )
    )


def queue_if_named(name: str) -> Callable[[PodView, Any, Any], QueueingHint]:
    """Says QUEUE to objects (here: collections of names) that name the plugin."""
    return lambda pod, old, new: QueueingHint.QUEUE if new is not None and name in new else QueueingHint.SKIP


class Passing(FilterPlugin):
    """A filter that lets all pass: here only its events matter."""

    pod_fields = ()

    def __init__(self) -> None:
        pass

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return SUCCESS


class Fit(Passing, EnqueueExtensions):
    name: ClassVar[str] = "Fit"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(NODE_ADD, queue_if_named(self.name)),)


class Taint(Passing, EnqueueExtensions):
    name: ClassVar[str] = "Taint"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        hint = queue_if_named(self.name)
        return (
            ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), hint),
            ClusterEventWithHint(ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)),
        )


class Unhinted(Passing, EnqueueExtensions):
    """Wants to hear of claims, and cannot tell which help."""

    name: ClassVar[str] = "Unhinted"
    objects = (PersistentVolumeClaim,)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(CLAIM_ADD),)


class Deaf(Passing, EnqueueExtensions):
    """Nothing that happens can help pods it rejected."""

    name: ClassVar[str] = "Deaf"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()


class Everything(Passing):
    """Does not say what it wants to hear of."""

    name: ClassVar[str] = "Everything"


class Gate(PreEnqueuePlugin, EnqueueExtensions):
    """Keeps out the pods whose uid is in `closed`."""

    name: ClassVar[str] = "Gate"
    objects = (PersistentVolumeClaim,)

    def __init__(self) -> None:
        self.closed: dict[str, None] = {}
        self.asked: list[str] = []

    def pre_enqueue(self, pod: PodView) -> Status:
        self.asked.append(pod.uid)
        return unresolvable("the gate is closed") if pod.uid in self.closed else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(CLAIM_ADD),
            ClusterEventWithHint(ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)),
        )


def make_queue(gate: Gate | None = None, *, backoff: BackoffRule | None = None) -> SchedulingQueue:
    gate = gate or Gate()
    plugins: tuple[Plugin, ...] = (gate, Fit(), Taint(), Unhinted(), Deaf(), Everything())
    return SchedulingQueue(
        {PROFILE: hint_map(plugins)},
        {PROFILE: (gate,)},
        settings=QueueSettings(backoff=backoff or BackoffRule()),
    )


def take(queue: SchedulingQueue, now_ns: int) -> QueuedPod:
    queued = queue.pop(now_ns)
    assert queued is not None
    return queued


def reject(
    queue: SchedulingQueue,
    name: str,
    *by: str,
    pending: tuple[str, ...] = (),
    now_ns: int = 100 * SECOND_NS,
) -> QueuedPod:
    """Add a pod and let its cycle fail at once."""
    queue.add(view(name), now_ns)
    queued = take(queue, now_ns)
    assert queued.pod.name == name
    queue.add_unschedulable(queued, by, pending, now_ns)
    return queued


def where(queued: QueuedPod) -> Place:
    return queued.place


def was_flushed(queued: QueuedPod) -> bool:
    return queued.was_flushed


def names(queue: SchedulingQueue, now_ns: int) -> list[str]:
    found = []
    while (queued := queue.pop(now_ns)) is not None:
        found.append(queued.pod.name)
        queue.done(queued.uid)
    return found
