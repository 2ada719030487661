"""The quality-of-service class of a pod: what its requests and limits of cpu and memory promise."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.validation.resources import is_pod_level
from nodeward.base.quantity import ZERO

_COMPUTE: Final = ("cpu", "memory")


def pod_qos(pod: Pod) -> str:
    """The class the pod has: what its status says, else what its spec says."""
    return pod.status.qos_class or compute_qos(pod.spec)


def compute_qos(spec: PodSpec) -> str:
    """`Guaranteed`: everywhere requests equal to limits; `BestEffort`: nothing asked for; else `Burstable`."""
    own = spec.resources
    if own is not None and any(is_pod_level(name) for name in (*own.requests, *own.limits)):
        parts = [own]
    else:
        parts = [container.resources for container in (*spec.init_containers, *spec.containers)]
    first = ""
    for part in parts:
        for name in _COMPUTE:
            found = _resource_qos(part, name)
            if found == "Burstable" or (first and found != first):
                return "Burstable"
            first = found
    return first or "BestEffort"


def _resource_qos(resources: ResourceRequirements, name: str) -> str:
    request = resources.requests.get(name, ZERO)
    if request != resources.limits.get(name, ZERO):
        return "Burstable"
    return "Guaranteed" if request else "BestEffort"
