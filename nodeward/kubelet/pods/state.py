"""All that is known of one pod on one node, as plain data: what the rooms of this package work on.

`PodLifecycle` owns one and is the only one who hands it out; starting, stopping, phase and status are functions of it.

What must stay true: a pod that is ending never starts anything again; `wake_ns` is the next moment at which time alone
changes something, and lies in the future; a terminal phase stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition, PodStatus
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.kubelet.pods.container_life import POST_START, ContainerLife, ContainerRole, State
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.pods.probing import ProbePlan

if TYPE_CHECKING:
    from nodeward.kubelet.pods.resizing import PodResize

#: Where a pod comes from; one that did not come from the API is a static pod.
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"


class SandboxState(IntEnum):
    """The pod's surroundings."""

    NONE = 0
    STARTING = 1
    READY = 2
    #: nothing runs in it, and nothing will
    OVER = 3


class PodState:
    """What is known of one pod."""

    __slots__ = (
        "allocated",
        "conditions",
        "disruption",
        "end_ns",
        "ephemerals",
        "final_phase",
        "init_at",
        "inits",
        "ips",
        "is_deleted_told",
        "is_deletion",
        "is_ending",
        "is_failed",
        "is_gone",
        "is_rejected",
        "is_removed",
        "is_removing",
        "is_restarting_all",
        "is_unprepared",
        "is_unpreparing",
        "mains",
        "message",
        "plans",
        "pod",
        "reason",
        "resize",
        "resources",
        "rules",
        "sandbox",
        "sandbox_ns",
        "start_ns",
        "start_time",
        "status",
        "unprepare_ns",
        "wake_ns",
    )

    def __init__(self, pod: Pod, now_ns: int, rules: LifecycleRules) -> None:
        spec = pod.spec
        self.pod = pod
        self.rules = rules
        self.inits = tuple(
            ContainerLife(
                each, ContainerRole.SIDECAR if each.restart_policy == "Always" else ContainerRole.INIT
            )
            for each in spec.init_containers
        )
        self.mains = tuple(ContainerLife(each, ContainerRole.MAIN) for each in spec.containers)
        self.ephemerals = tuple(
            ContainerLife(each, ContainerRole.EPHEMERAL) for each in spec.ephemeral_containers
        )
        #: the init container that is due; past the last one: all have done their part
        self.init_at = 0
        self.sandbox = SandboxState.NONE
        #: not to be started before
        self.sandbox_ns = 0
        self.ips: tuple[str, ...] = ()
        self.start_time = pod.status.start_time or rfc3339(now_ns)
        self.start_ns = parse_rfc3339(self.start_time) if pod.status.start_time else now_ns
        # -- the end
        self.is_ending = False
        #: when the grace period is over
        self.end_ns = 0
        #: somebody decided that it failed, whatever its containers say
        self.is_failed = False
        self.reason = ""
        self.message = ""
        #: what DisruptionTarget will say
        self.disruption = ""
        self.is_rejected = False
        #: the API wants it deleted
        self.is_deletion = False
        #: the API knows it no more
        self.is_gone = False
        self.is_removing = False
        self.is_removed = False
        self.is_deleted_told = False
        self.final_phase = ""
        #: whether no claim of it is prepared, one is being unprepared, and when that is tried again
        self.is_unprepared = (
            not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None
        )
        self.is_unpreparing = False
        self.unprepare_ns = 0
        self.is_restarting_all = False
        # -- for others
        self.wake_ns = 0
        self.plans: tuple[ProbePlan, ...] | None = ()
        self.status: PodStatus | None = None
        self.conditions: list[PodCondition] = pod.status.conditions
        #: what the pod as a whole was promised, and has
        self.allocated: dict[str, Quantity] = {}
        self.resources: ResourceRequirements | None = None
        #: None until the first resize
        self.resize: PodResize | None = None

    def lives(self) -> Iterator[ContainerLife]:
        """All containers: those that come first, first."""
        yield from self.inits
        yield from self.mains
        yield from self.ephemerals

    def life(self, name: str) -> ContainerLife | None:
        for each in self.mains:
            if each.spec.name == name:
                return each
        for each in self.inits:
            if each.spec.name == name:
                return each
        for each in self.ephemerals:
            if each.spec.name == name:
                return each
        return None

    def wake(self, at_ns: int) -> None:
        """Time alone changes something at `at_ns`."""
        if not self.wake_ns or at_ns < self.wake_ns:
            self.wake_ns = at_ns

    @property
    def is_static(self) -> bool:
        return self.pod.metadata.annotations.get(SOURCE_ANNOTATION, "api") != "api"

    @property
    def is_starting_one(self) -> bool:
        """One container after the other: the next waits for the image, the start and the postStart hook of this."""
        return any(
            each.state is State.STARTING or each.hook == POST_START
            for lives in (self.inits, self.mains)
            for each in lives
        )

    @property
    def has_alive(self) -> bool:
        return any(each.is_alive for each in self.lives())

    def full_name(self) -> str:
        """As upstream's messages call a pod."""
        meta = self.pod.metadata
        return f"{meta.name}_{meta.namespace}({meta.uid})"

    def grace_ns(self) -> int:
        """What the pod's spec gives its containers to stop."""
        seconds = self.pod.spec.termination_grace_period_seconds
        return max(1, 30 if seconds is None else seconds) * SECOND_NS
