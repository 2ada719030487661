"""Pod-level resources must cover what claims map onto the node's own resources (cpu, memory, huge pages)."""

from __future__ import annotations

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import ZERO
from nodeward.rules.pod_resources import Amounts, add, container_limits, container_requests
from nodeward.rules.resource_names import is_hugepages, is_pod_level


def uncovered_by_pod(pod: Pod, resources: ResourceRequirements) -> str:
    """What is not covered, in words; "" if all is."""
    claimed = _claimed(pod)
    requests = container_requests(pod.spec)
    add(requests, claimed)
    for name, own in resources.requests.items():
        if is_pod_level(name) and requests.get(name, ZERO) > own:
            return (
                f"pod level request for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            )
    limits = container_limits(pod.spec)
    for name, quantity in claimed.items():
        if name in limits or is_hugepages(name):
            add(limits, {name: quantity})
    for name, total in limits.items():
        if is_hugepages(name) and name in resources.limits and total > resources.limits[name]:
            return (
                f"pod level limit for {name} is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            )
    for container in pod.spec.containers:
        of_container = _claimed(pod, container.name)
        for name, limit in container.resources.limits.items():
            own_limit = None if is_hugepages(name) else resources.limits.get(name)
            if own_limit is not None and limit + of_container.get(name, ZERO) > own_limit:
                return (
                    f"pod level limit for {name} is insufficient to cover the limit and DRA overhead "
                    f"for container {container.name}"
                )
    return ""


def _claimed(pod: Pod, container: str | None = None) -> Amounts:
    """What the pod's claims take from the node, for all or for one container."""
    claimed: Amounts = {}
    for status in pod.status.node_allocatable_resource_claim_statuses:
        if container is not None and container not in status.containers:
            continue
        for mapping in status.mapping:
            if mapping.quantity is not None:
                add(claimed, {mapping.name: mapping.quantity})
        for overhead in status.overhead:
            times = len(status.containers) if container is None else 1
            amount = (overhead.per_pod or ZERO) + (overhead.per_container or ZERO) * times
            add(claimed, {overhead.name: amount})
    return claimed
