"""How much a pod asks for and may use, all containers together.

In goes a pod, out comes a map from resource to exact quantity. Containers add up; init containers run one after the
other, so the hungriest counts; an init container that keeps running (a side-car) counts beside all that start after
it. Resources of the pod as a whole replace the sum. During a resize a pod holds both the old and the new size, so
with `with_status` the larger counts, until the node has said that it cannot be done.

Called by the API server, the scheduler, controllers and the kubelet; calls `resource_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.base.quantity import Quantity
from nodeward.rules.resource_names import is_pod_level

Amounts: TypeAlias = dict[str, Quantity]

_Pick: TypeAlias = Callable[[Container], Mapping[str, Quantity]]
_NOTHING: Mapping[str, Quantity] = {}


def pod_requests(
    pod: Pod,
    *,
    with_pod_level: bool = True,
    with_status: bool = False,
    with_pod_status: bool = False,
    with_overhead: bool = True,
    missing: Mapping[str, Quantity] = _NOTHING,
) -> Amounts:
    """Return the pod's total requests. A container without a request counts with what is in `missing`.

    `with_pod_status`: a resize of the pod as a whole counts as one of its containers does.
    """
    spec = pod.spec
    total = _aggregate(spec, lambda container: container.resources.requests, missing)
    if with_status:
        is_infeasible = resize_is_infeasible(pod)
        statuses = _statuses(pod)

        def allocated(container: Container) -> Mapping[str, Quantity]:
            status = statuses.get(container.name)
            if status is not None and status.allocated_resources:
                return status.allocated_resources
            return _NOTHING if is_infeasible else container.resources.requests

        def actuated(container: Container) -> Mapping[str, Quantity]:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.requests:
                return status.resources.requests
            return allocated(container)

        held = _aggregate(spec, allocated, missing)
        raise_to(held, _aggregate(spec, actuated, missing))
        if is_infeasible:
            total = held
        else:
            raise_to(total, held)
    if with_pod_level and spec.resources is not None:
        total |= _pod_level(spec.resources.requests)
        if with_pod_status and pod.status.resources is not None and _pod_level(spec.resources.requests):
            total |= _held_by_pod(pod)
    if with_overhead:
        add(total, spec.overhead)
    return total


def pod_limits(
    pod: Pod, *, with_pod_level: bool = True, with_status: bool = False, with_overhead: bool = True
) -> Amounts:
    """Return what the pod can use at most, as far as it is limited."""
    spec = pod.spec
    total = _aggregate(spec, lambda container: container.resources.limits)
    if with_status:
        is_infeasible = resize_is_infeasible(pod)
        statuses = _statuses(pod)

        def actuated(container: Container) -> Mapping[str, Quantity]:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.limits:
                return status.resources.limits
            return _NOTHING if is_infeasible else container.resources.limits

        held = _aggregate(spec, actuated)
        if is_infeasible:
            total = held
        else:
            raise_to(total, held)
    if with_pod_level and spec.resources is not None:
        total |= _pod_level(spec.resources.limits)
    if with_overhead:
        add(total, {name: amount for name, amount in spec.overhead.items() if total.get(name)})
    return total


def container_requests(spec: PodSpec) -> Amounts:
    """Return the containers' highest total at any moment, without overhead and pod-level resources."""
    return _aggregate(spec, lambda container: container.resources.requests)


def container_limits(spec: PodSpec) -> Amounts:
    """Return what the containers may use together at the worst moment, as far as they are limited."""
    return _aggregate(spec, lambda container: container.resources.limits)


def is_sidecar(container: Container) -> bool:
    """Tell whether an init container keeps running beside those that start after it."""
    return container.restart_policy == "Always"


def resize_is_infeasible(pod: Pod) -> bool:
    """Tell whether the node has said that what the spec asks for can never be."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def has_pod_level(spec: PodSpec) -> bool:
    """Tell whether anything is asked for the pod as a whole that can be."""
    resources = spec.resources
    return resources is not None and bool(_pod_level(resources.requests) or _pod_level(resources.limits))


def add(into: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        before = into.get(name)
        into[name] = amount if before is None else before + amount


def raise_to(into: Amounts, other: Mapping[str, Quantity]) -> None:
    """Make each amount at least as large as the other one."""
    for name, amount in other.items():
        before = into.get(name)
        if before is None or amount > before:
            into[name] = amount


def _held_by_pod(pod: Pod) -> Amounts:
    """Return what a pod with resources of its own holds during a resize: the largest of desired, allocated, actual."""
    spec, status = pod.spec, pod.status
    found: Amounts = {}
    if spec.resources is not None and not resize_is_infeasible(pod):
        raise_to(found, _pod_level(spec.resources.requests))
    if status.resources is not None:
        raise_to(found, _pod_level(status.resources.requests))
    raise_to(found, _pod_level(status.allocated_resources))
    return found


def _pod_level(amounts: Mapping[str, Quantity]) -> Amounts:
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    listed = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return {status.name: status for status in listed}


def _aggregate(spec: PodSpec, pick: _Pick, missing: Mapping[str, Quantity] = _NOTHING) -> Amounts:
    def taken(container: Container) -> Mapping[str, Quantity]:
        return {**missing, **pick(container)} if missing else pick(container)

    total: Amounts = {}
    for container in spec.containers:
        add(total, taken(container))
    side_cars: Amounts = {}
    starting: Amounts = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            add(total, taken(container))
            add(side_cars, taken(container))
            raise_to(starting, side_cars)
        else:
            together = dict(taken(container))
            add(together, side_cars)
            raise_to(starting, together)
    raise_to(total, starting)
    return total
