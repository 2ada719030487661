"""What one pod means to its job: tracked, failed, which index, when it ended. Pure.

A pod carries a finalizer until it has been counted; that it is gone means: counted, or never to be.

Called by the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.pods.state import condition

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"

_MOST: Final = 2**31


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def counts_by_index(job: Job) -> bool:
    """Tell whether every index has a limit of failures of its own."""
    return job.spec.backoff_limit_per_index is not None


def replaces_only_failed(job: Job) -> bool:
    """Tell whether a pod that is going is replaced only when it is gone."""
    return job.spec.pod_replacement_policy == "Failed"


def is_suspended(job: Job) -> bool:
    return bool(job.spec.suspend)


def is_tracked(pod: Pod) -> bool:
    return TRACKING in pod.metadata.finalizers


def is_failed(pod: Pod, job: Job) -> bool:
    """Tell whether the pod failed, or was deleted before it ended, since then it may never report an end."""
    if pod.status.phase == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def index_of(pod: Pod) -> int | None:
    """Return the pod's completion index; None if it has none."""
    return _number(pod, INDEX)


def index_failures(pod: Pod) -> int:
    """Return how many pods of this index failed before this one."""
    return _number(pod, INDEX_FAILURES) or 0


def ignored_index_failures(pod: Pod) -> int:
    """Return how many more failed and were not counted."""
    return _number(pod, INDEX_IGNORED_FAILURES) or 0


def _number(pod: Pod, annotation: str) -> int | None:
    text = pod.metadata.annotations.get(annotation, "")
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) >= _MOST:
        return None
    return int(text)


def finished_ns(pod: Pod) -> int:
    """Return when the pod ended: by its containers, its Ready condition, its deletion or its creation."""
    sidecars = [each.name for each in pod.spec.init_containers if each.restart_policy == "Always"]
    statuses = [
        *pod.status.container_statuses,
        *(each for each in pod.status.init_container_statuses if each.name in sidecars),
    ]
    ended = _last_end(statuses)
    if ended is not None:
        return ended
    ready = condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return parse_rfc3339(ready.last_transition_time)
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return parse_rfc3339(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) * SECOND_NS
    return parse_rfc3339(meta.creation_timestamp) if meta.creation_timestamp else 0


def _last_end(statuses: Iterable[ContainerStatus]) -> int | None:
    latest: int | None = None
    for each in statuses:
        ended = each.state.terminated.finished_at if each.state.terminated is not None else None
        if not ended:
            return None
        latest = max(latest or 0, parse_rfc3339(ended))
    return latest


def restarts(pods: Iterable[Pod]) -> int:
    """Return how often containers of pods that are not over have been started again."""
    return sum(
        each.restart_count
        for pod in pods
        if pod.status.phase in ("Pending", "Running")
        for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
