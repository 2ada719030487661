"""The life of one pod on one node: what happened comes in, what to do goes out, and the status can be asked for.

The agent makes one `PodLifecycle` for each pod, hands it everything that concerns the pod (a newer version of the
object, events of the runtime, verdicts of probes, the passing of time) and does what it returns. It asks no clock and
waits for nothing. The decisions are in the rooms beside this one: `starting`, `stopping`, `restarting`, `phase`,
`pod_status`.

What must stay true: every method may be called at any time and in any order; what comes too late (an event of an
instance that is no more, a verdict about a container that stops) changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.kubelet.pods import resizing
from nodeward.kubelet.pods.adoption import adopt
from nodeward.kubelet.pods.commands import Command, DeleteFromApi, RecordEvent
from nodeward.kubelet.pods.container_life import POST_START, ContainerLife, ContainerRole, State, Stop
from nodeward.kubelet.pods.event_texts import WARNING, failed_hook
from nodeward.kubelet.pods.happening import container_failed, happen
from nodeward.kubelet.pods.lifecycle_rules import RETRY_NS, LifecycleRules
from nodeward.kubelet.pods.planning import probe_plans
from nodeward.kubelet.pods.pod_status import pod_status
from nodeward.kubelet.pods.probing import LIVENESS, READINESS, STARTUP, ProbePlan, errored, unhealthy
from nodeward.kubelet.pods.renewal import follow_api, is_echo, renew, take_specs
from nodeward.kubelet.pods.resize_texts import resize_pending
from nodeward.kubelet.pods.resizing import PodResize
from nodeward.kubelet.pods.resource_info import PodResourceInfo
from nodeward.kubelet.pods.restarting import restarts_after_kill
from nodeward.kubelet.pods.starting import step
from nodeward.kubelet.pods.state import PodState, SandboxState
from nodeward.kubelet.pods.stopping import begin_end, begin_stop
from nodeward.kubelet.runtime.interface import FoundPod, RuntimeEvent

# -- the transitions of a pod's life: every change of state that can happen, and what makes it. A test holds each
# assignment against these tables (tests/kubelet/pods/test_transitions.py), and each row must be seen to happen.

#: The pod's surroundings.
SANDBOX_TRANSITIONS: Final[Mapping[tuple[SandboxState, SandboxState], str]] = {
    (
        SandboxState.NONE,
        SandboxState.STARTING,
    ): "StartSandbox is asked for: at the start, and after the delay of a failure",
    (SandboxState.NONE, SandboxState.READY): "the runtime had it before this kubelet started",
    (SandboxState.NONE, SandboxState.OVER): "the pod ends, or was over, before it had one",
    (SandboxState.STARTING, SandboxState.READY): "SandboxStarted",
    (
        SandboxState.STARTING,
        SandboxState.NONE,
    ): "SandboxFailed, or volumes cannot be mounted, or claims not prepared: tried again",
    (SandboxState.STARTING, SandboxState.OVER): "the pod ends before the runtime has answered",
    (SandboxState.READY, SandboxState.OVER): "the pod ends, and no container runs any more",
}
#: Where the latest instance of a container is.
CONTAINER_TRANSITIONS: Final[Mapping[tuple[State, State], str]] = {
    (State.WAITING, State.STARTING): "StartContainer is asked for: its turn has come and its delay is over",
    (State.WAITING, State.RUNNING): "the runtime had it before this kubelet started",
    (State.WAITING, State.EXITED): "it ended under an earlier kubelet, or never ran in a pod that ends",
    (State.STARTING, State.RUNNING): "ContainerStarted",
    (
        State.STARTING,
        State.WAITING,
    ): "ContainerFailed, or its configuration is incomplete, before any instance ran",
    (State.STARTING, State.EXITED): "the same after an instance has ended, or the pod's grace period is over",
    (State.RUNNING, State.EXITED): "ContainerExited",
    (State.EXITED, State.STARTING): "StartContainer is asked for again, by its restart policy",
    (State.EXITED, State.WAITING): "its past counts no more: a new sandbox, or all containers start over",
}
#: How far the stopping of a container is.
STOP_TRANSITIONS: Final[Mapping[tuple[Stop, Stop], str]] = {
    (Stop.NOT, Stop.HOOK): "it is to stop, and has a preStop hook",
    (Stop.NOT, Stop.TURN): "it is to stop, and has none",
    (Stop.NOT, Stop.ASKED): "the pod ends while the container is being started",
    (Stop.HOOK, Stop.TURN): "the hook has ended, or the grace period is over",
    (Stop.HOOK, Stop.NOT): "it ended while its hook ran",
    (Stop.TURN, Stop.ASKED): "StopContainer is asked for: nobody has to stop before it",
    (Stop.TURN, Stop.NOT): "it ended before its turn",
    (Stop.ASKED, Stop.NOT): "it ended, or its start failed, or started after all",
}


class PodLifecycle:
    """One pod on one node."""

    __slots__ = ("_last_plans", "_state")

    def __init__(
        self,
        pod: Pod,
        now_ns: int,
        rules: LifecycleRules,
        found: FoundPod | None = None,
        allocated: PodResourceInfo | None = None,
        actuated: PodResourceInfo | None = None,
    ) -> None:
        """`found`: it runs already, from before the agent's restart.

        `allocated`, `actuated`: what it was allocated then and what the runtime had accepted, unless that is what the
        pod asks for.
        """
        self._state = PodState(pod, now_ns, rules)
        self._last_plans: tuple[ProbePlan, ...] = ()
        if found is not None or pod.status.phase:
            adopt(self._state, found, now_ns)
            self._state.plans = None
        if allocated is not None or pod.status.phase:
            resizing.restore(self._state, allocated, actuated)

    # -- from the API

    def start(self, now_ns: int) -> list[Command]:
        """Begin, or go on with what was found."""
        out: list[Command] = []
        if self._state.pod.metadata.deletion_timestamp is not None:
            self._delete(now_ns, out)
        return self._go_on(now_ns, out)

    def update(self, pod: Pod, now_ns: int) -> list[Command]:
        """The API has a newer version."""
        state = self._state
        invariant(pod.metadata.uid == state.pod.metadata.uid, "a pod with another uid is another pod")
        out: list[Command] = []
        old = state.pod
        if old.spec.resources != pod.spec.resources:
            resizing.resize_of(state)  # which remembers what the pod as a whole was allocated
        state.pod = pod
        if is_echo(old, pod):
            take_specs(state)
            return out
        renew(state, pod, now_ns, out)
        follow_api(state, now_ns, out)
        if pod.metadata.deletion_timestamp is not None:
            self._delete(now_ns, out)
        return self._go_on(now_ns, out)

    def gone(self, now_ns: int) -> list[Command]:
        """The API knows the pod no more, or the node must drop it: stop and remove everything."""
        state = self._state
        state.is_gone = True
        out: list[Command] = []
        self._delete(now_ns, out)
        return self._go_on(now_ns, out)

    def _delete(self, now_ns: int, out: list[Command]) -> None:
        state = self._state
        state.is_deletion = True
        seconds = state.pod.metadata.deletion_grace_period_seconds
        grace_ns = state.grace_ns() if seconds is None else max(1, seconds) * SECOND_NS
        begin_end(state, now_ns, grace_ns, out)

    # -- from the agent itself

    def reject(self, reason: str, message: str, now_ns: int) -> list[Command]:
        """Admission refused it: it fails, and nothing is started; what runs from before a restart stops."""
        state = self._state
        out: list[Command] = []
        if not state.final_phase:
            out.append(RecordEvent(WARNING, reason, message))
            state.is_rejected = not any(life.has_run for life in state.lives())
            state.is_failed = True
            state.reason, state.message = reason, f"Pod was rejected: {message}"
        begin_end(state, now_ns, state.grace_ns(), out)
        return self._go_on(now_ns, out)

    def stop(
        self,
        reason: str,
        message: str,
        now_ns: int,
        grace: float | None = None,
        *,
        is_disruption: bool = True,
    ) -> list[Command]:
        """The node needs it gone (eviction, preemption, shutdown): it stops and ends as Failed."""
        state = self._state
        out: list[Command] = []
        if not state.final_phase and not state.is_failed:
            state.is_failed = True
            state.reason, state.message = reason, message
            state.disruption = message if is_disruption else ""
        begin_end(state, now_ns, state.grace_ns() if grace is None else int(max(1.0, grace) * SECOND_NS), out)
        return self._go_on(now_ns, out)

    def volumes_failed(self, message: str, now_ns: int) -> list[Command]:
        """The sandbox cannot be started yet; the agent has told why, and will be asked again."""
        return self._without_sandbox(now_ns)

    def prepare_failed(self, retry_ns: int, now_ns: int) -> list[Command]:
        """The sandbox cannot be started yet, because claims are not prepared; tried again after `retry_ns`."""
        return self._without_sandbox(now_ns, retry_ns)

    def unprepared(self, now_ns: int) -> list[Command]:
        """No claim of the pod is prepared any more: it can be over."""
        self._state.is_unprepared = True
        self._state.is_unpreparing = False
        return self._go_on(now_ns, [])

    def unprepare_failed(self, retry_ns: int, now_ns: int) -> list[Command]:
        """A driver has not unprepared a claim; tried again after `retry_ns`, and the pod is not over before."""
        self._state.is_unpreparing = False
        self._state.unprepare_ns = now_ns + retry_ns
        return self._go_on(now_ns, [])

    def retry_start(self, now_ns: int) -> list[Command]:
        """What volumes or claims failed for is there now: no need to wait."""
        self._state.sandbox_ns = self._state.unprepare_ns = 0
        return self._go_on(now_ns, [])

    def _without_sandbox(self, now_ns: int, retry_ns: int = RETRY_NS) -> list[Command]:
        if self._state.sandbox is SandboxState.STARTING:
            self._state.sandbox = SandboxState.NONE
            self._state.sandbox_ns = now_ns + retry_ns
        return self._go_on(now_ns, [])

    def config_failed(self, container: str, reason: str, message: str, now_ns: int) -> list[Command]:
        """What the container needs to start (a secret, a config map) is missing: tried again later."""
        out: list[Command] = []
        life = self._state.life(container)
        if life is not None and life.state is State.STARTING:
            container_failed(self._state, life, reason, message, now_ns, out)
        return self._go_on(now_ns, out)

    # -- resizes: the node's allocation decides, the pod's life carries out

    def accept_resize(self, pod: Pod, now_ns: int, *, is_shrinking: bool) -> list[Command]:
        """The node has allocated what this version of the pod asks for; running containers get it from the runtime."""
        out: list[Command] = []
        if not self._state.is_ending:
            resizing.accept(self._state, pod, now_ns, out, is_shrinking=is_shrinking)
        return self._go_on(now_ns, out)

    def defer_resize(self, pod: Pod, reason: str, message: str, now_ns: int) -> list[Command]:
        """The node has not allocated what this version of the pod asks for; `reason` says why."""
        out: list[Command] = []
        generation = pod.metadata.generation
        if not self._state.is_ending and resizing.set_pending(
            self._state, reason, message, generation, now_ns
        ):
            out.append(resize_pending(pod, reason, message, generation))
        return out

    def drop_pending_resize(self, now_ns: int) -> list[Command]:
        """The pod asks for what it is allocated: nothing is pending."""
        resizing.clear_pending(self._state)
        return []

    def settle_resize(self, held: tuple[str, ...], is_applied: bool, now_ns: int) -> list[Command]:
        """Say how far the resize is. `held`: containers that still have CPUs of their old size.

        `is_applied`: whether all containers have the CPUs they are to have.
        """
        state, out = self._state, list[Command]()
        resizing.hold(state, held)
        if state.is_ending:
            return out
        if not resizing.is_actuated(state):
            resizing.set_in_progress(state, "", "", state.pod.metadata.generation, now_ns)
        elif is_applied:
            resizing.complete(state, out)
        return out

    @property
    def resize(self) -> PodResize | None:
        """What is known of the pod's resizes; None if it never was resized."""
        return self._state.resize

    def allocated_pod(self) -> Pod:
        """Return the pod with what is allocated to it; the same object if that is what it asks for."""
        return resizing.allocated_pod(self._state)

    def actuated_info(self) -> PodResourceInfo:
        """Return what the runtime has accepted."""
        return resizing.actuated_info(self._state)

    def allocated(self, container: str) -> ResourceRequirements | None:
        """What the node has promised a container; None for one that is not in the pod."""
        life = self._state.life(container)
        return life.allocated if life is not None else None

    # -- from the runtime, the hooks and the probes

    def happened(self, event: RuntimeEvent, now_ns: int) -> list[Command]:
        """The runtime has told something."""
        state = self._state
        out: list[Command] = []
        happen(state, event, now_ns, out)
        if state.is_removed and state.is_deletion and not state.is_deleted_told:
            state.is_deleted_told = True
            if not state.is_gone and not state.is_static:
                out.append(DeleteFromApi())
        return self._go_on(now_ns, out)

    def hook_done(self, container: str, kind: str, ok: bool, message: str, now_ns: int) -> list[Command]:
        """A hook (`RunHook`) has ended. Its message is for the status only: events go to more people."""
        life = self._state.life(container)
        out: list[Command] = []
        if life is None or life.hook != kind:
            return out
        if not ok:
            out.append(failed_hook(container, kind))
        life.hook = ""
        if kind == POST_START:
            self._state.plans = None
            if not ok:
                life.reason, life.message = "PostStartHookError", message
                self._kill(life, "FailedPostStartHook", self._state.grace_ns(), now_ns, out)
        return self._go_on(now_ns, out)

    def probed(self, container: str, kind: str, ok: bool | None, message: str, now_ns: int) -> list[Command]:
        """A probe came to a verdict, or (None) could not be made."""
        life = self._state.life(container)
        out: list[Command] = []
        if life is None or not life.is_shown_running:
            return out
        if ok is None:
            out.append(errored(container, kind, message))
            return out
        if not ok:
            out.append(unhealthy(container, kind, message))
        if kind == READINESS:
            if life.is_ready is ok:
                return out
            life.is_ready = ok
        elif life.stop is not Stop.NOT or self._state.is_ending:
            return out
        elif not ok:
            self._fail_probe(life, kind, now_ns, out)
        elif kind == STARTUP and not life.is_passed:
            life.is_passed = True
            self._state.plans = None
        else:
            return out
        return self._go_on(now_ns, out)

    def _fail_probe(self, life: ContainerLife, kind: str, now_ns: int, out: list[Command]) -> None:
        state, spec = self._state, life.spec
        probe = spec.liveness_probe if kind == LIVENESS else spec.startup_probe
        grace_ns = state.grace_ns()
        if probe is not None and probe.termination_grace_period_seconds is not None:
            grace_ns = probe.termination_grace_period_seconds * SECOND_NS
        if life.role is ContainerRole.SIDECAR:
            text = f"Init container {spec.name} failed {kind} probe"
            life.is_restart_due = True
        else:
            text = f"Container {spec.name} failed {kind} probe"
            life.is_restart_due = restarts_after_kill(state, spec)
            if life.is_restart_due:
                text += ", will be restarted"
        self._kill(life, text, grace_ns, now_ns, out)

    def _kill(self, life: ContainerLife, text: str, grace_ns: int, now_ns: int, out: list[Command]) -> None:
        self._state.plans = None
        begin_stop(life, text, now_ns, now_ns + grace_ns, out)

    # -- from the clock

    def tick(self, now_ns: int) -> list[Command]:
        """Time has passed."""
        return self._go_on(now_ns, [])

    def next_deadline_ns(self) -> int | None:
        """When to `tick` at the latest; None: time alone changes nothing."""
        return self._state.wake_ns or None

    def _go_on(self, now_ns: int, out: list[Command]) -> list[Command]:
        self._state.status = None
        step(self._state, now_ns, out)
        return out

    # -- questions

    def probes(self) -> Sequence[ProbePlan]:
        """The probes that run now; the same object while they are the same."""
        state = self._state
        if state.plans is None:
            state.plans = self._last_plans = probe_plans(state, self._last_plans)
        return state.plans

    def status(self, now_ns: int) -> PodStatus:
        """The whole status. Nobody may change it: parts of it are shared."""
        return pod_status(self._state, now_ns)

    @property
    def pod(self) -> Pod:
        """The newest version that is known."""
        return self._state.pod

    @property
    def is_terminating(self) -> bool:
        """Nothing is started any more."""
        return self._state.is_ending

    @property
    def is_finished(self) -> bool:
        """It is over and nothing runs: its resources are free, its status will not change."""
        return self._state.sandbox is SandboxState.OVER

    @property
    def has_sandbox(self) -> bool:
        """Whether the pod's sandbox runs."""
        return self._state.sandbox is SandboxState.READY

    @property
    def is_static(self) -> bool:
        """Whether the pod comes from a file of the node."""
        return self._state.is_static

    def container_states(self) -> Iterator[State]:
        """Return where the latest instance of each container is."""
        return (each.state for each in self._state.lives())

    def running_id(self, container: str) -> str:
        """Return the id of a container that runs; "" if it does not."""
        life = self._state.life(container)
        return life.id if life is not None and life.state is State.RUNNING else ""

    def cpus_in_force(self, container: str) -> str | None:
        """Return the CPUs a running container has, as its runtime said last; None if that is not known."""
        life = self._state.life(container)
        if life is None or life.state is not State.RUNNING or life.in_force is None:
            return None
        return life.in_force.cpuset

    def role_of(self, container: str) -> ContainerRole | None:
        """Return what a container is for the pod; None if the pod has none of this name."""
        life = self._state.life(container)
        return None if life is None else life.role

    @property
    def can_be_deleted(self) -> bool:
        """Nothing of it is left on the node, and the API wants it gone."""
        return self._state.is_removed and self._state.is_deletion

    @property
    def is_gone(self) -> bool:
        """Neither the node nor the API knows it any more: the agent can forget it."""
        return self._state.is_removed and self._state.is_gone
