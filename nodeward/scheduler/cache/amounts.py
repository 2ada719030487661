"""How much of each resource a pod takes of its node, as whole numbers.

CPU counts in millicores, all else in whole units. `requested` is what must fit; `scored` is what nodes are compared
by: a container that asks for no CPU or memory is taken to use a little. A pod that is being resized takes the larger
of what it asks for, was promised and has (so that CPUs it still holds are not given away). The amounts of a pod are
kept with it, so that what is taken off a node later is what was put on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.codec import encode
from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import Quantity
from nodeward.rules.pod_resources import pod_requests, resize_is_infeasible
from nodeward.scheduler.framework.pod import DEFAULT_CPU_MILLI, DEFAULT_MEMORY
from nodeward.scheduler.framework.signature import reader

PODS: Final = "pods"
CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

#: What of a pod decides how much it takes, unless its status says something else.
AMOUNT_FIELDS: Final = (
    "spec.resources",
    "spec.overhead",
    "spec.containers[*].resources.requests",
    "spec.init_containers[*].resources.requests",
    "spec.init_containers[*].restart_policy",
)

#: More than this counts as this, so that a hundred times it is still a number of 64 bits.
MOST: Final = 2**56

#: What a container that says nothing is taken to use.
MISSING: Final = {CPU: Quantity.of_milli(DEFAULT_CPU_MILLI), MEMORY: Quantity.of_int(DEFAULT_MEMORY)}

#: Different amounts remembered; when there are more, all are forgotten.
REMEMBERED: Final = 4096


_read_amounts: Final = reader(AMOUNT_FIELDS)


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one pod takes; both maps hold one of `pods`, and nothing that is zero."""

    requested: Mapping[str, int]
    scored: Mapping[str, int]
    #: both by the lines of the table, one above the other; shorter than it when other resources came later
    lines: NDArray[np.int64] = field(compare=False, repr=False)


def whole(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    """Quantities as numbers; nothing is left out."""
    return {
        name: min(quantity.milli_value if name == CPU else quantity.value, MOST)
        for name, quantity in amounts.items()
    }


def scored_requests(pod: Pod) -> dict[str, int]:
    """What a pod that does not run yet counts for when nodes are compared."""
    return whole(pod_requests(pod, missing=MISSING))


class Accountant:
    """Works out amounts, once for pods that ask for the same. `line_of` says where a resource is in the table."""

    def __init__(self, line_of: Callable[[str], int]) -> None:
        self._line_of = line_of
        self._known: dict[bytes, Amounts] = {}

    def amounts(self, pod: Pod, by_spec: Amounts | None = None) -> Amounts:
        """What the pod takes, as it stands now. Equal pods get the same object as long as it is remembered.

        `by_spec` is what it takes by its spec alone, if that is known.
        """
        if _has_resources_of_its_own(pod):
            return self._work_out(pod)
        return by_spec if by_spec is not None else self.by_spec(pod)

    def by_spec(self, pod: Pod) -> Amounts:
        """What the pod takes if its status says nothing else."""
        key = encode(_read_amounts(pod, None))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._work_out(pod, with_status=False)
        return found

    def _work_out(self, pod: Pod, *, with_status: bool = True) -> Amounts:
        held = pod_requests(pod, with_status=with_status, with_pod_status=with_status)
        requested = {n: a for n, a in whole(held).items() if a > 0}
        scored = whole(
            pod_requests(pod, with_status=with_status, with_pod_status=with_status, missing=MISSING)
        )
        scored = {name: n for name, n in scored.items() if n > 0}
        requested[PODS] = scored[PODS] = 1
        names = [*scored, *(name for name in requested if name not in scored)]
        numbers = [self._line_of(name) for name in names]
        lines = np.zeros((2, max(numbers) + 1), np.int64)
        lines[:, numbers] = [[each.get(name, 0) for name in names] for each in (requested, scored)]
        return Amounts(requested, scored, lines)


def total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """All of them together."""
    found: dict[str, int] = {}
    for each in amounts:
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


def _has_resources_of_its_own(pod: Pod) -> bool:
    """Whether its status says other things about resources than its spec."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses and not status.conditions:
        return False
    return resize_is_infeasible(pod) or any(
        each.allocated_resources or each.resources is not None
        for each in (*status.container_statuses, *status.init_container_statuses)
    )
