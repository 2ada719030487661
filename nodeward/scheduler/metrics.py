"""What a scheduler counts, under the names kube-scheduler's users know.

Counting happens in the hottest loop there is, so that most of it is plain numbers elsewhere (in the queue, in pod
classes), read when somebody looks at the page. Unlike upstream, `scheduler_plugin_evaluation_total` says with which
status a plugin took part (KEP-5471), and the durations of PreFilter, Filter, PreScore and Score are those of every
tenth decision: answers are shared between pods that are alike, so most decisions ask a plugin about one row or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.metrics import Metrics, exponential
from nodeward.scheduler.framework.status import Code
from nodeward.scheduler.queue.queued_pod import NEVER

if TYPE_CHECKING:
    from nodeward.scheduler.cache.diagnosis import Diagnosis
    from nodeward.scheduler.cache.pod_class import PodClass
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.profile import Profile
    from nodeward.scheduler.queue.queued_pod import QueuedPod
    from nodeward.scheduler.queue.scheduling_queue import SchedulingQueue

#: Results of attempts.
SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"

#: From this many attempts on they are not told apart.
_MANY_ATTEMPTS: Final = 15

_FROM_1_MS: Final = exponential(0.001, 2, 15)
_FROM_10_MS: Final = exponential(0.01, 2, 20)
_POINTS: Final = exponential(0.0001, 2, 12)
_PLUGINS: Final = exponential(0.00001, 1.5, 20)


class SchedulerMetrics:
    """All numbers of one scheduler."""

    def __init__(self, metrics: Metrics) -> None:
        self.all: Final = metrics
        self._attempt_seconds = metrics.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took, from taking the pod out of the queue to its binding.",
            _FROM_1_MS,
            ("result", "profile"),
        )
        seconds = self._attempt_seconds
        # Unlike upstream, which has dropped this name: KEP-5471 says that it should inform a rollback.
        metrics.same_histogram(
            "scheduler_scheduling_duration_seconds",
            "The same as scheduler_scheduling_attempt_duration_seconds, under the name KEP-5471 gives it.",
            seconds,
        )
        metrics.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to schedule pods, by result: scheduled, unschedulable, or error for an internal problem.",
            ("result", "profile"),
            lambda: {labels: each.count for labels, each in seconds.values.items()},
        )
        self.algorithm_seconds: Final = metrics.histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "How long decisions took.", _FROM_1_MS
        ).of()
        self._sli_seconds = metrics.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "How long a pod took from entering the queue to its binding, over all attempts.",
            _FROM_10_MS,
            ("attempts",),
        )
        self._pod_attempts = metrics.histogram(
            "scheduler_pod_scheduling_attempts", "Attempts a pod took to be scheduled.", exponential(1, 2, 5)
        ).of()
        self._after_flush = metrics.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that were scheduled after they had waited too long for an event: a sign of a hint that is wrong.",
        )
        self.point_seconds: Final = metrics.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point took.",
            _POINTS,
            ("extension_point", "status", "profile"),
        )
        self.plugin_seconds: Final = metrics.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long a plugin took at an extension point, in every tenth decision.",
            _PLUGINS,
            ("plugin", "extension_point", "status"),
        )
        self.permit_seconds: Final = metrics.histogram(
            "scheduler_permit_wait_duration_seconds",
            "How long pods waited for Permit plugins.",
            _FROM_1_MS,
            ("result",),
        )
        #: decisions that found no node, by (plugin, extension point, profile, status)
        self._failed: dict[tuple[str, ...], float] = {}

    def follow(
        self,
        queue: SchedulingQueue,
        table: NodeTable,
        profiles: Iterable[Profile],
        binding: Callable[[], int],
    ) -> None:
        """What is read where it is kept."""
        metrics, known = self.all, tuple(profiles)
        metrics.gauge(
            "scheduler_pending_pods",
            "Pods that wait, by queue: active, backoff, unschedulable (tried in vain), gated (not let in yet).",
            ("queue",),
            lambda: {(name,): count for name, count in queue.counts().items()},
        )
        metrics.gauge(
            "scheduler_unschedulable_pods",
            "Unschedulable pods by plugin; a pod counts for every plugin that rejected it.",
            ("plugin", "profile"),
            lambda: {(*key,): count for key, count in queue.unschedulable_reasons.items()},
        )
        metrics.counter(
            "scheduler_queue_incoming_pods_total",
            "Pods that entered a queue, by what made them.",
            ("event", "queue"),
            lambda: {(*key,): count for key, count in queue.incoming.items()},
        )
        metrics.gauge(
            "scheduler_inflight_events",
            "Events remembered for pods in a scheduling cycle.",
            ("event",),
            lambda: {("all",): queue.in_flight_events()},
        )
        metrics.gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods in the scheduler's cache.",
            ("type",),
            lambda: {(kind,): count for kind, count in table.sizes().items()},
        )
        metrics.gauge(
            "scheduler_goroutines",
            "Work beside the scheduling loop, by what it does.",
            ("operation",),
            lambda: {("binding",): binding()},
        )
        metrics.counter(
            "scheduler_plugin_evaluation_total",
            "Attempts a plugin took part in, by extension point (PreFilter, Filter, PreScore, Score) and outcome.",
            ("plugin", "extension_point", "profile", "status"),
            lambda: self._evaluations(known),
        )

    def bound(self, queued: QueuedPod, profile: str, began_ns: int, now_ns: int) -> None:
        """A pod has its node."""
        self._attempt_seconds.of(SCHEDULED, profile).observe((now_ns - began_ns) / SECOND_NS)
        self._pod_attempts.observe(queued.attempts)
        if queued.initial_attempt_ns != NEVER:
            attempts = str(queued.attempts) if queued.attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
            self._sli_seconds.observe((now_ns - queued.initial_attempt_ns) / SECOND_NS, attempts)
        if queued.was_flushed:
            self._after_flush.inc()

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt ended."""
        self._attempt_seconds.observe(seconds, result, profile)

    def evaluated_in_vain(self, found: PodClass, profile: str, said: Diagnosis) -> None:
        """A decision found no node."""
        guilty = frozenset(said.rejected_by)
        point = "PreFilter" if found.rejected is not None else "Filter"
        for plugin, where in found.evaluated():
            if where in ("PreScore", "Score"):
                continue
            is_guilty = where == point and plugin in guilty
            code = said.codes.get(plugin, Code.UNRESOLVABLE) if is_guilty else Code.SUCCESS
            key = (plugin, where, profile, code.value)
            self._failed[key] = self._failed.get(key, 0) + 1

    def _evaluations(self, profiles: Iterable[Profile]) -> Mapping[tuple[str, ...], float]:
        total = dict(self._failed)
        for profile in profiles:
            for (plugin, point), count in profile.classes.evaluations().items():
                key = (plugin, point, profile.name, Code.SUCCESS.value)
                total[key] = total.get(key, 0) + count
        return total
