"""Pods that are evicted at a moment of their own: marked as disrupted and deleted, unless it is called off before.

A controller says for each pod when it has to go, as often as it likes; the moments are in one queue. A worker looks
again when the moment comes, records the event, marks the pod and deletes it.

What must stay true: a pod is never deleted before its moment, nor after its eviction was cancelled; a pod made again
under the same name is another pod; the same deletion is recorded once.

Called by the eviction controllers for taints of nodes and of devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.taint_eviction.deadlines import FOR_GOOD, EvictionDeadline
from nodeward.machinery.informer import Informer
from nodeward.machinery.recorder import NORMAL
from nodeward.machinery.workqueue import WorkQueue

WORKERS: Final = 32
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)

#: namespace and name
PodKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvictionTexts:
    """What users see of the evictions of one controller."""

    queue: str
    event_reason: str
    #: messages of events; `{pod}` is the pod's namespace and name
    marking: str
    cancelling: str
    condition_reason: str
    condition_message: str
    metric_prefix: str
    deletions_help: str
    duration_help: str


@dataclass(slots=True)
class PendingEviction:
    """A pod that will be evicted, and when."""

    uid: str
    stay: EvictionDeadline
    is_told: bool = False
    is_deleted: bool = False


class TimedEvictions:
    def __init__(
        self,
        context: ControllerContext,
        pods: Informer[Pod],
        texts: EvictionTexts,
        on_deleted: Callable[[Pod], None] | None = None,
    ) -> None:
        """`on_deleted` is called with every pod that was evicted."""
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._has_generation = context.gates.enabled("PodObservedGenerationTracking")
        self._pods = pods
        self._texts = texts
        self._on_deleted = on_deleted
        self._leaving: dict[PodKey, PendingEviction] = {}
        self._queue: WorkQueue[PodKey] = WorkQueue(context.clock, name=texts.queue)
        prefix = texts.metric_prefix
        self._deletions = context.metrics.counter(f"{prefix}_pod_deletions_total", texts.deletions_help)
        self._latency = context.metrics.histogram(
            f"{prefix}_pod_deletion_duration_seconds", texts.duration_help, _BUCKETS
        ).of()

    def work(self) -> Work[PodKey]:
        return Work(self._queue, self._evict, workers=WORKERS)

    def planned(self, pod: Pod) -> EvictionDeadline:
        """Return what was last planned for the pod."""
        leaving = self._leaving.get((pod.metadata.namespace, pod.metadata.name))
        return leaving.stay if leaving is not None else FOR_GOOD

    def plan(self, pod: Pod, found: EvictionDeadline) -> None:
        """Evict the pod at this moment, whatever was planned before; without a moment, cancel what was planned."""
        key, now_ns = (pod.metadata.namespace, pod.metadata.name), self._clock.monotonic_ns()
        leaving = self._leaving.get(key)
        if leaving is not None and leaving.is_deleted:
            return
        if pod.metadata.deletion_timestamp is not None:
            # Unlike upstream: it is going already, for whatever reason somebody else had, and nothing is told of it.
            self._leaving.pop(key, None)
            return
        if found.end_ns is None:
            self._cancel(key)
            return
        if leaving is None:
            self._leaving[key] = PendingEviction(pod.metadata.uid, found)
        else:
            if leaving.stay.end_ns is not None and leaving.stay.end_ns <= now_ns:
                return  # its moment has come already, and is not put off
            leaving.stay = found
        self._queue.add_after(key, (found.end_ns - now_ns) / SECOND_NS)

    def forget(self, pod: Pod) -> None:
        """Drop what was planned: the pod is gone."""
        self._leaving.pop((pod.metadata.namespace, pod.metadata.name), None)

    def _cancel(self, key: PodKey) -> None:
        leaving = self._leaving.pop(key, None)
        if leaving is not None:
            self._record_event(key, leaving.uid, self._texts.cancelling)

    def _record_event(self, key: PodKey, uid: str, message: str) -> None:
        about = ObjectReference(api_version="v1", kind="Pod", namespace=key[0], name=key[1], uid=uid)
        text = message.format(pod=f"{key[0]}/{key[1]}")
        self._recorder.event(about, NORMAL, self._texts.event_reason, text)

    async def _evict(self, key: PodKey) -> float | None:
        leaving, now_ns = self._leaving.get(key), self._clock.monotonic_ns()
        if leaving is None or leaving.is_deleted or leaving.stay.end_ns is None:
            return None
        if leaving.stay.end_ns > now_ns:
            return (leaving.stay.end_ns - now_ns) / SECOND_NS
        pod = self._pods.get(key[1], key[0])
        if pod is None or pod.metadata.uid != leaving.uid:
            return None
        if not leaving.is_told:
            leaving.is_told = True
            self._record_event(key, leaving.uid, self._texts.marking)
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
        if self._on_deleted is not None:
            self._on_deleted(pod)
        return None

    async def _mark(self, pod: Pod) -> None:
        """Set the DisruptionTarget condition, so that a job does not count this as the pod's own failure."""
        meta, reason = pod.metadata, self._texts.condition_reason
        old = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
        is_same = old is not None and old.status == "True" and old.reason == reason
        if is_same:
            return
        since = old.last_transition_time if old is not None and old.status == "True" else None
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": self._texts.condition_message,
            "lastTransitionTime": since or rfc3339(self._clock.now_ns()),
        }
        if self._has_generation or (old is not None and old.observed_generation):
            condition["observedGeneration"] = meta.generation
        body = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(
            bytes, meta.name, body, namespace=meta.namespace, kind=self._pods.kind, subresource="status"
        )
