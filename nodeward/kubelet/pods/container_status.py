"""What the status says of one container: state, last state, ready, started, counts, ids, resources.

What must stay true: exactly one of waiting, running and terminated is set; before its first start a container shows no
id and no resources; `ready` of an init container means that it succeeded.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    VolumeMountStatus,
)
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole
from nodeward.kubelet.pods.lifecycle_rules import MESSAGE_BYTES, LifecycleRules
from nodeward.kubelet.pods.resizing import shown as shown_now
from nodeward.kubelet.pods.state import PodState
from nodeward.kubelet.runtime.interface import ContainerExited

_CREATING: Final = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
_INITIALIZING: Final = ContainerState(waiting=ContainerStateWaiting(reason="PodInitializing"))
_NOTHING: Final = ContainerState()


def container_status(state: PodState, life: ContainerLife) -> ContainerStatus:
    """The status of one container."""
    rules = state.rules
    spec = life.spec
    exited = None
    is_running = life.is_shown_running
    if is_running:
        shown = ContainerState(running=ContainerStateRunning(started_at=rfc3339(life.started_ns)))
    elif life.reason:
        shown = ContainerState(waiting=ContainerStateWaiting(reason=life.reason, message=life.message))
    else:
        exited = life.shown_exit
        if exited is not None:
            shown = ContainerState(terminated=_terminated(state, exited))
        else:
            shown = _INITIALIZING if state.inits else _CREATING
    last = life.shown_last_exit
    status = ContainerStatus(
        name=spec.name,
        state=shown,
        last_state=_NOTHING if last is None else ContainerState(terminated=_terminated(state, last)),
        restart_count=life.restart_count,
        image=life.image or spec.image,
        image_id=life.image_id,
        container_id=rules.container_id(life.id),
    )
    role = life.role
    if role is not ContainerRole.EPHEMERAL:
        status.started = is_running and life.is_passed
        if role is ContainerRole.INIT:
            status.ready = exited is not None and exited.exit_code == 0
        else:
            status.ready = status.started and life.is_ready
    if life.id and rules.has_container_resources:
        status.resources = shown_now(state, life)
        status.allocated_resources = life.allocated.requests
    if spec.volume_mounts and rules.has_recursive_read_only:
        if life.mounts is None:
            life.mounts = _mounts(life)
        status.volume_mounts = life.mounts
    return status


def _terminated(state: PodState, exited: ContainerExited) -> ContainerStateTerminated:
    message = exited.message
    if message:
        message = _cut(state, message)
    return ContainerStateTerminated(
        exit_code=exited.exit_code,
        signal=exited.signal,
        reason=exited.reason,
        message=message,
        started_at=rfc3339(exited.started_ns) if exited.started_ns else None,
        finished_at=rfc3339(exited.at_ns) if exited.at_ns else None,
        container_id=state.rules.container_id(exited.id),
    )


def _cut(state: PodState, message: str) -> str:
    """All containers together may say 12 KiB, each its share."""
    share = MESSAGE_BYTES // max(1, len(state.inits) + len(state.mains) + len(state.ephemerals))
    if len(message) * 4 <= share:
        return message
    return message.encode()[:share].decode(errors="ignore")


def _mounts(life: ContainerLife) -> list[VolumeMountStatus]:
    return [
        VolumeMountStatus(
            name=mount.name,
            mount_path=mount.mount_path,
            read_only=mount.read_only,
            recursive_read_only="Disabled" if mount.read_only else None,
        )
        for mount in life.spec.volume_mounts
    ]


def exit_of_status(
    name: str, rules: LifecycleRules, terminated: ContainerStateTerminated | None
) -> ContainerExited | None:
    """The way back: how a container ended, from what an earlier agent wrote."""
    if terminated is None:
        return None
    prefix = f"{rules.runtime_type}://"
    return ContainerExited(
        "",
        name,
        terminated.container_id.removeprefix(prefix),
        terminated.exit_code,
        terminated.reason,
        parse_rfc3339(terminated.finished_at) if terminated.finished_at else 0,
        parse_rfc3339(terminated.started_at) if terminated.started_at else 0,
        terminated.signal,
        terminated.message,
    )
