"""What the taints of a node mean for a pod: may it land, how unwelcome is it, how long may it stay.

In go taints and tolerations, as they are listed; order matters only where Kubernetes says so: the first untolerated
taint is the one that is named, and the first toleration that covers a NoExecute taint gives its seconds. A taint is
told from another by its key and effect.

Called by the scheduler, controllers, the kubelet and other rules; calls `tolerations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from nodeward.rules.tolerations import AnyTaint, AnyToleration, first_tolerating

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

#: The effects that keep a pod off a node.
BLOCKING: Final = (NO_SCHEDULE, NO_EXECUTE)

T = TypeVar("T", bound=AnyTaint)


def with_effect(taints: Iterable[T], *effects: str) -> list[T]:
    """Return the taints that have one of these effects."""
    return [taint for taint in taints if taint.effect in effects]


def untolerated(
    taints: Iterable[T], tolerations: Sequence[AnyToleration], *effects: str, numeric: bool
) -> Iterator[T]:
    """Return the taints with one of these effects that nothing covers, as they are listed."""
    for taint in taints:
        if taint.effect in effects and first_tolerating(tolerations, taint, numeric=numeric) is None:
            yield taint


def first_untolerated(
    taints: Iterable[T], tolerations: Sequence[AnyToleration], *effects: str, numeric: bool
) -> T | None:
    """Return the first taint with one of these effects that is not tolerated; None if all are."""
    return next(untolerated(taints, tolerations, *effects, numeric=numeric), None)


def blocking_taint(taints: Iterable[T], tolerations: Sequence[AnyToleration], *, numeric: bool) -> T | None:
    """Return the taint that keeps a pod from being scheduled here, if any."""
    return first_untolerated(taints, tolerations, *BLOCKING, numeric=numeric)


def unwelcome(taints: Iterable[AnyTaint], tolerations: Iterable[AnyToleration], *, numeric: bool) -> int:
    """Return how many PreferNoSchedule taints the pod does not put up with: the fewer, the better the node."""
    asked = [each for each in tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(
        first_tolerating(asked, taint, numeric=numeric) is None
        for taint in taints
        if taint.effect == PREFER_NO_SCHEDULE
    )


def seconds_until_eviction(
    taints: Iterable[AnyTaint], tolerations: Sequence[AnyToleration], *, numeric: bool
) -> int | None:
    """Return how long a running pod may stay: 0 means it goes now, None that it may stay for good.

    Every NoExecute taint must be covered, and the shortest of the seconds counts; none or less means now.
    """
    shortest: int | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        used = first_tolerating(tolerations, taint, numeric=numeric)
        if used is None:
            return 0
        if used.toleration_seconds is not None:
            seconds = max(used.toleration_seconds, 0)
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


def is_same(one: AnyTaint, other: AnyTaint) -> bool:
    """Tell whether both are the same taint, perhaps with another value or time."""
    return one.key == other.key and one.effect == other.effect


def without(taints: Iterable[T], gone: AnyTaint) -> list[T]:
    """Return the taints, less one."""
    return [taint for taint in taints if not is_same(taint, gone)]
