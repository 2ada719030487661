"""The quality-of-service class of a pod: what its requests and limits of cpu and memory promise.

Called by validation (a resize must keep the class), the API server, quotas and the node agent. Pure.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.base.quantity import ZERO
from nodeward.rules.resource_names import is_pod_level

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_COMPUTE: Final = ("cpu", "memory")


def pod_qos(pod: Pod) -> str:
    """Return the pod's QoS class: from its status, else computed from its spec."""
    return pod.status.qos_class or qos_class(pod.spec)


def qos_class(spec: PodSpec) -> str:
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
            if found == BURSTABLE or (first and found != first):
                return BURSTABLE
            first = found
    return first or BEST_EFFORT


def _resource_qos(resources: ResourceRequirements, name: str) -> str:
    request = resources.requests.get(name, ZERO)
    if request != resources.limits.get(name, ZERO):
        return BURSTABLE
    return GUARANTEED if request else BEST_EFFORT
