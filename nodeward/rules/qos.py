"""Which quality of service a pod gets, from its requests and limits for cpu and memory."""

from __future__ import annotations

from collections.abc import Iterable

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import PodSpec

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COUNTED = ("cpu", "memory")


def qos_class(spec: PodSpec) -> str:
    """Pod-level resources decide alone where there are any; else all containers together."""
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return _class_of([spec.resources])
    return _class_of(container.resources for container in (*spec.containers, *spec.init_containers))


def _class_of(parts: Iterable[ResourceRequirements]) -> str:
    has_any = False
    is_guaranteed = True
    for part in parts:
        asked = {name: q for name in _COUNTED if (q := part.requests.get(name)) is not None and q.sign > 0}
        limited = {name: q for name in _COUNTED if (q := part.limits.get(name)) is not None and q.sign > 0}
        has_any = has_any or bool(asked) or bool(limited)
        if len(limited) != len(_COUNTED) or any(
            asked.get(name, limit) != limit for name, limit in limited.items()
        ):
            is_guaranteed = False
    if not has_any:
        return BEST_EFFORT
    return GUARANTEED if is_guaranteed else BURSTABLE
