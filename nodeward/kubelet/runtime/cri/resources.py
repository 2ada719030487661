"""How much a container may use, in the kernel's terms: shares, quota, bytes, and who dies first.

In go the container's requests and limits and what kind of pod it is in; out comes CRI's message for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import ZERO
from nodeward.kubelet.runtime.cri.messages import message
from nodeward.rules.qos import BEST_EFFORT, GUARANTEED, qos_class

_SHARES_PER_CPU: Final = 1024
_LEAST_SHARES: Final = 2
_MOST_SHARES: Final = 262144
_PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1000

_GUARANTEED_SCORE: Final = -997
_BEST_EFFORT_SCORE: Final = 1000
#: The priority of pods without which a node is no node.
_CRITICAL: Final = 2_000_001_000

#: What `update_resources` may be told, and the field each goes into.
UPDATABLE: Final[Mapping[str, str]] = {
    "cpu_shares": "cpu_shares",
    "cpu_quota": "cpu_quota",
    "cpu_period": "cpu_period",
    "memory_limit_in_bytes": "memory_limit_in_bytes",
}


def shares(milli: int) -> int:
    """The weight of a CPU request."""
    return min(max(milli * _SHARES_PER_CPU // 1000, _LEAST_SHARES), _MOST_SHARES)


def quota_us(milli: int) -> int:
    """Microseconds of every 100 ms that a CPU limit allows; 0: as much as there is."""
    return max(milli * _PERIOD_US // 1000, _LEAST_QUOTA_US) if milli else 0


def oom_score(pod: Pod, container: Container, memory_capacity: int) -> int:
    """Who is killed first when the node runs out of memory: the higher the sooner."""
    if (pod.spec.priority or 0) >= _CRITICAL:
        return _GUARANTEED_SCORE
    kind = qos_class(pod.spec)
    if kind == GUARANTEED:
        return _GUARANTEED_SCORE
    if kind == BEST_EFFORT:
        return _BEST_EFFORT_SCORE
    asked = container.resources.requests.get("memory", ZERO).value
    score = 1000 - 1000 * asked // memory_capacity if memory_capacity else 999
    return min(max(score, 1000 + _GUARANTEED_SCORE), _BEST_EFFORT_SCORE - 1)


def resources(pod: Pod, container: Container, cpuset: str, memory_capacity: int) -> Any:
    """`LinuxContainerResources` of a container that is to be made."""
    limits, requests = container.resources.limits, container.resources.requests
    cpu_limit = limits.get("cpu", ZERO).milli_value
    cpu_request = requests["cpu"].milli_value if "cpu" in requests else cpu_limit
    return message("LinuxContainerResources")(
        cpu_period=_PERIOD_US if cpu_limit else 0,
        cpu_quota=quota_us(cpu_limit),
        cpu_shares=shares(cpu_request),
        memory_limit_in_bytes=limits.get("memory", ZERO).value,
        oom_score_adj=oom_score(pod, container, memory_capacity),
        cpuset_cpus=cpuset,
    )


def changed(cpuset: str, amounts: Mapping[str, int]) -> Any:
    """`LinuxContainerResources` for a running container: what is not named stays."""
    fields = {UPDATABLE[name]: amount for name, amount in amounts.items() if name in UPDATABLE}
    return message("LinuxContainerResources")(cpuset_cpus=cpuset, **fields)
