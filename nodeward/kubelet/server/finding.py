"""Which pod, which container, which instance of it: what every request to a kubelet begins with.

One server may stand for many hosts (a fleet of simulated nodes and one that runs processes); a pod is looked for in all
of them. Refusals are `Refused`: a code and a text, as kubelets answer them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodeward.api.core_v1.pod_status import ContainerStatus, PodStatus
from nodeward.base.errors import NodewardError
from nodeward.base.fielderror import quote
from nodeward.kubelet.agent import ManagedPod
from nodeward.kubelet.host import Host


class Refused(NodewardError):
    """A request a kubelet does not grant."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


#: The hosts as they are now.
Hosts = Callable[[], Iterable[Host]]


@dataclass(frozen=True, slots=True)
class ServedPod:
    """A pod, and who runs it."""

    host: Host
    managed: ManagedPod

    def status(self, now_ns: int) -> PodStatus:
        return self.managed.life.status(now_ns)

    def running_id(self, container: str, now_ns: int) -> str:
        """The id of the instance that runs; "" if none does."""
        found = container_status(self.status(now_ns), container)
        return found.container_id if found is not None and found.state.running is not None else ""


def find_pod(hosts: Hosts, namespace: str, name: str, missing: str = "pod does not exist") -> ServedPod:
    for host in hosts():
        managed = host.find_pod(namespace, name)
        if managed is not None:
            return ServedPod(host, managed)
    raise Refused(404, missing)


def has_container(found: ServedPod, name: str) -> bool:
    spec = found.managed.life.pod.spec
    names = {each.name for each in (*spec.containers, *spec.init_containers)}
    return name in names or any(each.name == name for each in spec.ephemeral_containers)


def container_status(status: PodStatus, name: str) -> ContainerStatus | None:
    groups = (status.container_statuses, status.init_container_statuses, status.ephemeral_container_statuses)
    return next((each for group in groups for each in group if each.name == name), None)


def log_attempt(status: PodStatus, pod: str, name: str, *, previous: bool) -> int:
    """The number of the instance whose log is meant."""
    about = f"container {quote(name)} in pod {quote(pod)}"
    found = container_status(status, name)
    if found is None:
        raise Refused(400, f"{about} is not available")
    state, last = found.state, found.last_state.terminated
    is_latest_shown = state.running is not None or (
        state.terminated is not None and bool(state.terminated.container_id)
    )
    # The count is the number of the latest instance, which is the one shown as last while another is waited for.
    before = found.restart_count - 1 if is_latest_shown else found.restart_count
    if previous:
        if last is None or not last.container_id:
            raise Refused(400, f"previous terminated {about} not found")
        return max(before, 0)
    if is_latest_shown:
        return found.restart_count
    if last is not None or state.terminated is not None:
        if last is None or not last.container_id:
            raise Refused(400, f"{about} is terminated")
        return max(before, 0)
    if state.waiting is None:
        raise Refused(400, f"{about} is waiting to start - no logs yet")
    reasons = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }
    raise Refused(
        400, f"{about} is waiting to start: {reasons.get(state.waiting.reason, state.waiting.reason)}"
    )
