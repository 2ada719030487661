"""The container manager: which CPUs of a node each container may use, and whether it has them yet.

Each `Agent` has one. Admission asks it to `admit` a pod and to `resize` one, pod workers start containers on
`cpuset`, runtime events are passed to it, the volume manager shows `assigned_cpuset` to containers (KEP-6122), and the
pod sync asks `is_applied` before it calls a resize complete. `SharedCPUs` is the one of CPU manager policy `none`; it
keeps nothing, so that all nodes of a fleet share it.

What must stay true: a refused `admit` or `resize` changes nothing; `release` may be called for any pod, at any time.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.cpu.cpu_map import CPUMap
from nodeward.kubelet.node.admission import Refusal
from nodeward.kubelet.runtime.interface import RuntimeEvent


class ResizeRefusal(NamedTuple):
    """Why a resize is not allocated. One that is infeasible is not tried again before the pod's spec changes."""

    is_infeasible: bool
    #: of the event: OutOfcpu, Infeasible
    reason: str
    message: str
    #: of metric kubelet_pod_infeasible_resizes_total
    detail: str = ""


class ContainerManager(Protocol):
    """The CPUs of one node."""

    def admit(self, pod: Pod) -> Refusal | None:
        """Allocate the exclusive CPUs of a pod, or find those it had before a restart."""
        ...

    def resize(self, pod: Pod) -> ResizeRefusal | None:
        """Allocate exclusive CPUs as the new version of an admitted pod asks for; all of its containers or none."""
        ...

    def release(self, uid: str) -> None:
        """Take back the CPUs of a pod of which nothing runs."""
        ...

    def cpuset(self, uid: str, container: str) -> str:
        """The CPUs a container is started on, as a list like "0-3,8"; "" if any will do."""
        ...

    def has_exclusive_cpus(self, uid: str, container: str) -> bool:
        """Whether CPUs are the container's own; then it has no CPU quota (`kernel_resources`, has_quota)."""
        ...

    def assigned_cpuset(self, uid: str, container: str) -> str:
        """What `assigned.cpuset` shows: the exclusive CPUs a container is to have, or has; "" if it has none."""
        ...

    def is_applied(self, uid: str) -> bool:
        """Whether every running container of a pod has the CPUs it is to have, and none waits for a delay."""
        ...

    def is_held(self, uid: str, container: str) -> bool:
        """Whether a container does not have the CPUs of its new size yet: its status shows the old size."""
        ...

    def on_pods_known(self) -> None:
        """Learn that all pods of the node were seen after the kubelet's start: what others held is free."""
        ...

    def on_runtime_event(self, event: RuntimeEvent) -> None:
        """Learn what the runtime did with a container of this node."""
        ...

    def cpu_map(self, now_ns: int) -> CPUMap | None:
        """The CPUs of the node by owner; None: no container has CPUs of its own. `now_ns` is monotonic."""
        ...

    def stop(self) -> None:
        """The kubelet stops: containers run on where they are, and no more is done for them."""
        ...


class SharedCPUs:
    """CPU manager policy `none`: every container may use every CPU."""

    __slots__ = ()

    def admit(self, pod: Pod) -> Refusal | None:
        return None

    def resize(self, pod: Pod) -> ResizeRefusal | None:
        return None

    def release(self, uid: str) -> None:
        pass

    def cpuset(self, uid: str, container: str) -> str:
        return ""

    def has_exclusive_cpus(self, uid: str, container: str) -> bool:
        return False

    def assigned_cpuset(self, uid: str, container: str) -> str:
        return ""

    def is_applied(self, uid: str) -> bool:
        return True

    def is_held(self, uid: str, container: str) -> bool:
        return False

    def on_pods_known(self) -> None:
        pass

    def on_runtime_event(self, event: RuntimeEvent) -> None:
        pass

    def cpu_map(self, now_ns: int) -> CPUMap | None:
        return None

    def stop(self) -> None:
        pass


SHARED_CPUS: Final = SharedCPUs()
