"""Resizing of a running pod: what was allocated to it is actuated step by step, and the status says how far that is.

The allocation of the node decides whether a resize is accepted (`accept`) or pending (`set_pending`); from then on this
module works on the pod's state: `resize_step` asks for one change of one container at a time, decreases before
increases and memory before cpu, or for a restart where the container's resizePolicy wants one; `on_applied` and
`on_refused` take in what the runtime says. Called by the pod's life; pure.

What must stay true: a change is asked for only after the one before was answered; what the runtime has not accepted
is shown as it was; a refused change is tried again until it is accepted or the pod asks for something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.pods.commands import Command, UpdateResources
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole, State, Stop
from nodeward.kubelet.pods.lifecycle_rules import RETRY_NS
from nodeward.kubelet.pods.resize_texts import INFEASIBLE, resize_completed, resize_error, resize_started
from nodeward.kubelet.pods.resource_info import (
    CPU,
    MEMORY,
    RESIZABLE,
    PodResourceInfo,
    amount,
    is_same_size,
    overlaid,
    with_info,
)
from nodeward.kubelet.pods.state import PodState
from nodeward.kubelet.pods.stopping import begin_stop
from nodeward.kubelet.runtime.interface import ResourcesApplied, ResourcesRefused
from nodeward.kubelet.runtime.resources import ContainerResources, kernel_resources, shown_resources

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"
DEFERRED = "Deferred"
_ERROR = "Error"
_RESTART = "RestartContainer"


@dataclass(slots=True)
class SentUpdate:
    """A change the runtime was asked for and has not answered."""

    container: str
    #: cpu or memory
    resource: str
    #: what the container is to have
    wanted: ResourceRequirements
    since_ns: int


@dataclass(slots=True)
class PodResize:
    """All that is known of the resizes of one pod. Pods that were never resized have none."""

    #: what is allocated to the pod as a whole
    pod_level: ResourceRequirements | None
    #: containers whose instance has other resources than those allocated, and what it has
    actuated: dict[str, ResourceRequirements] = field(default_factory=dict)
    #: what the status showed of containers before the resize that is in progress
    before: dict[str, ResourceRequirements] = field(default_factory=dict)
    #: containers that still have CPUs their new size does not include (KEP-6122)
    held: tuple[str, ...] = ()
    pending: PodCondition | None = None
    in_progress: PodCondition | None = None
    sent: SentUpdate | None = None
    #: no change is asked for before
    retry_ns: int = 0
    #: whether the accepted resize gives something back to the node
    is_shrinking: bool = False
    #: how long each update took, and whether it was accepted; until somebody counts them
    took_ns: list[tuple[bool, int]] = field(default_factory=list)


def resize_of(state: PodState) -> PodResize:
    """Return what is known of the pod's resizes, from the first one on."""
    if state.resize is None:
        state.resize = PodResize(state.pod.spec.resources)
    return state.resize


def allocated_info(state: PodState) -> PodResourceInfo:
    """Return what is allocated to the pod."""
    pod_level = state.resize.pod_level if state.resize is not None else state.pod.spec.resources
    return PodResourceInfo({life.name: life.allocated for life in (*state.inits, *state.mains)}, pod_level)


def allocated_pod(state: PodState) -> Pod:
    """Return the pod with what is allocated to it; the same object if that is what it asks for."""
    return with_info(state.pod, allocated_info(state))


def actuated_info(state: PodState) -> PodResourceInfo:
    """Return what the runtime has accepted."""
    actuated = state.resize.actuated if state.resize is not None else {}
    info = allocated_info(state)
    return PodResourceInfo(
        {name: actuated.get(name, each) for name, each in info.containers.items()}, info.pod_level
    )


def restore(state: PodState, allocated: PodResourceInfo | None, actuated: PodResourceInfo | None) -> None:
    """Go on from what an earlier kubelet had allocated and actuated, and from the conditions it has written."""
    conditions = [each for each in state.pod.status.conditions if each.type in (PENDING, IN_PROGRESS)]
    if allocated is None and not conditions:
        return
    resize = resize_of(state)
    for condition in conditions:
        # Unlike upstream, which counts from its own start: a condition keeps its time as long as its reason.
        if condition.type == PENDING:
            resize.pending = condition
        else:
            resize.in_progress = condition
    if allocated is None:
        return
    resize.pod_level = allocated.pod_level
    statuses = (*state.pod.status.init_container_statuses, *state.pod.status.container_statuses)
    resize.before = {each.name: each.resources for each in statuses if each.resources is not None}
    for life in (*state.inits, *state.mains):
        life.allocated = allocated.containers.get(life.name, life.allocated)
        given = actuated.containers.get(life.name) if actuated is not None else None
        if given is not None and life.is_alive and not is_same_size(given, life.allocated):
            resize.actuated[life.name] = given


