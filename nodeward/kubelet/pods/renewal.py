"""A newer version of a pod's object: what may change in it while the pod lives, and what is only our own echo.

What must stay true: resources are not taken over here (what the node has promised changes only by its own decision);
a container that is stopping, or a pod that ends, is not disturbed.
"""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import TERMINAL
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.kubelet.pods.commands import Command
from nodeward.kubelet.pods.conditions import OWNED
from nodeward.kubelet.pods.container_life import ContainerLife, ContainerRole, State, Stop
from nodeward.kubelet.pods.state import PodState
from nodeward.kubelet.pods.stopping import begin_end, begin_stop


def is_echo(old: Pod, new: Pod) -> bool:
    """Whether a newer version holds nothing but what this node wrote itself: nothing follows from it.

    Every start of a pod comes back so, two or three times, which a fleet must not pay for.
    """
    before, now = old.metadata, new.metadata
    return (
        before.generation == now.generation
        and before.deletion_timestamp == now.deletion_timestamp
        and before.deletion_grace_period_seconds == now.deletion_grace_period_seconds
        and (old.status.phase == new.status.phase or new.status.phase not in TERMINAL)
        and _of_others(old.status) == _of_others(new.status)
        and old.spec == new.spec
    )


def _of_others(status: PodStatus) -> tuple[object, ...]:
    return (
        [each for each in status.conditions if each.type not in OWNED],
        status.nominated_node_name,
        status.resource_claim_statuses,
        status.extended_resource_claim_status,
        status.node_allocatable_resource_claim_statuses,
        status.volume_health,
    )


def take_specs(state: PodState) -> None:
    """Point to the containers of the newest version, so that an older one can be forgotten."""
    spec = state.pod.spec
    for lives, specs in ((state.inits, spec.init_containers), (state.mains, spec.containers)):
        for life, new in zip(lives, specs, strict=False):
            if life.allocated is life.spec.resources:
                life.allocated = new.resources
            life.spec = new


def follow_api(state: PodState, now_ns: int, out: list[Command]) -> None:
    """Somebody else (who took the node for dead) has ended the pod in the API: there is no way back."""
    status = state.pod.status
    if status.phase in TERMINAL and not state.final_phase and not state.is_ending:
        state.final_phase = status.phase
        state.reason, state.message = status.reason, status.message
        begin_end(state, now_ns, state.grace_ns(), out)


def renew(state: PodState, pod: Pod, now_ns: int, out: list[Command]) -> None:
    """Take over what may change in a spec: images, deadlines, and debugging containers that come along."""
    spec = pod.spec
    for lives, specs in ((state.inits, spec.init_containers), (state.mains, spec.containers)):
        for life, new in zip(lives, specs, strict=False):
            old, life.spec = life.spec, new
            if life.allocated == new.resources:
                life.allocated = new.resources  # so that the older version can be forgotten
            if old.image != new.image and life.role is not ContainerRole.INIT and not state.is_ending:
                _reimage(state, life, now_ns, out)
    known = {life.spec.name: life for life in state.ephemerals}
    if len(spec.ephemeral_containers) != len(known):
        state.ephemerals = tuple(
            known.get(each.name) or ContainerLife(each, ContainerRole.EPHEMERAL)
            for each in spec.ephemeral_containers
        )
    state.plans = None


def _reimage(state: PodState, life: ContainerLife, now_ns: int, out: list[Command]) -> None:
    """Another image: a running container is replaced, whatever its restart policy; a waiting one tries at once."""
    life.image_failures = 0
    if life.state is State.RUNNING and life.stop is Stop.NOT:
        life.is_restart_due = True
        who = "Init container" if life.role is ContainerRole.SIDECAR else "Container"
        more = "" if life.role is ContainerRole.SIDECAR else ", will be restarted"
        text = f"{who} {life.spec.name} definition changed{more}"
        begin_stop(life, text, now_ns, now_ns + state.grace_ns(), out)
    elif not life.is_alive and life.reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
        life.retry_ns = life.show_ns = 0
