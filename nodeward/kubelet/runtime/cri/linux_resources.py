"""How much a container may use, in the kernel's terms: shares, quota, bytes, and who dies first.

In go the container's requests and limits and what kind of pod it is in; out comes CRI's message for it. And the other
way: what the runtime says is in force.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.quantity import ZERO
from nodeward.kubelet.runtime.cri.messages import message
from nodeward.kubelet.runtime.resources import (
    PERIOD_US,
    ContainerResources,
    kernel_resources,
    plain_cpuset,
)
from nodeward.rules.qos import BEST_EFFORT, GUARANTEED, qos_class

_GUARANTEED_SCORE: Final = -997
_BEST_EFFORT_SCORE: Final = 1000
#: The priority of pods without which a node is no node.
_CRITICAL: Final = 2_000_001_000

#: How a limit is taken away; 0 would leave it as it is.
_NO_LIMIT: Final = -1


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


def resources(
    pod: Pod, container: Container, cpuset: str, memory_capacity: int, *, has_quota: bool = True
) -> Any:
    """`LinuxContainerResources` of a container that is to be made."""
    wanted = kernel_resources(container.resources, cpuset, has_quota=has_quota)
    return message("LinuxContainerResources")(
        cpu_period=PERIOD_US if wanted.cpu_quota_us else 0,
        cpu_quota=wanted.cpu_quota_us,
        cpu_shares=wanted.cpu_shares,
        memory_limit_in_bytes=wanted.memory_bytes,
        oom_score_adj=oom_score(pod, container, memory_capacity),
        cpuset_cpus=cpuset,
    )


def changed(wanted: ContainerResources) -> Any:
    """`LinuxContainerResources` for a running container: what is not named stays."""
    fields: dict[str, Any] = {}
    if wanted.cpu_shares is not None:
        fields["cpu_shares"] = wanted.cpu_shares
    if wanted.cpu_quota_us is not None:
        fields |= {"cpu_quota": wanted.cpu_quota_us or _NO_LIMIT, "cpu_period": PERIOD_US}
    if wanted.memory_bytes is not None:
        fields["memory_limit_in_bytes"] = wanted.memory_bytes or _NO_LIMIT
    if wanted.cpuset is not None:
        # CRI takes an empty list for "as it is": all CPUs must be named.
        fields["cpuset_cpus"] = plain_cpuset(wanted.cpuset) or all_cpus()
    return message("LinuxContainerResources")(**fields)


class _Cpu(msgspec.Struct):
    shares: int = 0
    quota: int = 0
    period: int = 0
    cpus: str = ""


class _Memory(msgspec.Struct):
    limit: int = 0


class _Linux(msgspec.Struct):
    cpu: _Cpu = msgspec.field(default_factory=_Cpu)
    memory: _Memory = msgspec.field(default_factory=_Memory)


class _Section(msgspec.Struct):
    resources: _Linux = msgspec.field(default_factory=_Linux)


class _Spec(msgspec.Struct):
    linux: _Section = msgspec.field(default_factory=_Section)


class _Info(msgspec.Struct, rename="camel"):
    runtime_spec: _Spec | None = None


_INFO: Final = msgspec.json.Decoder(_Info)


def in_force(answer: Any) -> ContainerResources | None:
    """What a verbose `ContainerStatusResponse` says is in force; None if it says nothing.

    Newer runtimes have a field for it; containerd 1.6 shows the container's OCI specification, and keeps it current.
    """
    if answer.status.HasField("resources") and answer.status.resources.HasField("linux"):
        linux = answer.status.resources.linux
        return _resources(
            linux.cpu_shares,
            linux.cpu_quota,
            linux.cpu_period,
            linux.memory_limit_in_bytes,
            linux.cpuset_cpus,
        )
    try:
        spec = _INFO.decode(answer.info.get("info", "{}")).runtime_spec
    except msgspec.MsgspecError:
        return None
    if spec is None:
        return None
    cpu, memory = spec.linux.resources.cpu, spec.linux.resources.memory
    return _resources(cpu.shares, cpu.quota, cpu.period, memory.limit, cpu.cpus)


def _resources(shares: int, quota: int, period: int, memory: int, cpus: str) -> ContainerResources:
    quota_us = quota * PERIOD_US // period if quota > 0 and period > 0 else 0
    return ContainerResources(shares, quota_us, max(memory, 0), plain_cpuset(cpus))


@functools.cache
def all_cpus() -> str:
    """The CPUs a container is told to use that may use any."""
    return str(CPUSet(os.sched_getaffinity(0)))
