"""How many pods of a budget may be disturbed now, and how its status says so.

Pure questions, asked by the controller that keeps the status true and by the eviction API, which spends from it.

What must stay true: `disruptionsAllowed` is never more than the healthy pods beyond those that are needed, and zero
while nobody knows how many pods there should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import Condition
from nodeward.api.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339

#: How long an evicted pod may take to be marked as deleted; after that the eviction is taken for lost.
DELETION_TIMEOUT_NS: Final = 120 * SECOND_NS

ALLOWED: Final = "DisruptionAllowed"
SUFFICIENT_PODS: Final = "SufficientPods"
INSUFFICIENT_PODS: Final = "InsufficientPods"
SYNC_FAILED: Final = "SyncFailed"


def is_healthy(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def allowed_condition(status: PodDisruptionBudgetStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == ALLOWED), None)


def set_allowed_condition(status: PodDisruptionBudgetStatus, now: str, *, failure: str | None = None) -> None:
    """Make the condition say what `disruptionsAllowed` says, or that it could not be worked out."""
    is_allowed = failure is None and status.disruptions_allowed > 0
    reason = SUFFICIENT_PODS if is_allowed else INSUFFICIENT_PODS
    wanted = Condition(
        type=ALLOWED,
        status="True" if is_allowed else "False",
        observed_generation=status.observed_generation,
        last_transition_time=now,
        reason=reason if failure is None else SYNC_FAILED,
        message=failure or "",
    )
    old = allowed_condition(status)
    if old is not None and old.status == wanted.status:
        wanted.last_transition_time = old.last_transition_time
    others = [each for each in status.conditions if each.type != ALLOWED]
    status.conditions = [*others, wanted]


def says_what_is_allowed(status: PodDisruptionBudgetStatus) -> bool:
    """Tell whether the condition agrees with `disruptionsAllowed`."""
    found = allowed_condition(status)
    wanted = ("True", SUFFICIENT_PODS) if status.disruptions_allowed > 0 else ("False", INSUFFICIENT_PODS)
    return found is not None and (found.status, found.reason) == wanted


def still_disrupted(
    pods: Iterable[Pod], disrupted: Mapping[str, str], now_ns: int
) -> tuple[dict[str, str], list[Pod]]:
    """Split the disrupted pods: those that may still be deleted, and those whose deletion did not come."""
    expected: dict[str, str] = {}
    overdue: list[Pod] = []
    for pod in pods:
        since = disrupted.get(pod.metadata.name)
        if since is None or pod.metadata.deletion_timestamp is not None:
            continue
        if parse_rfc3339(since) + DELETION_TIMEOUT_NS < now_ns:
            overdue.append(pod)
        else:
            expected[pod.metadata.name] = since
    return expected, overdue


def healthy_count(pods: Iterable[Pod], disrupted: Mapping[str, str], now_ns: int) -> int:
    """Count pods that are ready and not being evicted or deleted."""
    return sum(
        1
        for pod in pods
        if pod.metadata.deletion_timestamp is None
        and is_healthy(pod)
        and not (
            pod.metadata.name in disrupted
            and parse_rfc3339(disrupted[pod.metadata.name]) + DELETION_TIMEOUT_NS > now_ns
        )
    )


def status_of(
    budget: PodDisruptionBudget,
    now: str,
    *,
    healthy: int,
    desired: int,
    expected: int,
    disrupted: Mapping[str, str],
) -> PodDisruptionBudgetStatus:
    """Return the status as it should be."""
    # A budget that has no pods yet allows nothing: its first pods may be there before their counts are.
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=dict(disrupted),
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=list(budget.status.conditions),
    )
    old = budget.status
    if old.observed_generation != budget.metadata.generation or not says_what_is_allowed(status):
        set_allowed_condition(status, now)
    return status
