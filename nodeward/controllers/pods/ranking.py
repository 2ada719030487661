"""Which pods to delete first when scaling down.

In order of importance: not on a node yet; pending, then unknown, then running; not ready; a lower
`controller.kubernetes.io/pod-deletion-cost`; more pods of the same family on its node; ready for a shorter time;
more restarts; younger. Times are compared by their order of magnitude (logarithm to base 2), so that among pods of
about the same age it is not always the newest that goes; then the uid decides.

Unlike upstream, whose rules can prefer a to b, b to c and c to a: pods whose times are of the same magnitude but not
equal are compared by the later rules before their uids.

Called by `job.sizing` and `replicaset`; calls `state`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.pods.state import is_active, is_ready, ready_since_ns

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_MAX_COST: Final = 2**31


def first_to_delete(
    pods: Sequence[Pod], count: int, related: Iterable[Pod], now_ns: int, *, heeds_cost: bool = True
) -> Sequence[Pod]:
    """Return the `count` pods to delete first. `related`: all pods of the family, counted by node."""
    if count >= len(pods):
        return pods
    return sorted(pods, key=deletion_order(related, now_ns, heeds_cost=heeds_cost))[:count]


def deletion_order(
    related: Iterable[Pod], now_ns: int, *, heeds_cost: bool = True
) -> Callable[[Pod], tuple[Any, ...]]:
    """Return a sort key that puts the pods to delete first at the front."""
    neighbours = Counter(pod.spec.node_name for pod in related if is_active(pod))

    def key(pod: Pod) -> tuple[Any, ...]:
        restarts, sidecar_restarts = _restarts(pod)
        ready = is_ready(pod)
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 0),
            ready,
            deletion_cost(pod) if heeds_cost else 0,
            -neighbours[pod.spec.node_name],
            _magnitude(ready_since_ns(pod), now_ns) if ready else 0,
            -restarts,
            -sidecar_restarts,
            _magnitude(_created_ns(pod), now_ns),
            pod.metadata.uid,
        )

    return key


def deletion_cost(pod: Pod) -> int:
    """Return what the annotation says; 0 without one, or if it is no number of 32 bits."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    digits = text.removeprefix("-")
    if (
        not digits.isascii()
        or not digits.isdigit()
        or len(digits) > 10
        or (text.startswith("0") and text != "0")
    ):
        return 0
    cost = int(text)
    return cost if -_MAX_COST <= cost < _MAX_COST else 0


def _magnitude(moment_ns: int | None, now_ns: int) -> int:
    """Return the logarithm of the age; a missing time sorts first, then the future and now."""
    if moment_ns is None:
        return -2
    age_ns = now_ns - moment_ns
    return age_ns.bit_length() - 1 if age_ns > 0 else -1


def _created_ns(pod: Pod) -> int | None:
    text = pod.metadata.creation_timestamp
    return None if text is None else parse_rfc3339(text)


def _restarts(pod: Pod) -> tuple[int, int]:
    """Return the most restarts of any container, and of any sidecar."""
    plain = max((each.restart_count for each in pod.status.container_statuses), default=0)
    sidecars = [each.name for each in pod.spec.init_containers if each.restart_policy == "Always"]
    statuses = (each for each in pod.status.init_container_statuses if each.name in sidecars)
    return plain, max((each.restart_count for each in statuses), default=0)
