"""Reading what the runtime says about containers: how they ended, and what is there from before.

In go CRI's statuses, out come the agent's own words: `ContainerExited`, `FoundContainer`, `FoundPod`.
"""

from __future__ import annotations

from typing import Any, Final

from nodeward.kubelet.runtime.cri.labels import CONTAINER_NAME, MESSAGE_PATH, MESSAGE_POLICY, POD_UID
from nodeward.kubelet.runtime.cri.linux_resources import in_force
from nodeward.kubelet.runtime.cri.messages import EXITED, SANDBOX_READY
from nodeward.kubelet.runtime.interface import ContainerExited, FoundContainer, FoundPod
from nodeward.kubelet.runtime.termination import termination_message

UNKNOWN: Final = "ContainerStatusUnknown"
_UNKNOWN_CODE: Final = 137
_LOST: Final = "The container is not known to the runtime any more"
OOM_KILLED: Final = "OOMKilled"


def exited(status: Any) -> ContainerExited:
    """How a container ended. Reads its termination message from the node's disk."""
    file = ""
    path = status.annotations.get(MESSAGE_PATH, "")
    for mount in status.mounts:
        if path and mount.container_path == path:
            file = mount.host_path
    policy = status.annotations.get(MESSAGE_POLICY, "")
    code = status.exit_code
    return ContainerExited(
        status.labels[POD_UID],
        status.labels[CONTAINER_NAME],
        status.id,
        code,
        status.reason or ("Error" if code else "Completed"),
        # The shim may see a short-lived container's end before the runtime has noted its start.
        max(status.finished_at, status.started_at),
        status.started_at,
        0,
        termination_message(file, status.log_path, policy, code) or status.message,
    )


def lost(uid: str, name: str, id_: str, started_ns: int, now_ns: int) -> ContainerExited:
    """A container that ran and of which the runtime knows nothing any more."""
    return ContainerExited(uid, name, id_, _UNKNOWN_CODE, UNKNOWN, now_ns, started_ns, 0, _LOST)


def image_of(status: Any) -> str:
    return str(status.image.user_specified_image or status.image.image)


def found_container(answer: Any) -> FoundContainer:
    """A container from before, from a verbose answer about its status."""
    status = answer.status
    return FoundContainer(
        status.labels[CONTAINER_NAME],
        status.id,
        status.metadata.attempt,
        image_of(status),
        status.image_ref,
        status.started_at,
        exited(status) if status.state == EXITED else None,
        in_force(answer),
    )


def addresses(status: Any) -> tuple[str, ...]:
    """A sandbox's own; none in the node's network."""
    network = status.network
    return tuple(each for each in (network.ip, *(more.ip for more in network.additional_ips)) if each)


def newest(sandboxes: list[Any]) -> Any:
    """Of a pod's sandboxes the one that counts: ready ones first, then the latest."""
    return max(
        sandboxes, key=lambda each: (each.state == SANDBOX_READY, each.metadata.attempt, each.created_at)
    )


def found_pod(sandbox: Any, ips: tuple[str, ...], containers: list[FoundContainer]) -> FoundPod:
    """A pod whose sandbox is not ready has none: it starts anew, and remembers how its containers ended."""
    meta = sandbox.metadata
    is_ready = sandbox.state == SANDBOX_READY
    return FoundPod(
        meta.uid,
        meta.namespace,
        meta.name,
        sandbox.id if is_ready else "",
        ips if is_ready else (),
        tuple(sorted(containers, key=lambda each: (each.attempt, each.started_ns))),
    )
