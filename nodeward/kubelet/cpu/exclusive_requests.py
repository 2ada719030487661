"""How many exclusive CPUs containers and pods ask for.

A container gets exclusive CPUs if its pod is Guaranteed and its CPU request is a whole number. The static policy asks
here before it allocates CPUs or makes hints. Pure.

What must stay true: a pod with pod-level resources gets exclusive CPUs only with feature gate
PodLevelResourceManagers; there each container must have equal requests and limits of its own.
"""

from __future__ import annotations

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import ZERO, Quantity
from nodeward.rules.pod_resources import has_pod_level, is_sidecar
from nodeward.rules.qos import GUARANTEED, pod_qos

CPU = "cpu"


def container_cpus(pod: Pod, container: Container, *, with_pod_level: bool) -> int:
    """Return the number of exclusive CPUs a container asks for, 0 if it runs on the shared set.

    with_pod_level: feature gate PodLevelResourceManagers is on.
    """
    if pod_qos(pod) != GUARANTEED:
        return 0
    if with_pod_level and has_pod_level(pod.spec) and not _is_guaranteed(container):
        return 0
    return _whole(container.resources.requests.get(CPU, ZERO))


def pod_cpus(pod: Pod, *, with_pod_level: bool) -> int:
    """Return the largest number of exclusive CPUs a pod holds at one moment of its life."""
    if with_pod_level and has_pod_level(pod.spec):
        own = pod.spec.resources
        if own is None or pod_qos(pod) != GUARANTEED:
            return 0
        return _whole(own.requests.get(CPU, ZERO))
    starting = sidecars = 0
    for container in pod.spec.init_containers:
        cpus = container_cpus(pod, container, with_pod_level=with_pod_level)
        if is_sidecar(container):
            sidecars += cpus
        else:
            starting = max(starting, sidecars + cpus)
    running = sum(container_cpus(pod, each, with_pod_level=with_pod_level) for each in pod.spec.containers)
    return max(starting, sidecars + running)


def empty_shared_pool(pod: Pod) -> str | None:
    """Say why a pod with pod-level resources leaves no CPUs to its containers without exclusive ones."""
    total = pod_cpus(pod, with_pod_level=True)
    exclusive, has_shared = 0, False
    for container in pod.spec.init_containers:
        cpus = container_cpus(pod, container, with_pod_level=True)
        if is_sidecar(container):
            exclusive += cpus
            has_shared = has_shared or cpus == 0
        elif cpus == 0 and exclusive >= total:
            return "pod rejected, pod has shared init containers but no cpus available for them"
    for container in pod.spec.containers:
        cpus = container_cpus(pod, container, with_pod_level=True)
        exclusive += cpus
        has_shared = has_shared or cpus == 0
    if has_shared and exclusive >= total:
        return (
            "pod rejected, sum of exclusive container cpu requests equals pod budget,"
            " leaving no cpus for shared containers"
        )
    return None


def _is_guaranteed(container: Container) -> bool:
    requests, limits = container.resources.requests, container.resources.limits
    return all(requests.get(name) and requests.get(name) == limits.get(name) for name in (CPU, "memory"))


def _whole(amount: Quantity) -> int:
    return amount.value if amount.value * 1000 == amount.milli_value else 0
