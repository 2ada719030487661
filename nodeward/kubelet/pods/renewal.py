"""A newer version of a pod's object: what may change in it while the pod lives.

What must stay true: resources are not taken over here (what the node has promised changes only by its own decision);
a container that is stopping, or a pod that ends, is not disturbed.
"""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.pods.commands import Command
from nodeward.kubelet.pods.container_life import ContainerLife, Role, State, Stop
from nodeward.kubelet.pods.state import PodState
from nodeward.kubelet.pods.stopping import begin_stop


def renew(state: PodState, pod: Pod, now_ns: int, out: list[Command]) -> None:
    """Take over what may change in a spec: images, deadlines, and debugging containers that come along."""
    state.pod = pod
    spec = pod.spec
    for lives, specs in ((state.inits, spec.init_containers), (state.mains, spec.containers)):
        for life, new in zip(lives, specs, strict=False):
            old, life.spec = life.spec, new
            if old.image != new.image and life.role is not Role.INIT and not state.is_ending:
                _reimage(state, life, now_ns, out)
    known = {life.spec.name: life for life in state.ephemerals}
    if len(spec.ephemeral_containers) != len(known):
        state.ephemerals = tuple(
            known.get(each.name) or ContainerLife(each, Role.EPHEMERAL) for each in spec.ephemeral_containers
        )
    state.plans = None


def _reimage(state: PodState, life: ContainerLife, now_ns: int, out: list[Command]) -> None:
    """Another image: a running container is replaced, whatever its restart policy; a waiting one tries at once."""
    life.image_failures = 0
    if life.state is State.RUNNING and life.stop is Stop.NOT:
        life.is_restart_due = True
        who = "Init container" if life.role is Role.SIDECAR else "Container"
        more = "" if life.role is Role.SIDECAR else ", will be restarted"
        text = f"{who} {life.spec.name} definition changed{more}"
        begin_stop(life, text, now_ns, now_ns + state.grace_ns(), out)
    elif not life.is_alive and life.reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
        life.retry_ns = life.show_ns = 0
