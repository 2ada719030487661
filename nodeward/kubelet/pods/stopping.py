"""How containers stop: the hook, the turn, the grace period; one of them for a failed probe, or all for the end.

In goes the pod's state, out come commands. A container that is to stop runs its preStop hook first; a sidecar then
waits for all main containers and for the sidecars started after it; then the runtime is asked, with what is left of
the grace period and never less than two seconds. Hooks and turns are cut off when the grace period is over.

What must stay true: what once began to stop is not told twice; a pod that ends is over only when nothing runs any
more and its claims are unprepared.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod_phase import FAILED, TERMINAL
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.commands import (
    Command,
    RemovePod,
    RunHook,
    StopContainer,
    UnprepareResources,
)
from nodeward.kubelet.pods.container_life import PRE_STOP, ContainerLife, ContainerRole, State, Stop
from nodeward.kubelet.pods.event_texts import killing
from nodeward.kubelet.pods.lifecycle_rules import LEAST_GRACE_SECONDS
from nodeward.kubelet.pods.phase import computed_phase, has_initialized
from nodeward.kubelet.pods.state import PodState, SandboxState
from nodeward.kubelet.runtime.interface import ContainerExited

UNKNOWN_REASON: Final = "ContainerStatusUnknown"
UNKNOWN_MESSAGE: Final = "The container could not be located when the pod was terminated"
UNKNOWN_CODE: Final = 137


def begin_stop(life: ContainerLife, message: str, now_ns: int, end_ns: int, out: list[Command]) -> None:
    """A running container is to stop by `end_ns`."""
    out.append(killing(life.spec.name, message))
    life.stop_ns = end_ns
    lifecycle = life.spec.lifecycle
    if lifecycle is not None and lifecycle.pre_stop is not None and end_ns > now_ns:
        life.stop = Stop.HOOK
        life.hook = PRE_STOP
        out.append(RunHook(life.spec.name, PRE_STOP, (end_ns - now_ns) / SECOND_NS))
    else:
        life.stop = Stop.TURN
        life.hook = ""


def advance_stop(
    state: PodState, life: ContainerLife, now_ns: int, out: list[Command], is_turn: bool = True
) -> None:
    """Go on with a container that is stopping; its time may be up."""
    is_late = now_ns >= life.stop_ns
    if life.stop is Stop.HOOK and (is_late or not life.hook):
        life.stop = Stop.TURN
        life.hook = ""
    if life.stop is Stop.TURN and (is_late or is_turn):
        life.stop = Stop.ASKED
        _ask(life, now_ns, out)
    if life.stop is not Stop.ASKED:
        state.wake(life.stop_ns)


def _ask(life: ContainerLife, now_ns: int, out: list[Command]) -> None:
    left = (life.stop_ns - now_ns) / SECOND_NS
    out.append(StopContainer(life.spec.name, max(float(LEAST_GRACE_SECONDS), left)))


def begin_end(state: PodState, now_ns: int, grace_ns: int, out: list[Command]) -> None:
    """Nothing is started from now on, and all that runs stops within `grace_ns`. Later calls can only shorten it."""
    end_ns = now_ns + grace_ns
    state.plans = None
    state.is_restarting_all = False
    if not state.is_ending:
        state.is_ending = True
        state.end_ns = end_ns
        return
    if end_ns >= state.end_ns:
        return
    state.end_ns = end_ns
    for life in state.lives():
        if life.stop is not Stop.NOT and end_ns < life.stop_ns:
            life.stop_ns = end_ns
            if life.stop is Stop.ASKED:
                _ask(life, now_ns, out)


def end_step(state: PodState, now_ns: int, out: list[Command]) -> None:
    """Bring a pod that is ending nearer to its end."""
    if state.sandbox is not SandboxState.OVER:
        is_blocked = any(life.is_alive for life in state.mains)
        has_running = False
        is_starting = False
        # Back to front, so that every sidecar finds out whether a later one still lives.
        for life in (*state.ephemerals, *state.mains, *reversed(state.inits)):
            if life.state is State.STARTING:
                is_starting = True
                if life.stop is Stop.NOT:
                    # A runtime that can give up a start does; with another it is stopped as soon as it runs.
                    life.stop = Stop.ASKED
                    life.stop_ns = now_ns
                    _ask(life, now_ns, out)
            elif life.state is State.RUNNING:
                has_running = True
                if life.stop is Stop.NOT:
                    begin_stop(life, f"Stopping container {life.spec.name}", now_ns, state.end_ns, out)
                elif life.stop_ns > state.end_ns:
                    life.stop_ns = state.end_ns
                advance_stop(
                    state, life, now_ns, out, not (life.role is ContainerRole.SIDECAR and is_blocked)
                )
            is_blocked = is_blocked or (life.role is ContainerRole.SIDECAR and life.is_alive)
        if has_running:
            return
        if is_starting:
            # A pod that is to be deleted is removed whole when its time is up, whatever becomes of the start.
            if not (state.is_deletion or state.is_gone):
                return
            if now_ns < state.end_ns:
                state.wake(state.end_ns)
                return
        if not state.is_unprepared:
            _unprepare(state, now_ns, out)
            return
        _settle(state)
    if (state.is_deletion or state.is_gone) and not state.is_removing:
        state.is_removing = True
        state.wake_ns = 0
        out.append(RemovePod())


def _unprepare(state: PodState, now_ns: int, out: list[Command]) -> None:
    """Have the pod's claims unprepared; whoever waits for the end of the pod may give its devices to others then."""
    if state.is_unpreparing:
        return
    if now_ns < state.unprepare_ns:
        state.wake(state.unprepare_ns)
        return
    state.is_unpreparing = True
    out.append(UnprepareResources())


def _settle(state: PodState) -> None:
    """Nothing runs any more: what will be said of the pod for ever."""
    state.sandbox = SandboxState.OVER
    state.plans = None
    for life in state.lives():
        life.reason = life.message = ""
        life.retry_ns = life.show_ns = 0
    is_static = state.is_static
    if not state.final_phase:
        phase = FAILED if state.is_failed else computed_phase(state, is_terminal=not is_static)
        if phase in TERMINAL or not is_static:
            # What was never seen to succeed has failed.
            state.final_phase = phase if phase in TERMINAL else FAILED
    if not state.is_rejected:
        _fill_unknown(state)


def _fill_unknown(state: PodState) -> None:
    """A container nobody saw ending counts as failed, unless the pod never came so far as to start it."""
    if has_initialized(state):
        for life in state.mains:
            _fill_one(life)
    tried = [number for number, life in enumerate(state.inits) if life.exit or life.last_exit or life.has_run]
    for life in state.inits[: max(tried, default=0) + 1]:
        _fill_one(life)


def _fill_one(life: ContainerLife) -> None:
    if life.exit is None or life.is_alive:
        life.end(unknown_exit(life, UNKNOWN_MESSAGE))


def unknown_exit(life: ContainerLife, message: str) -> ContainerExited:
    """How a container ended that nobody saw ending."""
    return ContainerExited("", life.spec.name, life.id, UNKNOWN_CODE, UNKNOWN_REASON, 0, 0, 0, message)
