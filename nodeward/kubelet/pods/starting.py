"""What is to be started next: the sandbox, init containers in order, then main containers, and restarts in between.

In goes the pod's state, out come commands. One container starts at a time; the next waits for its image, its start
and its postStart hook. Init containers pass one after the other; a sidecar lets the next one go once it has started,
and is kept running from then on. Debugging containers start whenever the sandbox is there.

What must stay true: no main container starts before every init container has done its part; nothing is started before
its wait is over; when no main container runs, or will run again, the pod ends.
"""

from __future__ import annotations

from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.commands import Command, RecordEvent, RemoveContainer, StartContainer, StartSandbox
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole, State, Stop
from nodeward.kubelet.pods.event_texts import NORMAL
from nodeward.kubelet.pods.phase import RESTARTING_ALL
from nodeward.kubelet.pods.resizing import forget_instance, resize_step
from nodeward.kubelet.pods.restarting import count_restart, runs_again, show_wait
from nodeward.kubelet.pods.state import PodState, SandboxState
from nodeward.kubelet.pods.stopping import UNKNOWN_CODE, advance_stop, begin_end, begin_stop, end_step
from nodeward.kubelet.runtime.interface import ContainerExited

_REMOVED = "The container is removed because RestartAllContainers in place"
_DEADLINE = "Pod was active on the node longer than the specified deadline"
DEADLINE_EXCEEDED = "DeadlineExceeded"


def step(state: PodState, now_ns: int, out: list[Command]) -> None:
    """Everything that is due now. Also finds out when to look again (`wake_ns`)."""
    state.wake_ns = 0
    if state.is_removing:
        return
    if _is_past_deadline(state, now_ns):
        out.append(RecordEvent(NORMAL, DEADLINE_EXCEEDED, _DEADLINE))
        begin_end(state, now_ns, state.grace_ns(), out)
    if not state.is_ending:
        if state.resize is not None:
            resize_step(state, now_ns, out)
        if state.is_restarting_all:
            _reset_step(state, now_ns, out)
        if not state.is_restarting_all:
            _start_step(state, now_ns, out)
    if state.is_ending:
        end_step(state, now_ns, out)


def _start_step(state: PodState, now_ns: int, out: list[Command]) -> None:
    if state.sandbox is not SandboxState.READY:
        if state.sandbox is SandboxState.NONE:
            _start_sandbox(state, now_ns, out)
        return
    for life in state.ephemerals:
        if not life.is_alive and runs_again(state, life):
            _start(state, life, now_ns, out)
    is_busy = state.is_starting_one
    inits = state.inits
    if inits:
        while state.init_at < len(inits) and _has_passed(inits[state.init_at]):
            state.init_at += 1
        for number, life in enumerate(inits[: state.init_at + 1]):
            if life.state is State.RUNNING:
                if life.stop is not Stop.NOT:
                    advance_stop(state, life, now_ns, out)
            elif life.role is ContainerRole.SIDECAR or number == state.init_at:
                if not runs_again(state, life):
                    begin_end(state, now_ns, state.grace_ns(), out)
                    return
                is_busy = _keep(state, life, now_ns, out, is_busy)
        if state.init_at < len(inits):
            return
    is_over = True
    for life in state.mains:
        if life.state is State.RUNNING:
            is_over = False
            if life.stop is not Stop.NOT:
                advance_stop(state, life, now_ns, out)
        elif life.state is State.STARTING:
            is_over = False
        elif runs_again(state, life):
            is_over = False
            is_busy = _keep(state, life, now_ns, out, is_busy)
    if is_over:
        begin_end(state, now_ns, state.grace_ns(), out)


def _start_sandbox(state: PodState, now_ns: int, out: list[Command]) -> None:
    if all(life.exit is not None and not runs_again(state, life) for life in state.mains):
        # It was over before this agent came, and nobody has said so yet.
        begin_end(state, now_ns, state.grace_ns(), out)
    elif now_ns >= state.sandbox_ns:
        state.sandbox = SandboxState.STARTING
        out.append(StartSandbox())
    else:
        state.wake(state.sandbox_ns)


def _has_passed(life: ContainerLife) -> bool:
    """Whether the next init container may go."""
    if life.role is ContainerRole.SIDECAR:
        return life.is_started
    return life.state is State.EXITED and life.exit is not None and life.exit.exit_code == 0


def _keep(state: PodState, life: ContainerLife, now_ns: int, out: list[Command], is_busy: bool) -> bool:
    """A container that should run: start it when it may. Says whether one is being started."""
    if life.state is State.STARTING:
        return True
    if life.retry_ns <= now_ns:
        life.show_ns = 0
        if is_busy:
            return True
    return _start(state, life, now_ns, out) or is_busy


def _start(state: PodState, life: ContainerLife, now_ns: int, out: list[Command]) -> bool:
    """Start it, unless its wait is not over; says whether it is being started."""
    if life.retry_ns > now_ns:
        if life.show_ns:
            if now_ns >= life.show_ns:
                show_wait(state, life, out)
            else:
                state.wake(life.show_ns)
        state.wake(life.retry_ns)
        return False
    if life.state is State.EXITED:
        count_restart(life, now_ns)
    life.state = State.STARTING
    forget_instance(state, life.spec.name)
    out.append(StartContainer(life.spec.name, life.attempt))
    return True


def _is_past_deadline(state: PodState, now_ns: int) -> bool:
    """Whether the pod has been active for too long; otherwise time will tell."""
    seconds = state.pod.spec.active_deadline_seconds
    if seconds is None or state.is_ending:
        return False
    at_ns = state.start_ns + seconds * SECOND_NS
    if now_ns < at_ns:
        state.wake(at_ns)
        return False
    state.is_failed = True
    state.reason, state.message = DEADLINE_EXCEEDED, _DEADLINE
    return True


def _reset_step(state: PodState, now_ns: int, out: list[Command]) -> None:
    """A rule said: start the whole pod over. Everything stops at once, is removed, and begins with the first."""
    has_alive = False
    for life in (*state.inits, *state.mains):
        if life.is_alive:
            has_alive = True
            if life.state is State.RUNNING:
                if life.stop is Stop.NOT:
                    begin_stop(life, "killing", now_ns, now_ns, out)
                life.stop_ns = now_ns
                advance_stop(state, life, now_ns, out)
    if has_alive:
        return
    state.is_restarting_all = False
    state.init_at = 0
    for life in (*state.inits, *state.mains):
        if not life.has_run or life.exit is None:
            continue
        if life.last_exit is not None and life.last_exit.id:
            out.append(RemoveContainer(life.last_exit.id))
        out.append(RemoveContainer(life.id))
        gone = ContainerExited("", life.spec.name, "", UNKNOWN_CODE, RESTARTING_ALL, 0, 0, 0, _REMOVED)
        life.last_exit = gone
        life.restart_count = life.attempt
        life.forget()
        if life.is_restart_due:
            # Unlike upstream: the container that asks for it waits like one that crashes, or a pod whose first
            # container fails at once would be started over without end.
            life.is_restart_due = False
            count_restart(life, now_ns)
        else:
            life.retry_ns = life.show_ns = 0
        life.reason, life.message = RESTARTING_ALL, _REMOVED
