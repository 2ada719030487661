"""One attempt to schedule one pod, from leaving the queue to its binding or its return, and how it failed if it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.queue.queued_pod import Place, QueuedPod

if TYPE_CHECKING:
    from nodeward.scheduler.framework.plugin import CycleState
    from nodeward.scheduler.profile import ActingPlugins, Profile
    from nodeward.scheduler.waiting_pods import WaitingPod

#: Reasons of the PodScheduled condition.
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """What the API is to be told about a pod that went back to the queue."""

    #: of the PodScheduled condition; empty: only an event is told, the condition stays
    reason: str
    message: str
    #: where in the queue it is now; GONE: nobody needs to be told anything
    place: Place
    #: the node promised to it from now on; "": none, None: as before
    nominated: str | None = None
    #: what is to be done so that the promise comes true
    work: Callable[[], Awaitable[None]] | None = None


@dataclass(slots=True, eq=False)
class Attempt:
    """It has a node, or a failure."""

    queued: QueuedPod
    #: the version of the pod that was decided about
    view: PodView
    profile: Profile
    began_ns: int
    #: where it goes
    node: str = ""
    #: what plugins keep for their later calls; None: none acts on this pod, beside the one that binds it
    cycle: CycleState | None = None
    #: the plugins that act on it; None as `cycle` is
    acting: ActingPlugins | None = None
    #: set while Permit plugins make it wait
    waiting: WaitingPod | None = None
    failure: Failure | None = None


def as_placed(pod: Pod, node: str) -> Pod:
    """The pod as it would be had the API taken its binding: what others must hear when that comes to nothing."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