def accept(state: PodState, pod: Pod, now_ns: int, out: list[Command], *, is_shrinking: bool) -> None:
    """The node has allocated what this version of the pod asks for, to all of its containers."""
    resize = resize_of(state)
    wanted = {each.name: each.resources for each in (*pod.spec.init_containers, *pod.spec.containers)}
    for life in (*state.inits, *state.mains):
        name, resources = life.name, wanted.get(life.name, life.allocated)
        if life.allocated != resources:
            if name not in resize.held:
                resize.before[name] = shown(state, life)
            if life.is_alive:
                resize.actuated.setdefault(name, life.allocated)
        life.allocated = resources
    resize.pod_level = pod.spec.resources
    resize.retry_ns = 0
    resize.is_shrinking = is_shrinking
    resize.pending = resize.in_progress = None
    generation = pod.metadata.generation
    set_in_progress(state, "", "", generation, now_ns)
    state.resources = None
    out.append(resize_started(pod, generation))


def forget_instance(state: PodState, name: str) -> None:
    """A new instance of a container is asked for: it gets what is allocated."""
    resize = state.resize
    if resize is not None:
        resize.actuated.pop(name, None)
        if resize.sent is not None and resize.sent.container == name:
            resize.sent = None


# -- actuation


def resize_step(state: PodState, now_ns: int, out: list[Command]) -> None:
    """Ask for the next change, if there is one and nothing is under way."""
    resize = state.resize
    if resize is None or not resize.actuated or resize.sent is not None:
        return
    if now_ns < resize.retry_ns:
        state.wake(resize.retry_ns)
        return
    changing = []
    for life in (*state.inits, *state.mains):
        actuated = resize.actuated.get(life.name)
        if actuated is None or life.state is not State.RUNNING or life.stop is not Stop.NOT:
            continue
        if is_same_size(actuated, life.allocated):
            del resize.actuated[life.name]
        elif _needs_restart(life, actuated):
            life.is_restart_due = True
            text = f"Container {life.name} resize requires restart"
            begin_stop(life, text, now_ns, now_ns + state.grace_ns(), out)
        elif _is_resizable(state, life):
            changing.append((life, actuated))
    for resource in (MEMORY, CPU):
        for life in _in_order(changing, resource):
            resize.sent = SentUpdate(life.name, resource, life.allocated, now_ns)
            out.append(UpdateResources(life.name, _update(life.allocated, resource)))
            return


def _in_order(
    changing: list[tuple[ContainerLife, ResourceRequirements]], resource: str
) -> list[ContainerLife]:
    """The containers whose amount of a resource changes: first those that give back, the last of them first."""
    less: list[ContainerLife] = []
    more: list[ContainerLife] = []
    for life, actuated in changing:
        for kind in ("limits", "requests"):
            wanted, given = amount(life.allocated, kind, resource), amount(actuated, kind, resource)
            if wanted != given:
                (more if wanted > given else less).append(life)
                break
    return [*reversed(less), *more]


def _update(resources: ResourceRequirements, resource: str) -> ContainerResources:
    kernel = kernel_resources(resources, None)
    if resource == MEMORY:
        return ContainerResources(memory_bytes=kernel.memory_bytes)
    return ContainerResources(cpu_shares=kernel.cpu_shares, cpu_quota_us=kernel.cpu_quota_us)


def _needs_restart(life: ContainerLife, actuated: ResourceRequirements) -> bool:
    spec = life.spec
    if not isinstance(spec, Container):
        return False
    return any(
        policy.restart_policy == _RESTART
        and any(
            amount(life.allocated, kind, policy.resource_name) != amount(actuated, kind, policy.resource_name)
            for kind in ("limits", "requests")
        )
        for policy in spec.resize_policy
        if policy.resource_name in RESIZABLE
    )


def _is_resizable(state: PodState, life: ContainerLife) -> bool:
    return life.role is not ContainerRole.INIT or state.rules.has_init_resize


def on_applied(state: PodState, life: ContainerLife, event: ResourcesApplied, now_ns: int) -> None:
    """The runtime has changed a container; not every change was asked for here."""
    resize = state.resize
    sent = resize.sent if resize is not None else None
    if resize is None or sent is None or sent.container != life.name:
        return
    actuated = resize.actuated.get(life.name, life.allocated)
    if not _answers(sent, actuated, event.resources):
        return
    resize.sent = None
    resize.took_ns.append((True, now_ns - sent.since_ns))
    actuated = overlaid(actuated, sent.wanted, (sent.resource,))
    if is_same_size(actuated, life.allocated):
        resize.actuated.pop(life.name, None)
    else:
        resize.actuated[life.name] = actuated


