"""What all containers of a pod ask for together.

Regular containers and sidecars run at the same time, other init containers one after the other beside the sidecars
started before them; the total is what is needed at the worst moment.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.quantity import Quantity

ResourceList = dict[str, Quantity]


def total_requests(spec: PodSpec) -> ResourceList:
    return _total(spec, lambda container: container.resources.requests)


def total_limits(spec: PodSpec) -> ResourceList:
    return _total(spec, lambda container: container.resources.limits)


def is_sidecar(container: Container) -> bool:
    """An init container that keeps running: restartPolicy Always."""
    return container.restart_policy == "Always"


def add(total: ResourceList, more: ResourceList) -> None:
    for name, quantity in more.items():
        known = total.get(name)
        total[name] = quantity if known is None else known + quantity


def _total(spec: PodSpec, of: Callable[[Container], ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for container in spec.containers:
        add(total, of(container))
    sidecars: ResourceList = {}
    worst: ResourceList = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            add(total, of(container))
            add(sidecars, of(container))
            _raise(worst, sidecars)
        else:
            together = dict(of(container))
            add(together, sidecars)
            _raise(worst, together)
    _raise(total, worst)
    return total


def _raise(total: ResourceList, other: ResourceList) -> None:
    for name, quantity in other.items():
        known = total.get(name)
        if known is None or quantity > known:
            total[name] = quantity
