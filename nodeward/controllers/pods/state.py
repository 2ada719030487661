"""What a pod's status means to its owner: does it count, does it serve, and since when.

Pure. Availability is readiness that has lasted for `minReadySeconds`; time comes in as nanoseconds since 1970.

Called by the workload controllers.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339


def is_active(pod: Pod) -> bool:
    """Tell whether the pod runs or may yet run, so that it counts as a replica."""
    return pod.metadata.deletion_timestamp is None and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Tell whether the pod has been deleted and has not ended yet."""
    return pod.metadata.deletion_timestamp is not None and not is_terminal(pod)


def condition(pod: Pod, type_: str) -> PodCondition | None:
    for each in pod.status.conditions:
        if each.type == type_:
            return each
    return None


def is_ready(pod: Pod) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.status == "True"


def ready_since_ns(pod: Pod) -> int | None:
    """Return when the pod became ready; None if it is not ready, or its condition has no time."""
    found = condition(pod, "Ready")
    if found is None or found.status != "True" or found.last_transition_time is None:
        return None
    return parse_rfc3339(found.last_transition_time)


def is_available(pod: Pod, min_ready_seconds: int, now_ns: int) -> bool:
    """Tell whether the pod has been ready for `min_ready_seconds`."""
    if not min_ready_seconds:
        return is_ready(pod)
    since_ns = ready_since_ns(pod)
    return since_ns is not None and since_ns + min_ready_seconds * SECOND_NS <= now_ns


def next_available_seconds(pods: Iterable[Pod], min_ready_seconds: int, now_ns: int) -> float | None:
    """Return the seconds until the next ready pod becomes available; None: none is waiting for that."""
    if not min_ready_seconds:
        return None
    waits = [
        since_ns + min_ready_seconds * SECOND_NS - now_ns
        for since_ns in map(ready_since_ns, pods)
        if since_ns is not None
    ]
    return min((wait / SECOND_NS for wait in waits if wait > 0), default=None)
