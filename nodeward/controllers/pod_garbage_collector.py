"""Removes the pods that nobody else will remove.

Those are ended ones beyond a number, those of nodes that are gone or out of service, and terminating ones that never
had a node.

Every round looks at all pods and nodes and names pods to remove; each is then marked as failed, so that whoever counts
it knows that it did not end well, and deleted without grace, since no kubelet is left to do it.

What must stay true: pods of a missing node are touched only after the node has been missing for a while and the API
confirms it; a pod that was made again under the same name is another pod.

Run by `controllers.runner`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.readiness import is_ready

PERIOD_SECONDS: Final = 20.0
QUARANTINE_SECONDS: Final = 40.0
#: So many pods that have ended are kept for people to look at.
TERMINATED_POD_THRESHOLD: Final = 12_500
WORKERS: Final = 10

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
TERMINATED: Final = "terminated"
OUT_OF_SERVICE_REASON: Final = "out-of-service"
ORPHANED: Final = "orphaned"
UNSCHEDULED: Final = "unscheduled"

_ALIVE: Final = ("Pending", "Running", "Unknown", "")


class Removal(NamedTuple):
    """A pod to remove, and why."""

    namespace: str
    name: str
    uid: str
    reason: str


class PodGarbageCollector:
    def __init__(self, context: ControllerContext, *, threshold: int = TERMINATED_POD_THRESHOLD) -> None:
        self._client = context.client
        self._clock = context.clock
        self._gates = context.gates
        self._threshold = threshold
        self._pods = context.informers.informer(Pod)
        self._nodes = context.informers.informer(Node)
        #: Nodes that pods name and nobody knows, and since when.
        self._missing: dict[str, int] = {}
        self._rounds: WorkQueue[str] = WorkQueue(context.clock, name="pod_gc_rounds")
        self._rounds.add("pods")
        self._removals: WorkQueue[Removal] = WorkQueue(context.clock, name="pod_gc_removals")
        self._deleted = context.metrics.counter(
            "pod_gc_collector_force_delete_pods_total",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            ("namespace", "reason"),
        )
        self._failed = context.metrics.counter(
            "pod_gc_collector_force_delete_pod_errors_total",
            "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
            ("namespace", "reason"),
        )

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._rounds, self._reconcile), Work(self._removals, self._remove, workers=WORKERS))

    async def _reconcile(self, _: str) -> float:
        pods = self._pods.list()
        gone = await self._gone_nodes(pods)
        for removal in (
            *surplus(pods, self._threshold),
            *terminating(pods, {node.metadata.name: node for node in self._nodes.list()}),
            *(_removal(pod, ORPHANED) for pod in pods if pod.spec.node_name in gone),
        ):
            self._removals.add(removal)
        return PERIOD_SECONDS

    async def _gone_nodes(self, pods: Sequence[Pod]) -> dict[str, None]:
        """Return nodes that have been missing long enough, confirmed by asking the API."""
        now = self._clock.monotonic_ns()
        named = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
        missing = [name for name in named if self._nodes.get(name) is None]
        self._missing = {name: self._missing.get(name, now) for name in missing}
        gone: dict[str, None] = {}
        for name, since in self._missing.items():
            if now - since >= QUARANTINE_SECONDS * SECOND_NS and not await self._is_there(name):
                gone[name] = None
        return gone

    async def _is_there(self, node: str) -> bool:
        try:
            await self._client.get(Node, node)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    async def _remove(self, removal: Removal) -> None:
        pod = self._pods.get(removal.name, removal.namespace)
        if pod is None or pod.metadata.uid != removal.uid:
            return
        if removal.reason == ORPHANED and self._nodes.get(pod.spec.node_name) is not None:
            return
        try:
            if not is_terminal(pod):
                await self._mark_failed(pod, is_orphan=removal.reason == ORPHANED)
            await self._client.delete(Pod, removal.name, removal.namespace, grace_period=0, uid=removal.uid)
        except ApiError as error:
            # Gone, or another pod by now: what was to be removed is not there any more.
            if error.code not in (404, 409):
                self._failed.inc(removal.namespace, removal.reason)
                raise
        except WorldError:
            self._failed.inc(removal.namespace, removal.reason)
            raise
        self._deleted.inc(removal.namespace, removal.reason)

    async def _mark_failed(self, pod: Pod, *, is_orphan: bool) -> None:
        meta, has_generation = pod.metadata, self._gates.enabled("PodObservedGenerationTracking")
        status: dict[str, Any] = {"phase": "Failed"}
        if has_generation or pod.status.observed_generation:
            status["observedGeneration"] = meta.generation
        if is_orphan:
            old = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
            since = None if old is None or old.status != "True" else old.last_transition_time
            condition: dict[str, Any] = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": since or rfc3339(self._clock.now_ns()),
            }
            if has_generation or (old is not None and old.observed_generation):
                condition["observedGeneration"] = meta.generation
            status["conditions"] = [condition]
        body = {"metadata": {"uid": meta.uid}, "status": status}
        await self._client.patch(Pod, meta.name, body, namespace=meta.namespace, subresource="status")


def _removal(pod: Pod, reason: str) -> Removal:
    return Removal(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, reason)


def surplus(pods: Sequence[Pod], threshold: int) -> list[Removal]:
    """Return ended pods beyond the threshold: evicted ones first, then the oldest. No threshold, no surplus."""
    ended = [pod for pod in pods if pod.status.phase not in _ALIVE]
    count = len(ended) - threshold
    if threshold <= 0 or count <= 0:
        return []
    ended.sort(key=_by_worth)
    return [_removal(pod, TERMINATED) for pod in ended[:count]]


def _by_worth(pod: Pod) -> tuple[bool, str, str]:
    is_evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not is_evicted, pod.metadata.creation_timestamp or "", pod.metadata.name


def terminating(pods: Sequence[Pod], nodes: Mapping[str, Node]) -> Iterator[Removal]:
    """Return terminating pods whose end no kubelet will report: on a node out of service, or on none."""
    for pod in pods:
        if pod.metadata.deletion_timestamp is None:
            continue
        if not pod.spec.node_name:
            yield _removal(pod, UNSCHEDULED)
            continue
        node = nodes.get(pod.spec.node_name)
        if node is not None and _is_out_of_service(node):
            yield _removal(pod, OUT_OF_SERVICE_REASON)


def _is_out_of_service(node: Node) -> bool:
    """Tell whether the node is tainted out-of-service and does not report itself ready."""
    is_tainted = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return is_tainted and not is_ready(node.status.conditions)
