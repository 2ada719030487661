"""What a resize of a pod changes, whether it is one that can be done in place, and what it costs the containers.

In go the pod as it was and as it is wanted; out comes a list of changes, or why it cannot be. Only cpu and memory of
containers, and of the pod as a whole, may change in place; nothing may be taken away, and the quality of service
stays. What the API accepts is decided by validation; the kubelet and the scheduler ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.quantity import Quantity
from nodeward.rules.qos import qos_class

#: The resources that can be changed in place.
RESIZABLE: Final = ("cpu", "memory")
#: Who a change is about when it is the pod as a whole.
WHOLE_POD: Final = ""


@dataclass(frozen=True, slots=True)
class ResizeChange:
    """One amount that differs. `before` or `after` is None where nothing was, or is, said."""

    container: str
    side: str  # "requests" or "limits"
    resource: str
    before: Quantity | None
    after: Quantity | None

    @property
    def grows(self) -> bool:
        """Whether more is wanted. A limit that goes away is more; a request that goes away is less."""
        if self.before is None or self.after is None:
            return (self.after is None) == (self.side == "limits")
        return self.after > self.before


def changes(old: PodSpec, new: PodSpec) -> list[ResizeChange]:
    """Return every amount that differs, containers in order of the new spec, then the pod as a whole."""
    before = {each.name: each for each in (*old.init_containers, *old.containers)}
    found: list[ResizeChange] = []
    for container in (*new.init_containers, *new.containers):
        known = before.get(container.name)
        if known is not None:
            mine, theirs = container.resources, known.resources
            found += _differences(container.name, "requests", theirs.requests, mine.requests)
            found += _differences(container.name, "limits", theirs.limits, mine.limits)
    for side in ("requests", "limits"):
        found += _differences(WHOLE_POD, side, _of_pod(old, side), _of_pod(new, side))
    return found


def why_not_in_place(old: PodSpec, new: PodSpec) -> str:
    """Return why these changes cannot be made to a running pod; "" if they can."""
    if _names(old.containers) != _names(new.containers) or _names(old.init_containers) != _names(
        new.init_containers
    ):
        return "containers may not be added, removed, renamed or reordered"
    for change in changes(old, new):
        where = f"container {change.container!r}" if change.container else "the pod"
        if change.resource not in RESIZABLE:
            return f"{change.resource} of {where} cannot be changed in place, only cpu and memory can"
        if change.after is None:
            return f"{change.side}.{change.resource} of {where} cannot be removed"
    if not keeps_qos(old, new):
        return f"the quality of service would change from {qos_class(old)} to {qos_class(new)}"
    return ""


def keeps_qos(old: PodSpec, new: PodSpec) -> bool:
    """Tell whether both specs get the same quality of service."""
    return qos_class(old) == qos_class(new)


def restarts(container: Container, changed: Sequence[ResizeChange]) -> bool:
    """Tell whether the container asked to be started anew when one of these changes is made to it."""
    touched = {change.resource for change in changed if change.container == container.name}
    return any(
        policy.resource_name in touched and policy.restart_policy == "RestartContainer"
        for policy in container.resize_policy
    )


def _names(containers: Sequence[Container]) -> list[str]:
    return [container.name for container in containers]


def _of_pod(spec: PodSpec, side: str) -> Mapping[str, Quantity]:
    if spec.resources is None:
        return {}
    return spec.resources.requests if side == "requests" else spec.resources.limits


def _differences(
    container: str, side: str, before: Mapping[str, Quantity], after: Mapping[str, Quantity]
) -> Iterator[ResizeChange]:
    for resource in sorted({*before, *after}):
        old, new = before.get(resource), after.get(resource)
        if old != new:
            yield ResizeChange(container, side, resource, old, new)
