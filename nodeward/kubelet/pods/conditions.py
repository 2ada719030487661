"""The conditions of a pod that its node owns, beside those it only passes on.

In go the pod's state and the statuses of its containers, out comes the whole list: first what others wrote (the
scheduler's verdicts, readiness gates, disruptions), then PodReadyToStartContainers, Initialized, Ready,
ContainersReady, PodScheduled.

What must stay true: a condition whose status stays keeps its lastTransitionTime; one that stays altogether is the
same object; conditions of others are never changed or lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nodeward.api.core_v1.pod_phase import FAILED, SUCCEEDED, TERMINAL
from nodeward.api.core_v1.pod_status import ContainerStatus, PodCondition
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole
from nodeward.kubelet.pods.restarting import could_restart_all
from nodeward.kubelet.pods.state import PodState, SandboxState

#: What a node of some version writes itself.
OWNED: Final = frozenset(
    {
        *(
            "PodScheduled",
            "Ready",
            "Initialized",
            "ContainersReady",
            "PodResizeInProgress",
            "PodResizePending",
        ),
        *("PodReadyToStartContainers", "AllContainersRestarting"),
    }
)
_SANDBOX: Final = "PodReadyToStartContainers"
_RESTARTING: Final = "AllContainersRestarting"
_DISRUPTION: Final = "DisruptionTarget"
_TRUE: Final = "True"
_FALSE: Final = "False"


class _Writer:
    """Writes conditions one by one, and reuses what has not changed."""

    __slots__ = ("generation", "old", "out", "stamp")

    def __init__(self, state: PodState, now_ns: int) -> None:
        self.old = {condition.type: condition for condition in state.conditions}
        self.out: list[PodCondition] = []
        self.generation = state.pod.metadata.generation if state.rules.has_generation else 0
        self.stamp = rfc3339(now_ns)

    def add(self, type_: str, status: str, reason: str = "", message: str = "") -> PodCondition:
        old = self.old.get(type_)
        since = None
        if old is not None and old.status == status:
            if old.reason == reason and old.message == message and old.observed_generation == self.generation:
                self.out.append(old)
                return old
            since = old.last_transition_time
        made = PodCondition(
            type=type_,
            observed_generation=self.generation,
            status=status,
            last_transition_time=since or self.stamp,
            reason=reason,
            message=message,
        )
        self.out.append(made)
        return made


def pod_conditions(
    state: PodState,
    inits: Sequence[ContainerStatus],
    mains: Sequence[ContainerStatus],
    phase: str,
    now_ns: int,
) -> list[PodCondition]:
    """All conditions of the pod. `phase`: what it is, or is meant to become."""
    rules = state.rules
    write = _Writer(state, now_ns)
    others = [each for each in state.pod.status.conditions if not _is_owned(state, each.type)]
    is_over = state.sandbox is SandboxState.OVER
    resize = state.resize
    if resize is not None and rules.has_container_resources and phase not in TERMINAL:
        others += [each for each in (resize.pending, resize.in_progress) if each is not None]
    if state.disruption and is_over:
        others = [each for each in others if each.type != _DISRUPTION]
        write.add(_DISRUPTION, _TRUE, "TerminationByKubelet", state.disruption)
    write.out[:0] = others
    if state.is_rejected:
        return write.out
    if rules.has_sandbox_condition:
        if state.sandbox is SandboxState.READY:
            write.add(_SANDBOX, _TRUE)
        else:
            text = "pod sandbox is not ready" if is_over else "no pod sandbox exists"
            write.add(_SANDBOX, _FALSE, "PodSandboxNotReady", text)
    write.add("Initialized", *_initialized(state, inits, phase))
    ready = _containers_ready(state, inits, mains, phase)
    if ready[0] == _TRUE and state.pod.spec.readiness_gates:
        write.add("Ready", *_gated(state))
    else:
        write.add("Ready", *ready)
    write.add("ContainersReady", *ready)
    write.add("PodScheduled", _TRUE)
    if rules.has_restart_all and could_restart_all(state):
        if state.is_restarting_all:
            why = "container exited with restart policy rule"
            write.add(_RESTARTING, _TRUE, "RestartAllContainersStarted", why)
        else:
            write.add(_RESTARTING, _FALSE, _ended(phase))
    return write.out


def _is_owned(state: PodState, type_: str) -> bool:
    if type_ == _SANDBOX:
        return state.rules.has_sandbox_condition
    if type_ == _RESTARTING:
        return state.rules.has_restart_all
    return type_ in OWNED


def _ended(phase: str) -> str:
    return "PodCompleted" if phase == SUCCEEDED else "PodFailed" if phase == FAILED else ""


def _initialized(state: PodState, inits: Sequence[ContainerStatus], phase: str) -> tuple[str, str, str]:
    if phase == SUCCEEDED:
        return (_TRUE, "PodCompleted", "")
    if state.init_at >= len(state.inits) or any(_was_started(life) for life in state.mains):
        return (_TRUE, "", "")
    if state.rules.has_restart_all and any(
        each.type == "Initialized" and each.status == _TRUE for each in state.conditions
    ):
        # The pod was started over; what was initialized once does not become uninitialized.
        return (_TRUE, "", "")
    late = [
        status.name
        for life, status in zip(state.inits, inits, strict=True)
        if not (status.started if life.role is ContainerRole.SIDECAR else status.ready)
    ]
    if not late:
        return (_TRUE, "", "")
    return (_FALSE, "ContainersNotInitialized", f"containers with incomplete status: {_names(late)}")


def _was_started(life: ContainerLife) -> bool:
    return life.is_shown_running or life.shown_exit is not None


def _containers_ready(
    state: PodState, inits: Sequence[ContainerStatus], mains: Sequence[ContainerStatus], phase: str
) -> tuple[str, str, str]:
    ended = _ended(phase)
    if ended:
        return (_FALSE, ended, "")
    late = [
        status.name
        for life, status in zip(state.inits, inits, strict=True)
        if life.role is ContainerRole.SIDECAR and not status.ready
    ]
    late += [status.name for status in mains if not status.ready]
    if not late:
        return (_TRUE, "", "")
    return (_FALSE, "ContainersNotReady", f"containers with unready status: {_names(late)}")


def _gated(state: PodState) -> tuple[str, str, str]:
    """Ready by its containers; whoever guards a readiness gate must say so too."""
    said = {each.type: each.status for each in state.pod.status.conditions}
    wrong = []
    for gate in state.pod.spec.readiness_gates:
        status = said.get(gate.condition_type)
        if status is None:
            wrong.append(
                f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.'
            )
        elif status != _TRUE:
            wrong.append(
                f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}'
            )
    return (_FALSE, "ReadinessGatesNotReady", ", ".join(wrong)) if wrong else (_TRUE, "", "")


def _names(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
