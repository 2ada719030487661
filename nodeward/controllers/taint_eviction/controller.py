"""Deletes pods from nodes with NoExecute taints, at once or when the time they tolerate them is over (KEP-5471 too).

What is seen of nodes and pods is worked out at once into a moment for each pod that has to go (`deadlines`); the queue
holds those moments in one heap. A worker looks again when the moment comes, tells the pod's end, marks the pod as
disrupted and deletes it.

What must stay true: a pod is never deleted before its moment, nor after its taints or tolerations took it away; a pod
made again under the same name is another pod; nobody is told twice of the same deletion. Numbers in tolerations are
compared only if this component's own gate is on: with it off they cover nothing, and the pod goes.

Run by `controllers.runner`; calls `deadlines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ObjectReference, Taint
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.pods.by_node import PodsByNode
from nodeward.controllers.taint_eviction.deadlines import FOR_GOOD, EvictionDeadline, stay
from nodeward.machinery.recorder import NORMAL
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.taints import NO_EXECUTE, with_effect

WORKERS: Final = 32
REASON: Final = "TaintManagerEviction"
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)

#: namespace and name
PodKey = tuple[str, str]


@dataclass(slots=True)
class PendingEviction:
    """A pod that will be evicted, and when."""

    uid: str
    stay: EvictionDeadline
    is_told: bool = False
    is_deleted: bool = False


class TaintEvictionController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        self._has_generation = context.gates.enabled("PodObservedGenerationTracking")
        self._leaving: dict[PodKey, PendingEviction] = {}
        #: the NoExecute taints of the nodes that have any
        self._tainted: dict[str, list[Taint]] = {}
        self._queue: WorkQueue[PodKey] = WorkQueue(context.clock, name="noexec_taint_pod")
        self._deletions = context.metrics.counter(
            "taint_eviction_controller_pod_deletions_total",
            "Total number of Pods deleted by TaintEvictionController since its start.",
        )
        self._latency = context.metrics.histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the Pod and its "
            "deletion via TaintEvictionController.",
            _BUCKETS,
        ).of()
        self._pods = PodsByNode(context.informers)
        nodes = context.informers.informer(Node)
        nodes.add_handler(self._node_seen, self._node_changed, self._node_gone)
        self._pods.informer.add_handler(self._pod_seen, self._pod_changed, self._pod_gone)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._evict, workers=WORKERS),)

    # -- what is seen

    def _node_seen(self, node: Node) -> None:
        name = node.metadata.name
        taints = with_effect(node.spec.taints, NO_EXECUTE)
        if taints:
            self._tainted[name] = taints
        else:
            self._tainted.pop(name, None)
        for pod in self._pods.on(name):
            self._consider(pod, taints)

    def _node_changed(self, old: Node, new: Node) -> None:
        if with_effect(old.spec.taints, NO_EXECUTE) != with_effect(new.spec.taints, NO_EXECUTE):
            self._node_seen(new)

    def _node_gone(self, node: Node) -> None:
        """Keep the timers of a deleted node: unless it comes back without its taints, its pods are evicted."""
        self._tainted.pop(node.metadata.name, None)

    def _pod_seen(self, pod: Pod) -> None:
        taints = self._tainted.get(pod.spec.node_name)
        if taints is not None:
            self._consider(pod, taints)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._pod_gone(old)
        self._pod_seen(new)

    def _pod_gone(self, pod: Pod) -> None:
        self._leaving.pop((pod.metadata.namespace, pod.metadata.name), None)

    # -- what follows

    def _consider(self, pod: Pod, taints: Sequence[Taint]) -> None:
        key, now_ns = (pod.metadata.namespace, pod.metadata.name), self._clock.monotonic_ns()
        leaving = self._leaving.get(key)
        if leaving is not None and leaving.is_deleted:
            return
        if pod.metadata.deletion_timestamp is not None:
            # Unlike upstream: it is going already, for whatever reason somebody else had, and nothing is told of it.
            self._leaving.pop(key, None)
            return
        before = leaving.stay.since if leaving is not None else FOR_GOOD.since
        found = stay(taints, pod.spec.tolerations, before, now_ns, numeric=self._numeric)
        if found.end_ns is None:
            self._cancel(key)
            return
        if leaving is None:
            leaving = self._leaving[key] = PendingEviction(pod.metadata.uid, found)
        else:
            if leaving.stay.end_ns is not None and leaving.stay.end_ns <= now_ns:
                return  # its moment has come already, and is not put off
            leaving.stay = found
        self._queue.add_after(key, (found.end_ns - now_ns) / SECOND_NS)

    def _cancel(self, key: PodKey) -> None:
        leaving = self._leaving.pop(key, None)
        if leaving is not None:
            self._record_event(key, leaving.uid, f"Cancelling deletion of Pod {key[0]}/{key[1]}")

    def _record_event(self, key: PodKey, uid: str, message: str) -> None:
        about = ObjectReference(api_version="v1", kind="Pod", namespace=key[0], name=key[1], uid=uid)
        self._recorder.event(about, NORMAL, REASON, message)

    async def _evict(self, key: PodKey) -> float | None:
        leaving, now_ns = self._leaving.get(key), self._clock.monotonic_ns()
        if leaving is None or leaving.is_deleted or leaving.stay.end_ns is None:
            return None
        if leaving.stay.end_ns > now_ns:
            return (leaving.stay.end_ns - now_ns) / SECOND_NS
        pod = self._pods.informer.get(key[1], key[0])
        if pod is None or pod.metadata.uid != leaving.uid:
            return None
        if not leaving.is_told:
            leaving.is_told = True
            self._record_event(key, leaving.uid, f"Marking for deletion Pod {key[0]}/{key[1]}")
        try:
            await self._mark(pod)
            if self._leaving.get(key) is not leaving:
                return None  # its taints went while it was marked
            await self._client.delete(Pod, key[1], key[0], uid=leaving.uid)
        except ApiError as error:
            # Gone, or another pod by now.
            if error.code not in (404, 409):
                raise
        leaving.is_deleted = True
        self._deletions.inc()
        self._latency.observe((self._clock.monotonic_ns() - leaving.stay.end_ns) / SECOND_NS)
        return None

    async def _mark(self, pod: Pod) -> None:
        """Set the DisruptionTarget condition, so that a job does not count this as the pod's own failure."""
        meta = pod.metadata
        old = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
        is_same = old is not None and old.status == "True" and old.reason == "DeletionByTaintManager"
        if is_same:
            return
        since = old.last_transition_time if old is not None and old.status == "True" else None
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": since or rfc3339(self._clock.now_ns()),
        }
        if self._has_generation or (old is not None and old.observed_generation):
            condition["observedGeneration"] = meta.generation
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        kind = self._pods.informer.kind
        await self._client.patch(
            bytes, meta.name, body, namespace=meta.namespace, kind=kind, subresource="status"
        )
