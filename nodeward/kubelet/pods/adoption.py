"""Taking over a pod from before: what the runtime still has, and what an earlier agent wrote into the status.

In come what was found running and the pod's status in the API; both go into the pod's state before anything else
happens.

What must stay true: what runs is not started again, and keeps its id, its start and its count; what ran and is
nowhere to be found has ended badly, never silently; a pod that was over stays over.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod_phase import TERMINAL
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole, State
from nodeward.kubelet.pods.container_status import exit_of_status
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.pods.state import PodState, SandboxState
from nodeward.kubelet.pods.stopping import unknown_exit
from nodeward.kubelet.runtime.interface import ContainerExited, FoundContainer, FoundPod

_LOST: Final = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
_ASSUMED: Final = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)


def adopt(state: PodState, found: FoundPod | None, now_ns: int) -> None:
    """Fill the state of a pod that may have lived on this node before."""
    status = state.pod.status
    written = {
        each.name: each
        for each in (
            *status.init_container_statuses,
            *status.container_statuses,
            *status.ephemeral_container_statuses,
        )
    }
    has_sandbox = found is not None and bool(found.sandbox_id)
    if found is not None:
        state.ips = found.ips
        if has_sandbox:
            state.sandbox = SandboxState.READY
        for name, instances in _by_name(found).items():
            life = state.life(name)
            if life is not None:
                _take(state.rules, life, instances, written.pop(name, None))
    for name, old in written.items():
        life = state.life(name)
        if life is not None:
            _remember(state.rules, life, old)
    if status.phase in TERMINAL:
        _stay_over(state, now_ns)
    elif has_sandbox:
        _find_progress(state)
    else:
        # A new sandbox begins with the first init container, whatever passed in the old one.
        for life in state.inits:
            if life.exit is not None and (life.role is ContainerRole.SIDECAR or life.exit.exit_code == 0):
                life.last_exit = life.exit
                life.forget()


def _by_name(found: FoundPod) -> dict[str, list[FoundContainer]]:
    by_name: dict[str, list[FoundContainer]] = {}
    for each in sorted(found.containers, key=lambda each: each.attempt):
        by_name.setdefault(each.name, []).append(each)
    return by_name


def _take(
    rules: LifecycleRules, life: ContainerLife, instances: list[FoundContainer], old: ContainerStatus | None
) -> None:
    """The runtime knows it: the latest instance counts, the one before is how it ended last."""
    latest = instances[-1]
    attempt = latest.attempt
    if old is not None:
        attempt = max(attempt, old.restart_count)
        life.last_exit = exit_of_status(life.name, rules, old.last_state.terminated)
    if len(instances) > 1 and instances[-2].exited is not None:
        life.last_exit = instances[-2].exited
    life.begin(latest.id, latest.image, latest.image_id, latest.started_ns, attempt)
    life.in_force = latest.resources
    if latest.exited is not None:
        life.end(latest.exited)
    elif (
        old is not None and not rules.forgets_readiness and old.container_id == rules.container_id(latest.id)
    ):
        life.is_passed = life.is_passed or bool(old.started)
        life.is_ready = life.is_ready or old.ready


def _remember(rules: LifecycleRules, life: ContainerLife, old: ContainerStatus) -> None:
    """The runtime has never heard of it, but an earlier agent has written about it."""
    life.restart_count = old.restart_count
    life.last_exit = exit_of_status(life.name, rules, old.last_state.terminated)
    exited: ContainerExited | None = None
    if old.state.terminated is not None:
        exited = exit_of_status(life.name, rules, old.state.terminated)
    elif old.state.running is not None:
        exited = unknown_exit(life, _LOST)
    elif old.state.waiting is not None and life.last_exit is not None:
        # It waited to be started again: how it ended decides whether it will.
        exited, life.last_exit = life.last_exit, None
    if exited is not None:
        life.id = old.container_id.removeprefix(f"{rules.runtime_type}://")
        life.image, life.image_id = old.image, old.image_id
        life.attempt = old.restart_count + 1
        life.end(exited)
    else:
        life.attempt = old.restart_count


def _find_progress(state: PodState) -> None:
    """How far the init containers are, told by the last one of which there is a trace."""
    inits = state.inits
    if any(life.state is not State.WAITING for life in state.mains):
        state.init_at = len(inits)
        for life in inits:
            if life.role is ContainerRole.INIT and life.exit is None and life.state is State.WAITING:
                life.end(ContainerExited("", life.name, "", 0, "Completed", 0, 0, 0, _ASSUMED))
    else:
        traces = [number for number, life in enumerate(inits) if life.state is not State.WAITING]
        state.init_at = max(traces, default=0)


def _stay_over(state: PodState, now_ns: int) -> None:
    """It was over before: nothing starts, what still runs stops, and the words stay."""
    status = state.pod.status
    state.final_phase = status.phase
    state.reason, state.message = status.reason, status.message
    state.is_ending = True
    state.end_ns = now_ns + state.grace_ns()
    state.init_at = len(state.inits) if any(life.exit for life in state.mains) else 0
    state.is_rejected = bool(state.mains) and not status.container_statuses
    if not state.ips:
        state.ips = tuple(each.ip for each in status.pod_ips)
    if not state.has_alive:
        state.sandbox = SandboxState.OVER
