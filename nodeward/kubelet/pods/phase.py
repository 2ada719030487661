"""The phase of a pod: Pending, Running, Succeeded or Failed, from what its containers show.

What must stay true: a terminal phase stays, and is not said while anything still runs; containers that will run again
keep a pod Running; sidecars never decide whether it succeeded.
"""

from __future__ import annotations

from nodeward.api.core_v1.pod_phase import FAILED, PENDING, RUNNING, SUCCEEDED, TERMINAL
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole
from nodeward.kubelet.pods.restarting import policy_restarts
from nodeward.kubelet.pods.state import PodState
from nodeward.kubelet.runtime.interface import ContainerExited

#: How a container ended that was removed to start the whole pod over; it will run again, whatever its policy.
RESTARTING_ALL = "RestartingAllContainers"


def phase_of(state: PodState) -> str:
    """What the status says."""
    if state.final_phase:
        return state.final_phase
    phase = computed_phase(state, is_terminal=False)
    if phase not in TERMINAL:
        return phase
    # Terminal by what the main containers show, but something (a sidecar, a debugging container) is still stopping.
    return RUNNING if any(life.has_run for life in state.mains) else PENDING


def computed_phase(state: PodState, *, is_terminal: bool) -> str:
    """What the containers say. `is_terminal`: none of them will run again, whatever their policies."""
    has_pending = False
    for life in state.inits:
        if life.role is ContainerRole.INIT:
            if life.is_shown_running:
                has_pending = True
                continue
            exited = life.shown_exit or life.shown_last_exit
            if exited is None:
                has_pending = True
            elif exited.exit_code and not _comes_back(state, life, exited):
                return FAILED
    running, waiting, is_late = _sidecars(state)
    stopped = succeeded = final = 0
    for life in state.mains:
        if life.is_shown_running:
            running += 1
            continue
        exited = life.shown_exit or life.shown_last_exit
        if exited is None:
            waiting += 1
            continue
        stopped += 1
        final += not _comes_back(state, life, exited)
        succeeded += exited.exit_code == 0 and life.shown_exit is not None
    if has_pending or waiting or (is_late and not any(life.has_run for life in state.mains)):
        return PENDING
    if running:
        return RUNNING
    if not stopped:
        return PENDING
    if not is_terminal and stopped != final:
        return RUNNING
    return SUCCEEDED if stopped == succeeded else FAILED


def has_initialized(state: PodState) -> bool:
    """Whether there is any sign that main containers were due."""
    if not state.inits or state.init_at >= len(state.inits):
        return True
    return any(life.has_run or life.exit or life.last_exit for life in state.mains)


def _sidecars(state: PodState) -> tuple[int, int, bool]:
    """How many run, how many wait for their first start, and whether one is not through its startup."""
    running = waiting = 0
    is_late = False
    for life in state.inits:
        if life.role is ContainerRole.SIDECAR:
            if life.is_shown_running:
                running += 1
                is_late = is_late or not life.is_started
            elif life.shown_exit is None and life.shown_last_exit is None:
                waiting += 1
                is_late = True
    return running, waiting, is_late


def _comes_back(state: PodState, life: ContainerLife, exited: ContainerExited) -> bool:
    return exited.reason == RESTARTING_ALL or policy_restarts(state, life.spec, exited.exit_code)
