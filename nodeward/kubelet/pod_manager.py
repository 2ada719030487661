"""The pod manager: every pod a host takes care of, from the moment the API or a file names it.

The host calls `on_pod_changed` and `on_pod_deleted` for pods of its registered nodes, `on_static_pod` for pods from
files, and `on_mirror_changed` and `on_mirror_deleted` for what the API shows of those. A new pod is admitted
(`allocation`), what ran of it before is adopted, and its worker starts (`pod_workers`); the status manager writes what
becomes of it.

What must stay true: a pod that went from the API while no kubelet was there is removed from the node by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import TERMINAL
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.kubelet.admission_claims import AdmissionClaims
from nodeward.kubelet.agent import Agent, ManagedPod
from nodeward.kubelet.kubelet_events import KubeletEvents
from nodeward.kubelet.metrics import KubeletMetrics
from nodeward.kubelet.mirror_pods import MirrorPods
from nodeward.kubelet.node.admission import warn_of_update
from nodeward.kubelet.pod_workers import PodWorkers
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.runtime.interface import FoundPod, PodGone, Runtime, RuntimeEvent
from nodeward.kubelet.status_manager import StatusManager
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import EagerTasks


class PodManager:
    """The pods of all agents of one host."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        runtime: Runtime,
        wheel: TimerWheel,
        events: KubeletEvents,
        metrics: KubeletMetrics,
    ) -> None:
        self._clock = clock
        self._runtime = runtime
        self._events = events
        self._metrics = metrics
        self._mirrors = MirrorPods(client, clock)
        self.status: Final = StatusManager(client, clock, self._mirrors, self.get)
        self._workers = PodWorkers(
            clock, runtime, wheel, events, metrics.resizes, self.status.enqueue, self._forgotten
        )
        self._pods = self._workers.pods
        metrics.follow(lambda: (managed.life for managed in self._pods.values()))
        self._claims = AdmissionClaims(self._workers.tasks, self.admit_pod)
        #: what ran before this host started, until its pod is seen
        self.found: Final[dict[str, FoundPod]] = {}

    # -- questions

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> ManagedPod | None:
        return self._pods.get(uid)

    def current(self, uid: str) -> Pod | None:
        """A pod that is taken care of, with the status as its node knows it."""
        managed = self._pods.get(uid)
        return self._workers.current(managed) if managed is not None else None

    def assigned_cpus(self, uid: str, container: str) -> str:
        """The exclusive CPUs of a container as `assigned.cpuset` shows them (KEP-6122)."""
        managed = self._pods.get(uid)
        return managed.agent.container_manager.assigned_cpuset(uid, container) if managed is not None else ""

    def refresh_own_fields(self, uid: str, written: Callable[[str], None]) -> None:
        """Write the downward API files of a pod at once, then call `written` with "" or what went wrong.

        The files of a pod that nobody takes care of, or whose volumes are not mounted yet, count as written.
        """
        managed = self._pods.get(uid)
        if managed is None:
            written("")
        else:
            self._workers.refresh_own_fields(managed, written)

    @property
    def tasks(self) -> EagerTasks:
        """What pods wait for."""
        return self._workers.tasks

    def retry_start(self, uid: str) -> None:
        """Start a pod now that waits after its volumes or claims were not there."""
        managed = self._pods.get(uid)
        if managed is not None:
            self._workers.act(managed, managed.life.retry_start)

    def sync(self, uid: str) -> None:
        """Look at a pod again, as when time has passed."""
        managed = self._pods.get(uid)
        if managed is not None:
            self._workers.act(managed, managed.life.tick)

    def record(self, uid: str, event: RecordEvent) -> None:
        """Record an event about a pod that is taken care of."""
        managed = self._pods.get(uid)
        if managed is not None:
            self._events.about_pod(managed.agent, managed.life.pod, event)

    # -- from the API

    def on_pod_changed(self, agent: Agent, pod: Pod) -> None:
        """Handle a pod of a registered node, new or in a newer version."""
        managed = self._pods.get(pod.metadata.uid)
        if managed is None or managed.agent is not agent:
            if pod.spec.resource_claims and self._must_read_claims(agent, pod):
                self._claims.read(agent, pod)
            else:
                self.admit_pod(agent, pod)
            return
        self.status.observe(managed, pod)
        before = managed.life.pod
        if before.metadata.generation != pod.metadata.generation:
            text = warn_of_update(before, pod, agent.features)
            if text:
                self._events.about_pod(
                    agent, pod, RecordEvent("Warning", "FailedNodeDeclaredFeaturesCheck", text)
                )
        self._workers.act(managed, lambda now: managed.life.update(pod, now))
        if before.metadata.generation != pod.metadata.generation:
            self._workers.resizes.on_pod_updated(managed, before)
        if _shows_other_fields(before, pod):
            self._workers.refresh_volumes(managed, pod)

    def on_pod_deleted(self, uid: str) -> None:
        """Handle a pod that the API knows no more."""
        self._claims.forget(uid)
        managed = self._pods.get(uid)
        if managed is not None:
            self._workers.act(managed, managed.life.gone)
        else:
            # No kubelet took care of it, or the one that did is stopped: what runs of it is nobody's.
            self._runtime.remove_pod(uid)

    # -- static pods, and what the API shows of them

    def on_static_pod(self, agent: Agent, pod: Pod) -> None:
        """Handle a pod from a file of the node, which need not be registered."""
        if pod.metadata.uid not in self._pods:
            self.admit_pod(agent, pod)

    def on_mirror_changed(self, pod: Pod) -> None:
        """Handle the API's copy of a static pod."""
        managed = self._mirrors.saw(pod, self._pods)
        if managed is None:
            self._workers.tasks.start(self._mirrors.delete(pod))
            return
        self.status.observe(managed, pod)
        self.status.enqueue(managed.uid)

    def on_mirror_deleted(self, pod: Pod) -> None:
        """Handle the end of a copy; if what it showed is still there, there will be another."""
        managed = self._mirrors.lost(pod, self._pods)
        if managed is not None:
            managed.sent = None
            self.status.enqueue(managed.uid)

    # -- admission

    def _must_read_claims(self, agent: Agent, pod: Pod) -> bool:
        """Whether a pod that is new to the node is admitted with its claims at hand (KEP-5945)."""
        uid = pod.metadata.uid
        return (
            agent.features.is_checking
            and agent.dra.needs_claims(pod)
            and pod.status.phase not in TERMINAL
            and pod.metadata.deletion_timestamp is None
            and uid not in self.found
            and uid not in agent.services.admitted
        )

    def admit_pod(self, agent: Agent, pod: Pod, claims: Sequence[ResourceClaim] = ()) -> None:
        """Take care of a pod from now on: start it, go on with it, or refuse it.

        `claims` are those of its claims that were read for its admission.
        """
        uid = pod.metadata.uid
        found = self.found.pop(uid, None)
        if found is None and pod.status.phase:
            found = self._runtime.adopt(pod)
        is_over = pod.status.phase in TERMINAL
        allocated, actuated = agent.allocation.recorded(pod)
        life = PodLifecycle(pod, self._clock.now_ns(), agent.rules, found, allocated, actuated)
        managed = ManagedPod(agent, life)
        self._workers.add(managed)
        # What counts is what the node has promised it, whatever it asks for by now.
        held = pod if allocated is None else life.allocated_pod()
        if not is_over and pod.metadata.deletion_timestamp is None:
            refusal = agent.allocation.admit(held, agent.node, claims)
            if refusal is not None:
                self._metrics.rejected(refusal.reason)
                if found is not None:
                    agent.allocation.hold(held)  # until it has stopped
                self._workers.act(managed, lambda now: life.reject(refusal.reason, refusal.message, now))
                return
            agent.allocation.hold(held)
            if found is None:
                self._metrics.started_pods.inc()
        elif found is not None and not is_over:
            agent.allocation.hold(held)
        self._workers.act(managed, life.start)
        self._workers.keep_volumes_fresh(managed)

    def on_pods_added(self, agent: Agent) -> None:
        """Handle the end of a kubelet's start: all pods the node had are admitted; now they may be resized."""
        self._workers.resizes.on_pods_added(agent)

    def drop_strangers(
        self, agent: Agent, own: Collection[str], is_known: Callable[[FoundPod], bool]
    ) -> None:
        """Remove what is left of pods that went from the API while no kubelet was there; `own` are the node's pods."""
        for uid in [uid for uid, found in self.found.items() if not is_known(found)]:
            self._runtime.remove_pod(uid)
        agent.allocation.keep_only(own)
        self._workers.tasks.start(agent.services.keep_only(own))

    def forget_agent(self, agent: Agent) -> None:
        """Forget the pods of a kubelet that stops; its containers run on and are found by the next one."""
        for uid, managed in agent.pods.items():
            if self._pods.get(uid) is managed:
                del self._pods[uid]
        agent.pods.clear()
        self._claims.forget_agent(agent)

    def _forgotten(self, managed: ManagedPod) -> None:
        mirror = self._mirrors.forget(managed.uid)
        if mirror is not None:
            self._workers.tasks.start(self._mirrors.delete(mirror))

    # -- from the runtime

    def on_runtime_event(self, event: RuntimeEvent) -> None:
        """Handle an event of the runtime."""
        if isinstance(event, PodGone):
            self.found.pop(event.uid, None)
        managed = self._pods.get(event.uid)
        if managed is not None:
            self._metrics.on_runtime_event(managed.life, event)
            managed.agent.container_manager.on_runtime_event(event)
        self._workers.on_runtime_event(event)

    async def stop(self) -> None:
        """Abandon what is under way."""
        self.status.stop()
        await self._workers.stop()


def _shows_other_fields(before: Pod, after: Pod) -> bool:
    """Whether files that show the pod's own fields may have to be written anew."""
    old, new = before.metadata, after.metadata
    return old.generation != new.generation or old.labels != new.labels or old.annotations != new.annotations
