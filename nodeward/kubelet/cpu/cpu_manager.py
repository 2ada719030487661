"""The CPU manager with the static policy: hints, allocations, clean-up and what running containers must be moved to.

The topology manager calls it as a `HintProvider`; the kubelet reports started containers (`on_container_started`) and
asks for a pass of `reconcile` in each period. It holds the `CPUState`; who calls it writes that to the state file.

What must stay true: CPUs of pods that are gone return before any hint, allocation or reconcile, but never before all
sources of pods are known; a container whose set the runtime refused is tried again in the next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_metrics import CPUMetrics
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.exclusive_requests import CPU, pod_cpus
from nodeward.kubelet.cpu.exclusive_resize import ExclusiveResize
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.topology_manager.hint_provider import AdmitOperation
from nodeward.kubelet.topology_manager.hints import Hints


class ContainerMove(NamedTuple):
    """A running container whose CPUs are not those it should have."""

    uid: str
    container: str
    container_id: str
    cpus: CPUSet


class CPUManager:
    """The CPU manager of one node.

    resizing: None as in Kubernetes 1.37, where a resize neither asks for NUMA nodes nor moves CPUs.
    active_pods: the pods of the node that have not ended. `is_ready`: all sources of pods have reported.
    """

    def __init__(
        self,
        policy: StaticPolicy,
        state: CPUState,
        active_pods: Callable[[], Collection[Pod]],
        metrics: CPUMetrics | None = None,
        resizing: ExclusiveResize | None = None,
    ) -> None:
        """Check the state against the machine. Raises `InvalidState`."""
        policy.start(state)
        self.policy: Final = policy
        self.state: Final = state
        self.is_ready = False
        self._active_pods: Final = active_pods
        self._metrics: Final = metrics
        self.resizing: Final = resizing
        #: What the runtime was last told, by pod UID and container name.
        self._applied: dict[str, dict[str, CPUSet]] = {}

    def hints(self, pod: Pod, container: Container, operation: AdmitOperation) -> Mapping[str, Hints]:
        self.clean_up()
        hints: Hints = None
        if operation is AdmitOperation.RESIZE:
            hints = self.resizing.hints(pod, container) if self.resizing is not None else None
        elif not self._is_resized(pod):
            hints = self.policy.hints(self.state, pod, container)
        return {} if hints is None else {CPU: hints}

    def pod_hints(self, pod: Pod, operation: AdmitOperation) -> Mapping[str, Hints]:
        self.clean_up()
        hints: Hints = None
        if operation is AdmitOperation.RESIZE:
            hints = self.resizing.pod_hints(pod) if self.resizing is not None else None
        elif not self._is_resized(pod):
            hints = self.policy.pod_hints(self.state, pod)
        return {} if hints is None else {CPU: hints}

    def _is_resized(self, pod: Pod) -> bool:
        """Whether a pod from before a restart has other CPUs than it asks for: where they are is settled already."""
        entries = self.state.entries.get(pod.metadata.uid)
        return (
            self.resizing is not None
            and entries is not None
            and any(
                each.name in entries and len(entries[each.name]) != self.policy.exclusive_cpus(pod, each)
                for each in (*pod.spec.init_containers, *pod.spec.containers)
            )
        )

    def allocate(
        self, pod: Pod, container: Container, affinity: int | None, operation: AdmitOperation
    ) -> None:
        self.clean_up()
        if operation is AdmitOperation.RESIZE:
            if self.resizing is not None:
                self.resizing.allocate(pod, container, affinity)
            return
        uid, name = pod.metadata.uid, container.name
        is_counted = self._metrics is not None and self.policy.exclusive_cpus(pod, container) > 0
        is_new = self.state.assigned(uid, name) is None
        try:
            self.policy.allocate(self.state, pod, container, affinity)
        finally:
            if is_counted and self._metrics is not None:
                self._metrics.count_pinning(self.policy, self.state.assigned(uid, name), is_new=is_new)

    def allocate_pod(self, pod: Pod, affinity: int | None, operation: AdmitOperation) -> None:
        self.clean_up()
        if operation is not AdmitOperation.ADD:
            return
        uid = pod.metadata.uid
        is_counted = (
            self._metrics is not None and self.policy.with_pod_level and uid not in self.state.pod_entries
        )
        try:
            self.policy.allocate_pod(self.state, pod, affinity)
        finally:
            if is_counted and self._metrics is not None:
                self._count_pod(pod, self._metrics)

    def _count_pod(self, pod: Pod, metrics: CPUMetrics) -> None:
        if pod_cpus(pod, with_pod_level=True) == 0:
            return
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        own = sum(self.policy.exclusive_cpus(pod, each) > 0 for each in containers)
        is_allocated = pod.metadata.uid in self.state.pod_entries
        metrics.pinning_requests.inc(by=own)
        metrics.pinning_errors.inc(by=not is_allocated)
        metrics.with_pod_level().count_pod(own, len(containers) - own, is_allocated=is_allocated)

    def on_container_started(self, uid: str, container: str) -> None:
        """Record that the runtime created a container with the exclusive CPUs it is assigned."""
        if (cpus := self.state.assigned(uid, container)) is not None:
            self.on_applied(uid, container, cpus)

    def on_applied(self, uid: str, container: str, cpus: CPUSet) -> None:
        """Record that the runtime has moved a container."""
        self._applied.setdefault(uid, {})[container] = cpus

    def shown(self, uid: str, container: str) -> CPUSet:
        """Return the exclusive CPUs a container is to have, or has; none if it shares its CPUs."""
        waiting = self.resizing.delays.waiting(uid, container) if self.resizing is not None else None
        if waiting is not None:
            return waiting.cpus
        return self.state.assigned(uid, container) or CPUSet.EMPTY

    def applied(self, uid: str, container: str) -> CPUSet | None:
        """Return the CPUs a container was moved to last; None if that is not known."""
        return self._applied.get(uid, {}).get(container)

    def on_ended(self, uid: str, container: str) -> None:
        """Record that a container does not run: its next instance starts on what it is given then."""
        self._applied.get(uid, {}).pop(container, None)

    def release(self, uid: str) -> None:
        """Return the CPUs of a pod of which nothing runs."""
        for container in list(self.state.entries.get(uid, ())):
            self._remove(uid, container)
        self._applied.pop(uid, None)

    def _remove(self, uid: str, container: str) -> None:
        self.policy.remove(self.state, uid, container)
        if self.resizing is not None:
            self.resizing.delays.forget(uid, container)

    def clean_up(self) -> None:
        """Return the CPUs of containers that no active pod has."""
        if not self.is_ready:
            return
        active = {
            pod.metadata.uid: {each.name for each in (*pod.spec.init_containers, *pod.spec.containers)}
            for pod in self._active_pods()
        }
        for uid, containers in [(uid, list(each)) for uid, each in self.state.entries.items()]:
            for container in containers:
                if container not in active.get(uid, ()):
                    self._remove(uid, container)
        for uid in [uid for uid in self._applied if uid not in active]:
            del self._applied[uid]

    def reconcile(self, running: Callable[[str, str], str | None]) -> Iterator[ContainerMove]:
        """Clean up, then yield each running container that must be moved, in the order of pods and containers.

        running: the id of a running container by pod UID and name; None if it does not run. Who moves a container
        calls `on_applied`.
        """
        self.clean_up()
        for pod in self._active_pods():
            uid = pod.metadata.uid
            for container in (*pod.spec.init_containers, *pod.spec.containers):
                container_id = running(uid, container.name)
                cpus = self.state.assigned_or_default(uid, container.name)
                if container_id is None or not cpus:
                    continue
                if cpus != self._applied.get(uid, {}).get(container.name):
                    yield ContainerMove(uid, container.name, container_id, cpus)
