"""What a pod was allocated, or what its containers were given: requests and limits per container and of the whole pod.

The allocation of a node keeps one such record for every pod that was ever resized (`pod_resource_states`); pod lives
start from it after a restart. `info_of` and `with_info` lead from a pod to its record and back; `written_info` reads
what an earlier kubelet has written into the pod's status. Pure.

What must stay true: a record names init containers and containers, never ephemeral ones, which have no resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus, PodStatus
from nodeward.base.quantity import ZERO, Quantity
from nodeward.kubelet.runtime.resources import kernel_resources

CPU = "cpu"
MEMORY = "memory"
#: What can be resized.
RESIZABLE = (CPU, MEMORY)


class PodResourceInfo(NamedTuple):
    """Requests and limits of one pod."""

    #: by container name
    containers: Mapping[str, ResourceRequirements]
    #: of the pod as a whole; None if it has none
    pod_level: ResourceRequirements | None = None


def info_of(pod: Pod) -> PodResourceInfo:
    """Return what the spec of a pod asks for."""
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return PodResourceInfo({each.name: each.resources for each in every}, pod.spec.resources)


def with_info(pod: Pod, info: PodResourceInfo) -> Pod:
    """Return the pod with other resources; the same object if they are the same."""
    spec = pod.spec
    if spec.resources == info.pod_level and all(
        info.containers.get(each.name, each.resources) == each.resources
        for each in (*spec.init_containers, *spec.containers)
    ):
        return pod

    def changed(containers: list[Container]) -> list[Container]:
        return [
            replace(each, resources=info.containers.get(each.name, each.resources)) for each in containers
        ]

    inits, mains = changed(spec.init_containers), changed(spec.containers)
    return replace(pod, spec=replace(spec, init_containers=inits, containers=mains, resources=info.pod_level))


def is_same_size(one: ResourceRequirements | None, other: ResourceRequirements | None) -> bool:
    """Whether cpu and memory are the same in both; an amount of zero is as good as none."""
    if one is other:
        return True
    return all(amount(one, kind, name) == amount(other, kind, name) for kind in _KINDS for name in RESIZABLE)


_KINDS = ("requests", "limits")


def amount(resources: ResourceRequirements | None, kind: str, name: str) -> Quantity:
    """Return one amount of some resources, zero if there is none; `kind` is `requests` or `limits`."""
    if resources is None:
        return ZERO
    amounts: Mapping[str, Quantity] = getattr(resources, kind)
    return amounts.get(name, ZERO)


def overlaid(
    base: ResourceRequirements, other: ResourceRequirements, names: tuple[str, ...]
) -> ResourceRequirements:
    """Return `base` with the amounts of `names` taken from `other`, also where `other` has none."""

    def mixed(own: dict[str, Quantity], from_other: dict[str, Quantity]) -> dict[str, Quantity]:
        kept = {key: value for key, value in own.items() if key not in names}
        return kept | {key: from_other[key] for key in names if key in from_other}

    return ResourceRequirements(
        requests=mixed(base.requests, other.requests),
        limits=mixed(base.limits, other.limits),
        claims=base.claims,
    )


def resources_tree(resources: ResourceRequirements) -> dict[str, Any]:
    """Return requests and limits as plain values, in the order in which Go writes maps."""
    tree: dict[str, Any] = to_tree(resources)
    return {key: dict(sorted(each.items())) if isinstance(each, dict) else each for key, each in tree.items()}


def written_info(pod: Pod) -> PodResourceInfo | None:
    """Return what the status says an earlier kubelet had allocated to a pod; None if that is what the spec says.

    For pods that were never resized, of which no other record is kept.
    """
    status = pod.status
    written = {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}
    if not written or _was_accepted(pod):
        return None
    every = (*pod.spec.init_containers, *pod.spec.containers)
    found = {each.name: _written(each, written.get(each.name)) for each in every}
    pod_level = _written_pod_level(pod.spec.resources, status)
    if pod_level == pod.spec.resources and all(found[each.name] is each.resources for each in every):
        return None
    return PodResourceInfo(found, pod_level)


def _was_accepted(pod: Pod) -> bool:
    """Whether the status says that what the spec asks for is allocated: its version was seen, and is not pending."""
    generation, conditions = pod.metadata.generation, pod.status.conditions
    if pod.status.observed_generation == generation:
        return not any(each.type == "PodResizePending" for each in conditions)
    return any(
        each.type == "PodResizeInProgress" and each.observed_generation == generation for each in conditions
    )


def _written(container: Container, status: ContainerStatus | None) -> ResourceRequirements:
    wanted = container.resources
    if status is None or status.resources is None:
        return wanted
    requests = {**wanted.requests, **status.allocated_resources}
    has_same_requests = requests == wanted.requests
    if has_same_requests and kernel_resources(status.resources) == kernel_resources(wanted):
        return wanted
    limits = {**wanted.limits, **status.resources.limits}
    if has_same_requests and limits == wanted.limits:
        return wanted
    return ResourceRequirements(requests=requests, limits=limits, claims=wanted.claims)


def _written_pod_level(wanted: ResourceRequirements | None, status: PodStatus) -> ResourceRequirements | None:
    if wanted is None or status.resources is None or not status.allocated_resources:
        return wanted
    requests = {name: status.allocated_resources.get(name, value) for name, value in wanted.requests.items()}
    limits = {name: status.resources.limits.get(name, value) for name, value in wanted.limits.items()}
    return ResourceRequirements(requests=requests, limits=limits, claims=wanted.claims)
