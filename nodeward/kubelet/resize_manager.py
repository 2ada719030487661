"""The resize manager: pods that ask for other resources, in a queue per node, until their node can give them.

The pod manager calls `on_pod_updated` for a newer version of a pod and `on_pods_added` after a restart; pod workers
call `settle` whenever something happened to a resized pod, and `on_released` when a pod gave its resources back. The
node's `Allocation` decides; the pod's life carries out (`pods.resizing`) and records the events.

What must stay true: decisions are made in the queue's order, and each sees what the ones before were given; a pod is
in the queue once; what is infeasible is not tried again before its spec changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import MINUTE_NS
from nodeward.kubelet.agent import Agent, ManagedPod
from nodeward.kubelet.pods.commands import Command
from nodeward.kubelet.pods.resize_texts import INFEASIBLE
from nodeward.kubelet.pods.resizing import DEFERRED
from nodeward.kubelet.prober_manager import Happening
from nodeward.kubelet.resize_checks import changes_of, order_of
from nodeward.kubelet.resize_metrics import ResizeMetrics
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.clock import Clock

RETRY_NS: Final = 3 * MINUTE_NS
#: What makes pending resizes worth another try, as metrics name it.
POD_UPDATED: Final = "pod_updated"
PODS_ADDED: Final = "pods_added"
PODS_REMOVED: Final = "pods_removed"
POD_RESIZED: Final = "pod_resized"
POD_TERMINATED: Final = "pod_terminated"
PERIODIC: Final = "periodic_retry"


class ResizeManager:
    """The resizes of all pods of one host.

    `act` hands something that happens to a pod to its worker; `refresh` writes files anew that show its resources.
    """

    def __init__(
        self,
        clock: Clock,
        wheel: TimerWheel,
        metrics: ResizeMetrics,
        act: Callable[[ManagedPod, Happening], None],
        refresh: Callable[[ManagedPod, Pod], None],
    ) -> None:
        self._clock = clock
        self._wheel = wheel
        self._metrics = metrics
        self._act = act
        self._refresh = refresh

    # -- what happens

    def on_pod_updated(self, managed: ManagedPod, before: Pod) -> None:
        """Handle a newer version of a pod; `before` is the version known until now."""
        pod = managed.life.pod
        if not self._metrics.count_requested(before, pod) and before.spec.resources == pod.spec.resources:
            return
        agent = managed.agent
        if managed.life.allocated_pod() is pod:
            self._drop(managed)
        else:
            self.enqueue(managed)
            self.retry(agent, POD_UPDATED)

    def on_pods_added(self, agent: Agent) -> None:
        """Handle the end of a kubelet's start: all pods of the node are admitted, with what they were allocated."""
        late = [
            each
            for each in agent.pods.values()
            if not each.life.is_terminating and each.life.allocated_pod() is not each.life.pod
        ]
        for managed in late:
            self.enqueue(managed)
        if late:
            self.retry(agent, PODS_ADDED)

    def on_released(self, agent: Agent, trigger: str) -> None:
        """Handle resources that came free on a node."""
        if agent.pending_resizes:
            self.retry(agent, trigger)

    def settle(self, managed: ManagedPod, now_ns: int) -> list[Command]:
        """Find out how far a pod's resize is, after something happened to the pod; return what is to be told."""
        life, agent = managed.life, managed.agent
        resize = life.resize
        if resize is None:
            return []
        self._metrics.count_updates(resize)
        cpus, uid = agent.container_manager, managed.uid
        held = tuple(name for name in resize.before if cpus.is_held(uid, name))
        was_in_progress = resize.in_progress is not None
        out = life.settle_resize(held, cpus.is_applied(uid), now_ns)
        if was_in_progress and resize.in_progress is None:
            agent.allocation.record_actuated(uid, life.actuated_info())
            if resize.is_shrinking:
                self.on_released(agent, POD_RESIZED)
        return out

    def forget(self, managed: ManagedPod, now_ns: int) -> None:
        """Drop the pending resize of a pod that has ended."""
        uid, pending = managed.uid, managed.agent.pending_resizes
        if uid in pending:
            managed.agent.pending_resizes = tuple(each for each in pending if each != uid)
            self._metrics.count_deferred(managed.life, "terminated", now_ns)

    # -- the queue

    def enqueue(self, managed: ManagedPod) -> None:
        """Have the resize of a pod tried with the next `retry`."""
        agent = managed.agent
        if managed.uid in agent.pending_resizes:
            return
        uids = [uid for uid in (*agent.pending_resizes, managed.uid) if uid in agent.pods]
        agent.pending_resizes = tuple(sorted(uids, key=lambda uid: self._order(agent.pods[uid])))

    def _order(self, managed: ManagedPod) -> tuple[object, ...]:
        life = managed.life
        resize = life.resize
        since = (
            resize.pending.last_transition_time if resize is not None and resize.pending is not None else None
        )
        raises, _ = changes_of(life.pod, life.allocated_pod(), with_pod_level=_with_pod_level(managed.agent))
        return order_of(life.pod, raises, since)

    def retry(self, agent: Agent, trigger: str) -> None:
        """Try all pending resizes of a node, in order."""
        happenings: list[tuple[ManagedPod, Happening]] = []
        deferred: list[str] = []
        for uid in agent.pending_resizes:
            managed = agent.pods.get(uid)
            if managed is not None and not managed.life.is_terminating:
                happening, is_deferred = self._decide(managed, trigger)
                happenings.append((managed, happening))
                if is_deferred:
                    deferred.append(uid)
        agent.pending_resizes = tuple(deferred)
        if deferred:
            self._retry_later(agent)
        for managed, happening in happenings:
            self._act(managed, happening)
            self._refresh(managed, managed.life.pod)

    def _decide(self, managed: ManagedPod, trigger: str) -> tuple[Happening, bool]:
        """Try one resize; return what happens to the pod, and whether it is deferred and stays in the queue."""
        life, agent = managed.life, managed.agent
        pod, allocated = life.pod, life.allocated_pod()
        now_ns = self._clock.now_ns()
        if allocated is pod:
            self._metrics.count_deferred(life, "reverted", now_ns)
            return life.drop_pending_resize, False
        refusal = agent.allocation.resize(pod, allocated, agent.node)
        if refusal is not None:
            reason, is_infeasible = refusal.reason, refusal.is_infeasible
            if is_infeasible:
                reason = INFEASIBLE
                self._metrics.infeasible.inc(refusal.detail)
            return lambda now: life.defer_resize(pod, reason, refusal.message, now), not is_infeasible
        resize = life.resize
        if resize is not None and resize.pending is not None and resize.pending.reason == DEFERRED:
            self._metrics.accepted_later.inc(trigger)
            self._metrics.count_deferred(life, "accepted", now_ns)
        _, lowers = changes_of(pod, allocated, with_pod_level=_with_pod_level(agent))
        return lambda now: life.accept_resize(pod, now, is_shrinking=lowers), False

    def _drop(self, managed: ManagedPod) -> None:
        agent, uid = managed.agent, managed.uid
        if uid in agent.pending_resizes:
            agent.pending_resizes = tuple(each for each in agent.pending_resizes if each != uid)
        self._metrics.count_deferred(managed.life, "reverted", self._clock.now_ns())
        self._act(managed, managed.life.drop_pending_resize)

    def _retry_later(self, agent: Agent) -> None:
        at_ns = agent.retry_resizes_ns = self._clock.monotonic_ns() + RETRY_NS

        def due() -> None:
            # A later try has set another time, or another kubelet has taken over.
            if agent.retry_resizes_ns == at_ns and agent.pending_resizes:
                self.retry(agent, PERIODIC)

        self._wheel.at(at_ns, due)


def _with_pod_level(agent: Agent) -> bool:
    return agent.specification.settings.gates.enabled("PodLevelResources")
