"""The container manager of CPU manager policy `static`: joins topology manager, CPU manager, state file and runtime.

`policy_setup` makes one when a kubelet starts. Admission allocates CPUs through it; pod workers start containers on
the CPUs it names; a pass every reconcile period moves running containers whose CPUs are not those they should have.

What must stay true: the state file is written before anybody acts on a change; a refused pod holds no CPUs but those
it runs on; a container that the runtime could not move stays where it was and is tried again in the next pass.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.duration import SECOND_NS, format_duration
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.container_manager import ResizeRefusal
from nodeward.kubelet.cpu.cpu_manager import ContainerMove, CPUManager
from nodeward.kubelet.cpu.cpu_map import CPUMap, map_of
from nodeward.kubelet.cpu.cpu_metrics import CONTAINER, NUMA_NODE, POD, CPUMetrics
from nodeward.kubelet.cpu.cpu_resizes import CPUResizes
from nodeward.kubelet.cpu.cpuset_notices import CPUSetNotices
from nodeward.kubelet.cpu.node_pods import NodePods
from nodeward.kubelet.cpu.scale_delay import ScaleDelays
from nodeward.kubelet.cpu.state_store import CPUStateStore
from nodeward.kubelet.node.admission import Refusal
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    ResourcesApplied,
    ResourcesRefused,
    Runtime,
    RuntimeEvent,
)
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.kubelet.topology_manager.merging import SINGLE_NUMA_NODE
from nodeward.kubelet.topology_manager.topology_admission import (
    POD_SCOPE,
    TopologyManager,
    TopologyRefusal,
)
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerParts:
    """What the container managers of one host have in common."""

    clock: Clock
    wheel: TimerWheel
    runtime: Runtime
    metrics: CPUMetrics


class StaticCPUs:
    """The CPUs of one node with the static policy."""

    def __init__(
        self,
        node: str,
        settings: KubeletSettings,
        cpus: CPUManager,
        topology: TopologyManager,
        store: CPUStateStore,
        pods: NodePods,
        parts: ManagerParts,
    ) -> None:
        self._node: Final = node
        self._settings: Final = settings
        self.cpus: Final = cpus
        self._topology: Final = topology
        self._store: Final = store
        self._pods: Final = pods
        self._clock, self._wheel = parts.clock, parts.wheel
        self._runtime, self._metrics = parts.runtime, parts.metrics
        self._has_no_quota = settings.gates.enabled("DisableCPUQuotaWithExclusiveCPUs")
        #: the CPUs that containers being started were given
        self._given: dict[tuple[str, str], CPUSet] = {}
        #: the CPUs that the runtime was told to move containers to, and has not answered yet
        self._moving: dict[tuple[str, str], CPUSet] = {}
        delays = cpus.resizing.delays if cpus.resizing is not None else ScaleDelays()
        self._notices: Final = CPUSetNotices(pods, delays, parts.clock, parts.wheel)
        self._resizes: Final = CPUResizes(node, cpus, topology, store, pods, self._notices)
        self._is_stopped = False

    def start(self) -> None:
        """Make passes from now on, the first one at once."""
        policy, state = self.cpus.policy, self.cpus.state
        LOG.info(
            "node %s: CPU manager policy static, reserved CPUs %s, shared CPUs %s, scale-delay-time %s",
            self._node,
            policy.reserved,
            state.default,
            format_duration(self._settings.cpu_options.scale_delay_ns),
        )
        self._metrics.follow(policy, state)
        self._save()
        self._wheel.at(self._clock.monotonic_ns(), self._pass)

    def stop(self) -> None:
        self._is_stopped = True
        self._notices.stop()
        self._metrics.leave(self.cpus.state)

    # -- admission

    def admit(self, pod: Pod) -> Refusal | None:
        before = self.cpus.state.copy()
        refusal = self._topology.admit(pod)
        self._count_admission(pod, refusal)
        if refusal is None:
            try:
                self._store.save(self.cpus.state)
                self._find_applied(pod)
                self._resizes.on_admitted(pod, has_run=pod.metadata.uid in before.entries)
                return None
            except OSError as error:
                refusal = self._store.refusal(error)
        self.cpus.state.restore(before)
        self._topology.forget(pod.metadata.uid)
        return Refusal(refusal.reason, refusal.message)

    def _find_applied(self, pod: Pod) -> None:
        """Learn on which CPUs containers of an earlier kubelet run: those who have the right ones are left alone."""
        uid = pod.metadata.uid
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            text = self._pods.cpus_in_force(uid, container.name)
            if text and (cpus := _cpus_in_force(ContainerResources(cpuset=text))) is not None:
                self.cpus.on_applied(uid, container.name, cpus)

    def _count_admission(self, pod: Pod, refusal: TopologyRefusal | None) -> None:
        metrics, settings = self._metrics, self._settings
        metrics.topology_requests.inc()
        if refusal is not None:
            metrics.topology_errors.inc()
        if settings.topology_policy != SINGLE_NUMA_NODE:
            return
        is_pod = settings.topology_scope == POD_SCOPE
        if refusal is None:
            count = 1 if is_pod else len(pod.spec.init_containers) + len(pod.spec.containers)
            metrics.aligned.inc(POD if is_pod else CONTAINER, NUMA_NODE, by=count)
        elif refusal.reason == "TopologyAffinityError":
            metrics.unaligned.inc(POD if is_pod else CONTAINER, NUMA_NODE)

    def resize(self, pod: Pod) -> ResizeRefusal | None:
        return self._resizes.resize(pod)

    def release(self, uid: str) -> None:
        self.cpus.release(uid)
        self._topology.forget(uid)
        self._resizes.forget(uid)
        for kept in (self._given, self._moving):
            for key in [key for key in kept if key[0] == uid]:
                del kept[key]
        self._save()

    def on_pods_known(self) -> None:
        self.cpus.is_ready = True
        self.cpus.clean_up()
        self._save()

    # -- questions

    def cpuset(self, uid: str, container: str) -> str:
        cpus = self._given[uid, container] = self.cpus.state.assigned_or_default(uid, container)
        return str(cpus)

    def has_exclusive_cpus(self, uid: str, container: str) -> bool:
        return self._has_no_quota and self.cpus.state.assigned(uid, container) is not None

    def assigned_cpuset(self, uid: str, container: str) -> str:
        return str(self.cpus.shown(uid, container))

    def is_applied(self, uid: str) -> bool:
        resizing = self.cpus.resizing
        if resizing is not None and resizing.delays.is_waiting(uid):
            return False
        return all(
            self.cpus.applied(uid, name) == cpus
            for name, cpus in self.cpus.state.entries.get(uid, {}).items()
            if self._pods.running_id(uid, name) is not None
        )

    def is_held(self, uid: str, container: str) -> bool:
        applied = self.cpus.applied(uid, container)
        assigned = self.cpus.state.assigned(uid, container)
        has_others = assigned is not None and applied is not None and applied != assigned
        resizing = self.cpus.resizing
        return has_others or (resizing is not None and resizing.delays.waiting(uid, container) is not None)

    def cpu_map(self, now_ns: int) -> CPUMap:
        policy, state = self.cpus.policy, self.cpus.state
        applied = {
            (uid, name): cpus
            for uid, each in state.entries.items()
            for name in each
            if (cpus := self.cpus.applied(uid, name)) is not None
        }
        return map_of(
            policy.topology,
            policy.reserved,
            state,
            self.cpus.resizing.delays.pending(now_ns) if self.cpus.resizing is not None else {},
            applied,
            scale_delay_ns=self._settings.cpu_options.scale_delay_ns,
            options=self._settings.given.get("cpuManagerPolicyOptions"),
        )

    # -- the runtime

    def on_runtime_event(self, event: RuntimeEvent) -> None:
        match event:
            case ContainerStarted(uid=uid, container=name, resources=resources):
                given = self._given.pop((uid, name), None)
                self._moving.pop((uid, name), None)
                self.cpus.on_ended(uid, name)
                is_told = resources is not None and resources.cpuset is not None
                cpus = _cpus_in_force(resources) if resources is not None and is_told else given
                if cpus is not None:
                    self.cpus.on_applied(uid, name, cpus)
            case ContainerExited(uid=uid, container=name) | ContainerFailed(uid=uid, container=name):
                self._given.pop((uid, name), None)
                self._moving.pop((uid, name), None)
                self.cpus.on_ended(uid, name)
            case ResourcesApplied(uid=uid, container=name, resources=resources):
                told = self._moving.get((uid, name))
                # A runtime that does not say which CPUs are in force has done what it was told.
                cpus = told if resources.cpuset is None else _cpus_in_force(resources)
                if cpus is not None:
                    self.cpus.on_applied(uid, name, cpus)
                if told is not None and cpus == told:  # otherwise the answer is to another change
                    del self._moving[uid, name]
                    if cpus == self.cpus.state.assigned(uid, name):
                        self._on_exclusive_applied(uid, name, cpus)
            case ResourcesRefused(uid=uid, container=name, reason=reason):
                if (refused := self._moving.pop((uid, name), None)) is not None:
                    LOG.warning(
                        "node %s: pod %s: container %s stays on its CPUs, it cannot be moved to %s: %s",
                        *(self._node, uid, name, refused, reason),
                    )

    def _on_exclusive_applied(self, uid: str, name: str, cpus: CPUSet | None) -> None:
        """A container runs on its new exclusive CPUs: its pod may be done with its resize."""
        text = f"Container {name} runs on CPUs {cpus}"
        self._pods.record(uid, RecordEvent("Normal", "CPUSetApplied", text, name))
        noticed_ns = self._notices.end(uid, name)
        if noticed_ns is not None:
            seconds = (self._clock.monotonic_ns() - noticed_ns) / SECOND_NS
            self._metrics.scale_down_delay.observe(seconds)
        self._pods.sync(uid)

    def _pass(self) -> None:
        """Reconcile, and again one period after the end of this pass."""
        if self._is_stopped:
            return
        try:
            self.reconcile()
        finally:
            self._wheel.at(self._clock.monotonic_ns() + self._settings.cpu_reconcile_ns, self._pass)

    def reconcile(self) -> None:
        """End the delays that are over, then move every running container whose CPUs are not those it should have."""
        resizing = self.cpus.resizing
        ended = resizing.apply_due(self._clock.monotonic_ns()) if resizing is not None else []
        moves = list(self.cpus.reconcile(self._pods.running_id))
        self._save()
        for move in moves:
            key = (move.uid, move.container)
            # What the runtime has not answered within a period is asked for again in the next.
            if self._moving.pop(key, None) == move.cpus or self._is_held_back(move):
                continue
            self._moving[key] = move.cpus
            self._runtime.update_resources(
                move.uid, move.container, ContainerResources(cpuset=str(move.cpus))
            )

        for uid in {uid: None for uid, name in ended if self._pods.running_id(uid, name) is None}:
            self._pods.sync(uid)

    def _is_held_back(self, move: ContainerMove) -> bool:
        """Whether a container waits for its delay, or would lose CPUs before its file says so."""
        resizing = self.cpus.resizing
        if resizing is None:
            return False
        if resizing.delays.waiting(move.uid, move.container) is not None:
            return True
        if resizing.delays.is_written(move.uid, move.container):
            return False
        applied = self.cpus.applied(move.uid, move.container)
        return applied is None or not applied <= move.cpus

    def _save(self) -> None:
        """Write the state file; what cannot be written now is written with the next change or pass."""
        try:
            self._store.save(self.cpus.state)
        except OSError as error:
            LOG.error("node %s: the CPU manager's state file %s: %s", self._node, self._store.path, error)


def _cpus_in_force(resources: ContainerResources) -> CPUSet | None:
    try:
        return CPUSet.parse(resources.cpuset) if resources.cpuset else None
    except CPUSetError:
        return None
