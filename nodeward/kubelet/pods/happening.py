"""What the runtime tells, taken into the state of the pod; what follows from it is decided elsewhere.

What must stay true: an event about an instance that is no longer the latest, or about a pod that is removed, changes
nothing; whatever the order, a container is never thought dead while it lives.
"""

from __future__ import annotations

import logging
from typing import Final

from nodeward.kubelet.pods.commands import Command, RemoveContainer, RunHook
from nodeward.kubelet.pods.container_life import POST_START, ContainerLife, State
from nodeward.kubelet.pods.event_texts import (
    created,
    failed_start,
    no_sandbox,
    present,
    pulled,
    pulling,
    started,
)
from nodeward.kubelet.pods.lifecycle_rules import RETRY_NS
from nodeward.kubelet.pods.resizing import on_applied, on_refused
from nodeward.kubelet.pods.restarting import (
    PULL_REASONS,
    after_exit,
    after_failed_pull,
    asks_for_all,
    runs_again,
)
from nodeward.kubelet.pods.state import PodState, SandboxState
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    ImagePulled,
    ImagePulling,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    RuntimeEvent,
    SandboxFailed,
    SandboxStarted,
)

LOG: Final = logging.getLogger(__name__)

#: It was made, and its command could not be run: as container runtimes tell it, that is an end of its own kind.
NOT_RUN: Final = "RunContainerError"
_START_ERROR: Final = "StartError"
_START_ERROR_CODE: Final = 128


def happen(state: PodState, event: RuntimeEvent, now_ns: int, out: list[Command]) -> None:
    """Take one event in."""
    if isinstance(event, PodGone):
        _pod_gone(state)
    elif state.is_removing:
        return
    # Two questions and not a union, which Python would make anew for every event of the fleet.
    elif isinstance(event, SandboxStarted) or isinstance(event, SandboxFailed):  # noqa: SIM101
        if state.sandbox is SandboxState.STARTING:
            _sandbox(state, event, now_ns, out)
    else:
        life = state.life(event.container)
        if life is not None:
            _container(state, life, event, now_ns, out)


def _sandbox(state: PodState, event: SandboxStarted | SandboxFailed, now_ns: int, out: list[Command]) -> None:
    if isinstance(event, SandboxStarted):
        state.sandbox = SandboxState.READY
        state.ips = event.ips
        return
    state.sandbox = SandboxState.NONE
    state.sandbox_ns = now_ns + RETRY_NS
    if not state.is_ending:
        out.append(no_sandbox(event.message))


def _container(
    state: PodState,
    life: ContainerLife,
    event: ImagePulling
    | ImagePulled
    | ContainerStarted
    | ContainerFailed
    | ContainerExited
    | ResourcesApplied
    | ResourcesRefused,
    now_ns: int,
    out: list[Command],
) -> None:
    if isinstance(event, ContainerExited):
        if life.state is State.RUNNING and event.id == life.id:
            _exited(state, life, event, now_ns)
    elif isinstance(event, ResourcesApplied):
        if life.state is State.RUNNING and event.id == life.id:
            life.in_force = event.resources
            state.resources = None
            on_applied(state, life, event, now_ns)
    elif isinstance(event, ResourcesRefused):
        if not on_refused(state, life, event, now_ns, out):
            LOG.warning(
                "the resources of container %s of pod %s stay as they are: %s",
                life.spec.name,
                state.full_name(),
                event.reason,
            )
    elif life.state is not State.STARTING:
        return
    elif isinstance(event, ContainerStarted):
        _started(state, life, event, out)
    elif isinstance(event, ContainerFailed):
        container_failed(state, life, event.reason, event.message, now_ns, out)
    elif isinstance(event, ImagePulling):
        out.append(pulling(life.spec.name, event.image))
    elif event.was_present:
        out.append(present(life.spec.name, event.image, state.rules.has_image_checks))
    else:
        out.append(pulled(life.spec.name, event.image, event.seconds, event.size))


def _started(state: PodState, life: ContainerLife, event: ContainerStarted, out: list[Command]) -> None:
    # One dead instance is kept for `kubectl logs --previous`; the one before it nobody can ask for.
    if life.last_exit is not None and life.exit is not None and life.last_exit.id:
        out.append(RemoveContainer(life.last_exit.id))
    life.begin(event.id, event.image, event.image_id, event.at_ns, life.attempt)
    life.in_force = event.resources
    name = life.spec.name
    out.append(created(name))
    out.append(started(name))
    lifecycle = life.spec.lifecycle
    if lifecycle is not None and lifecycle.post_start is not None and not state.is_ending:
        life.hook = POST_START
        out.append(RunHook(name, POST_START))
    elif life.spec.startup_probe or life.spec.readiness_probe or life.spec.liveness_probe:
        state.plans = None


def _exited(state: PodState, life: ContainerLife, event: ContainerExited, now_ns: int) -> None:
    """The instance has ended; whether another follows depends on policies."""
    life.end(event)
    state.plans = None
    if state.is_ending:
        life.reason = life.message = ""
        return
    if asks_for_all(state, life.spec, event.exit_code) and not state.is_restarting_all:
        state.is_restarting_all = True
        life.is_restart_due = True
    if not runs_again(state, life):
        life.reason = life.message = ""
    else:
        after_exit(state, life, event.at_ns, now_ns)


def container_failed(
    state: PodState, life: ContainerLife, reason: str, message: str, now_ns: int, out: list[Command]
) -> None:
    """It did not start: users hear why, and it is tried again later; at the end of a pod nobody cares."""
    if state.is_ending:
        life.wait("", "", 0)
        return
    out.extend(failed_start(life.spec.name, life.spec.image, reason, message))
    if reason in PULL_REASONS:
        after_failed_pull(state, life, reason, message, now_ns)
    elif reason == NOT_RUN:
        name = life.spec.name
        life.begin("", life.spec.image, "", now_ns, life.attempt)
        end = ContainerExited("", name, "", _START_ERROR_CODE, _START_ERROR, now_ns, message=message)
        _exited(state, life, end, now_ns)
        if runs_again(state, life):
            life.reason, life.message = reason, message
    else:
        life.wait(reason, message, now_ns + RETRY_NS)


def _pod_gone(state: PodState) -> None:
    if state.is_removing:
        state.is_removed = True
