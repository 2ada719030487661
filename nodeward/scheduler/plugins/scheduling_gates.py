"""SchedulingGates: a pod with gates in its spec does not enter the queue before they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import EnqueueExtensions, PreEnqueuePlugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, unresolvable


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(self, pod: PodView) -> Status:
        gates = [gate.name for gate in pod.pod.spec.scheduling_gates]
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]") if gates else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        gone = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (ClusterEventWithHint(gone, _after_gates_are_gone),)


def _after_gates_are_gone(pod: PodView, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE
