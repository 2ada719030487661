"""Records of simulated pods and containers, and what is told of them. Changed by `sim` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.base.timestamp import parse_rfc3339
from nodeward.kubelet.runtime.behaviour import Behaviour
from nodeward.kubelet.runtime.interface import ContainerExited, FoundContainer, FoundPod
from nodeward.kubelet.runtime.resources import UNLIMITED, ContainerResources
from nodeward.machinery.clock import Timer


@dataclass(slots=True)
class SimContainer:
    """The newest instance of a container."""

    name: str
    id: str
    attempt: int
    image: str
    behaviour: Behaviour
    is_init: bool
    #: 0 until it runs
    started_ns: int = 0
    exited: ContainerExited | None = None
    #: when it ends by itself, and with which code
    ends_ns: int | None = None
    end_code: int = 0
    #: when it was first told to stop, and when it will be killed
    asked_ns: int | None = None
    kill_ns: int = 0
    timer: Timer | None = None
    resources: ContainerResources = UNLIMITED
    #: the variables it was started with; None: they are worked out when they are read
    env: Mapping[str, str] | None = None


@dataclass(slots=True)
class SimPod:
    """A pod with a sandbox."""

    uid: str
    namespace: str
    name: str
    #: the name of its node
    node: str
    ip: str
    #: the newest of each name
    containers: dict[str, SimContainer] = field(default_factory=dict)


def statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    status = pod.status
    return (
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    )


def last_id(status: ContainerStatus) -> str:
    ended = status.last_state.terminated
    return ended.container_id if ended is not None else ""


def instant(text: str | None) -> int:
    return parse_rfc3339(text) if text else 0


def found_pod(pod: SimPod) -> FoundPod:
    containers = tuple(
        FoundContainer(
            each.name,
            each.id,
            each.attempt,
            each.image,
            f"simulated:{each.image}",
            each.started_ns,
            each.exited,
            each.resources,
        )
        for each in pod.containers.values()
        if each.started_ns
    )
    return FoundPod(pod.uid, pod.namespace, pod.name, f"sandbox-{pod.uid}", (pod.ip,), containers)