def _answers(sent: SentUpdate, actuated: ResourceRequirements, found: ContainerResources) -> bool:
    """Whether what is in force can be the answer: the CPU manager changes containers, too."""
    wanted, old = _update(sent.wanted, sent.resource), _update(actuated, sent.resource)
    for name in ("cpu_shares", "cpu_quota_us", "memory_bytes"):
        value = getattr(found, name)
        if value is not None and value == getattr(old, name) != getattr(wanted, name):
            return False
    return True


def on_refused(
    state: PodState, life: ContainerLife, event: ResourcesRefused, now_ns: int, out: list[Command]
) -> bool:
    """The runtime has not changed a container. Returns whether that was asked for here."""
    resize = state.resize
    sent = resize.sent if resize is not None else None
    if resize is None or sent is None or sent.container != life.name:
        return False
    resize.sent = None
    if life.state is not State.RUNNING:
        return True
    resize.took_ns.append((False, now_ns - sent.since_ns))
    resize.retry_ns = now_ns + RETRY_NS
    if set_in_progress(state, _ERROR, event.reason, state.pod.metadata.generation, now_ns):
        condition = resize.in_progress
        generation = condition.observed_generation if condition is not None else 0
        out.append(resize_error(allocated_pod(state), generation, event.reason))
    return True


def is_actuated(state: PodState) -> bool:
    """Whether the runtime has accepted all that is allocated, for every container that runs or is to run again."""
    resize = state.resize
    if resize is None:
        return True
    if resize.sent is not None:
        return False
    for life in (*state.inits, *state.mains):
        actuated = resize.actuated.get(life.name)
        if (
            actuated is not None
            and (life.is_alive or life.is_restart_due)
            and _is_resizable(state, life)
            and not is_same_size(actuated, life.allocated)
        ):
            return False
    return True


def complete(state: PodState, out: list[Command]) -> None:
    """Everything is as allocated: the resize is over."""
    resize = state.resize
    if resize is None or resize.in_progress is None:
        return
    generation = resize.in_progress.observed_generation
    resize.in_progress = None
    resize.before.clear()
    state.status = None
    out.append(resize_completed(allocated_pod(state), generation))


# -- what the status says


def shown(state: PodState, life: ContainerLife) -> ResourceRequirements:
    """Return the resources a status shows: those in force in a running container, else those allocated."""
    resize = state.resize
    if resize is None:
        return life.resources
    found = life.allocated
    if life.state is State.RUNNING:
        actuated = resize.actuated.get(life.name)
        if actuated is not None:
            found = overlaid(found, actuated, RESIZABLE)
        found = shown_resources(found, life.in_force)
    before = resize.before.get(life.name)
    if before is not None and life.name in resize.held:
        return overlaid(found, before, (CPU,))
    return found


def hold(state: PodState, names: tuple[str, ...]) -> None:
    """These containers still have CPUs that their new size does not include: they show the cpu of their old size."""
    resize = state.resize
    if resize is not None and resize.held != names:
        resize.held = names
        state.status = None
        state.resources = None


def set_pending(state: PodState, reason: str, message: str, generation: int, now_ns: int) -> bool:
    """The resize is not allocated, for now or (Infeasible) for ever. Returns whether that is news."""
    resize = resize_of(state)
    old = resize.pending
    reason = INFEASIBLE if reason == INFEASIBLE else DEFERRED
    generation = generation if state.rules.has_generation else 0
    if old is not None and (old.reason, old.message, old.observed_generation) == (
        reason,
        message,
        generation,
    ):
        return False
    resize.pending = _condition(state, PENDING, old, reason, message, generation, now_ns)
    state.status = None
    return old is None or (old.reason, old.observed_generation) != (reason, generation)


def clear_pending(state: PodState) -> None:
    """The resize is not pending any more."""
    if state.resize is not None and state.resize.pending is not None:
        state.resize.pending = None
        state.status = None


def set_in_progress(state: PodState, reason: str, message: str, generation: int, now_ns: int) -> bool:
    """The resize is allocated and not actuated. Returns whether the condition says something else than before.

    The generation stays that of the condition before; so do its reason and message if none are given.
    """
    resize = resize_of(state)
    old = resize.in_progress
    if old is not None:
        generation = old.observed_generation
        if not reason and not message:
            reason, message = old.reason, old.message
        if (old.reason, old.message) == (reason, message):
            return False
    resize.in_progress = _condition(state, IN_PROGRESS, old, reason, message, generation, now_ns)
    state.status = None
    return True


def _condition(
    state: PodState,
    type_: str,
    old: PodCondition | None,
    reason: str,
    message: str,
    generation: int,
    now_ns: int,
) -> PodCondition:
    stamp = rfc3339(now_ns)
    since = old.last_transition_time if old is not None and old.reason == reason else None
    return PodCondition(
        type=type_,
        status="True",
        observed_generation=generation if state.rules.has_generation else 0,
        last_probe_time=stamp,
        last_transition_time=since or stamp,
        reason=reason,
        message=message,
    )
