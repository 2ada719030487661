"""Resizes of pods with exclusive CPUs: decided, allocated, written to the state file and announced.

The container manager of the static policy hands in resized pods, and admitted ones: those of an earlier kubelet may
have other CPUs than they were allocated, because it stopped before their resize was done. `exclusive_resize` knows the
rules.

What must stay true: all containers of a pod get what they ask for, or none; a refused resize changes nothing; a
shortage of CPUs that are held in a scale-down delay is no reason to give up (Deferred), any other is (Infeasible).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import format_duration
from nodeward.base.quantity import ZERO, Quantity
from nodeward.kubelet.container_manager import ResizeRefusal
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.cpuset_notices import CPUSetNotices
from nodeward.kubelet.cpu.exclusive_resize import NOT_ALLOCATED, ExclusiveResize
from nodeward.kubelet.cpu.node_pods import NodePods
from nodeward.kubelet.cpu.scale_delay import ScaleDelays
from nodeward.kubelet.cpu.state_store import CPUStateStore
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.pods.resize_texts import INFEASIBLE
from nodeward.kubelet.topology_manager.hint_provider import AdmitOperation
from nodeward.kubelet.topology_manager.topology_admission import TopologyManager, TopologyRefusal

LOG: Final = logging.getLogger(__name__)

OUT_OF_CPU: Final = "OutOfcpu"


class CPUResizes:
    """The resizes of one node."""

    def __init__(
        self,
        node: str,
        cpus: CPUManager,
        topology: TopologyManager,
        store: CPUStateStore,
        pods: NodePods,
        notices: CPUSetNotices,
    ) -> None:
        self._node: Final = node
        self._cpus: Final = cpus
        self._topology: Final = topology
        self._store: Final = store
        self._pods: Final = pods
        self._notices: Final = notices
        #: the CPU requests that were allocated, by pod UID and container name
        self._requests: dict[str, dict[str, Quantity]] = {}

    def on_admitted(self, pod: Pod, *, has_run: bool) -> None:
        """Remember what a pod was allocated.

        has_run: it has exclusive CPUs from an earlier kubelet. A resize that was under way goes on, and its files are
        written again: that kubelet may have stopped before it had written them.
        """
        uid = pod.metadata.uid
        self._requests[uid] = _cpu_requests(pod)
        if has_run and self._cpus.resizing is not None:
            self._catch_up(pod)
            applied = {name: self._cpus.applied(uid, name) for name in self._cpus.state.entries[uid]}
            self._notices.announce(
                uid,
                [
                    name
                    for name, cpus in applied.items()
                    if cpus is None or not cpus <= self._cpus.shown(uid, name)
                ],
            )

    def forget(self, uid: str) -> None:
        """Forget a pod that has ended."""
        self._requests.pop(uid, None)
        self._notices.forget(uid)

    def resize(self, pod: Pod) -> ResizeRefusal | None:
        """Give a pod the exclusive CPUs its new version asks for, or say why that cannot be."""
        uid, requests = pod.metadata.uid, _cpu_requests(pod)
        known = self._requests.get(uid, {})
        changed = [name for name, amount in requests.items() if amount != known.get(name)]
        refusal = self._resize(pod, changed) if changed else None
        if refusal is None:
            self._requests[uid] = requests
        return refusal

    def _resize(self, pod: Pod, changed: Collection[str]) -> ResizeRefusal | None:
        """Give containers that ask for another amount of CPU what they ask for; all of them or none."""
        resizing = self._cpus.resizing
        if resizing is None:
            return None  # `resize_checks` refuses those that would change exclusive CPUs
        refusal = resizing.check(pod, changed)
        if refusal is not None:
            return refusal
        before, delays = self._cpus.state.copy(), resizing.delays.copy()
        trouble = self._try(pod, resizing)
        if trouble is None:
            self._announce(pod, before, delays)
            return None
        text = f"{NOT_ALLOCATED}: {trouble.message}"
        if self._fits_without_delays(pod, resizing):
            return ResizeRefusal(
                False, OUT_OF_CPU, f"{text}; CPUs that are held in a scale-down delay will do"
            )
        return ResizeRefusal(True, INFEASIBLE, text, NOT_ALLOCATED)

    def _try(self, pod: Pod, resizing: ExclusiveResize, *, is_kept: bool = True) -> TopologyRefusal | None:
        """Allocate what a resized pod asks for; what fails, or is not to be kept, changes nothing."""
        uid, state = pod.metadata.uid, self._cpus.state
        before, delays, hints = state.copy(), resizing.delays.copy(), dict(self._topology.affinity(uid))
        refusal = self._topology.admit(pod, AdmitOperation.RESIZE)
        if refusal is None and is_kept:
            try:
                self._store.save(state)
                return None
            except OSError as error:
                refusal = self._store.refusal(error)
        state.restore(before)
        resizing.delays.restore(delays)
        self._topology.restore(uid, hints)
        return refusal

    def _fits_without_delays(self, pod: Pod, resizing: ExclusiveResize) -> bool:
        """Whether a resize that failed could be done if no CPU were held in a delay."""
        before, delays = self._cpus.state.copy(), resizing.delays.copy()
        resizing.without_delays()
        refusal = self._try(pod, resizing, is_kept=False)
        self._cpus.state.restore(before)
        resizing.delays.restore(delays)
        return refusal is None and any(delays.all_waiting())

    def _announce(self, pod: Pod, before: CPUState, delays: ScaleDelays) -> None:
        """Tell the containers of a resized pod their new sets, before they lose any CPU."""
        resizing, uid = self._cpus.resizing, pod.metadata.uid
        if resizing is None:
            return
        losing, is_other = [], False
        for name in self._cpus.state.entries.get(uid, {}):
            old, new = before.assigned(uid, name) or CPUSet.EMPTY, self._cpus.shown(uid, name)
            waited = delays.waiting(uid, name)
            if new == (old if waited is None else waited.cpus):
                continue
            is_other = True
            self._notices.end(uid, name)
            if not old <= new:
                losing.append(name)
            if (waiting := resizing.delays.waiting(uid, name)) is not None:
                span = format_duration(waiting.delay_ns)
                text = f"Container {name} keeps CPUs {old} for at least {span}, then it has {waiting.cpus}"
                self._pods.record(uid, RecordEvent("Normal", "ScaleDownDelayStarted", text, name))
        if is_other:
            self._notices.announce(uid, losing)

    def _catch_up(self, pod: Pod) -> None:
        """Resize a pod that was resized when the kubelet stopped: its containers have other CPUs than allocated."""
        entries = self._cpus.state.entries.get(pod.metadata.uid, {})
        changed = [
            each.name
            for each in (*pod.spec.init_containers, *pod.spec.containers)
            if each.name in entries and len(entries[each.name]) != self._cpus.policy.exclusive_cpus(pod, each)
        ]
        refusal = self._resize(pod, changed) if changed else None
        if refusal is not None:
            shown = f"{pod.metadata.namespace}/{pod.metadata.name}"
            LOG.warning("node %s: pod %s keeps the CPUs it has: %s", self._node, shown, refusal.message)


def _cpu_requests(pod: Pod) -> dict[str, Quantity]:
    return {
        each.name: each.resources.requests.get("cpu", ZERO)
        for each in (*pod.spec.init_containers, *pod.spec.containers)
    }
