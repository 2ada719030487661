"""What a kubelet counts of resizes, under the names of Kubernetes. Called by the resize manager.

Pending and running resizes are read from the pods at scrape time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import MILLISECOND_NS, SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.base.timestamp import parse_rfc3339
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.resizing import DEFERRED, PodResize
from nodeward.kubelet.pods.resource_info import CPU, MEMORY, amount
from nodeward.machinery.metrics import Metrics

_UPDATE_BUCKETS: Final = (
    *(10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 30000.0),
    *(60000.0, 120000.0, 300000.0, 600000.0),
)
_DEFERRED_BUCKETS: Final = (
    *(5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0),
    *(180.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0),
)
_BUCKETS: Final = (
    (2_000_000_000, "system-critical"),
    (100_000, "high"),
    (1, "medium"),
    (0, "normal"),
    (-999, "low"),
)


class ResizeMetrics:
    """The metrics of resizes."""

    def __init__(self, metrics: Metrics) -> None:
        self.requested: Final = metrics.counter(
            "kubelet_container_requested_resizes_total",
            "Requested resizes of containers, by resource, requests or limits, and operation.",
            ("resource", "requirement", "operation"),
        )
        self.took: Final = metrics.histogram(
            "kubelet_pod_resize_duration_milliseconds",
            "How long updates of containers for a pod resize took.",
            _UPDATE_BUCKETS,
            ("success",),
        )
        self.infeasible: Final = metrics.counter(
            "kubelet_pod_infeasible_resizes_total", "Infeasible resizes of pods.", ("reason_detail",)
        )
        self.accepted_later: Final = metrics.counter(
            "kubelet_pod_deferred_accepted_resizes_total",
            "Resizes accepted after they were deferred, by what made them worth another try.",
            ("retry_trigger",),
        )
        self.deferred: Final = metrics.histogram(
            "kubelet_pod_deferred_resize_duration_seconds",
            "How long resizes were deferred, by what ended that.",
            _DEFERRED_BUCKETS,
            ("resolution", "priority_bucket"),
        )
        self._pods: Callable[[], Iterable[PodLifecycle]] = tuple
        metrics.gauge(
            "kubelet_pod_pending_resizes",
            "Pending resizes of pods.",
            ("reason", "priority_bucket"),
            self._pending,
        )
        metrics.gauge(
            "kubelet_pod_in_progress_resizes", "Resizes of pods in progress.", (), self._in_progress
        )

    def follow(self, pods: Callable[[], Iterable[PodLifecycle]]) -> None:
        """Show how many resizes there are whenever somebody looks; `pods` are those of this kubelet."""
        self._pods = pods

    def count_requested(self, before: Pod, after: Pod) -> bool:
        """Count what a newer version of a pod asks for; return whether any container asks for another size."""
        found = False
        pairs = zip(
            (*before.spec.init_containers, *before.spec.containers),
            (*after.spec.init_containers, *after.spec.containers),
            strict=False,
        )
        for old, new in pairs:
            if old.resources == new.resources:
                continue
            for resource in (MEMORY, CPU):
                for kind in ("requests", "limits"):
                    operation = _operation(
                        amount(old.resources, kind, resource), amount(new.resources, kind, resource)
                    )
                    if operation:
                        found = True
                        self.requested.inc(resource, kind, operation)
        return found

    def count_updates(self, resize: PodResize) -> None:
        """Count how long updates of a pod's containers took."""
        for is_accepted, took_ns in resize.took_ns:
            self.took.observe(took_ns / MILLISECOND_NS, "true" if is_accepted else "false")
        resize.took_ns.clear()

    def count_deferred(self, life: PodLifecycle, resolution: str, now_ns: int) -> None:
        """Count the end of a resize's waiting, if it was deferred."""
        pending = life.resize.pending if life.resize is not None else None
        if pending is not None and pending.reason == DEFERRED and pending.last_transition_time:
            seconds = (now_ns - parse_rfc3339(pending.last_transition_time)) / SECOND_NS
            self.deferred.observe(seconds, resolution, priority_bucket(life.pod))

    def _pending(self) -> Mapping[tuple[str, ...], float]:
        return Counter(
            (life.resize.pending.reason.lower(), priority_bucket(life.pod))
            for life in self._pods()
            if life.resize is not None and life.resize.pending is not None
        )

    def _in_progress(self) -> Mapping[tuple[str, ...], float]:
        return {
            (): sum(life.resize is not None and life.resize.in_progress is not None for life in self._pods())
        }


def priority_bucket(pod: Pod) -> str:
    """Return the class of a pod's priority."""
    priority = pod.spec.priority or 0
    return next((name for least, name in _BUCKETS if priority >= least), "very-low")


def _operation(old: Quantity, new: Quantity) -> str:
    if old == new:
        return ""
    if not new:
        return "remove"
    if not old:
        return "add"
    return "decrease" if new < old else "increase"
