"""Make the static policy of a node from the kubelet's configuration and its machine.

Called when the kubelet starts, before its state file is read. `config.cpu_options` has read the options by then.

What must stay true: the static policy never starts without reserved CPUs, because the shared set must not run empty;
texts are upstream's.
"""

from __future__ import annotations

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.cpu.topology import CPUTopology


def make_static_policy(
    topology: CPUTopology,
    options: CpuManagerOptions,
    reservation: Quantity | None,
    *,
    reserved: CPUSet = CPUSet.EMPTY,
    topology_policy: str = "none",
    with_pod_level: bool = False,
) -> StaticPolicy:
    """Return the policy. Raises `ConfigError`.

    reservation: the CPUs of systemReserved and kubeReserved together, None if unknown. reserved: those of
    reservedSystemCPUs. with_pod_level: feature gate PodLevelResourceManagers is on.
    """
    if reservation is None:
        raise ConfigError("[cpumanager] unable to determine reserved CPU resources for static policy")
    if reservation.is_zero:
        raise ConfigError(
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
        )
    try:
        return StaticPolicy(
            topology,
            options,
            # Part of a CPU cannot be reserved, so it counts as a whole one.
            reserved_count=-(-reservation.milli_value // 1000),
            reserved=reserved,
            topology_policy=topology_policy,
            with_pod_level=with_pod_level,
        )
    except ConfigError as error:
        raise ConfigError(f"new static policy error: {error}") from None
