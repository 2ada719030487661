"""The `cpus` part of the benchmark: exclusive CPUs for a container on a large machine (KEP-6122).

Measured are the choice of CPUs alone, packed and distributed, and a whole admission with hints of all combinations of
NUMA nodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.cpuset import CPUSet
from nodeward.base.invariant import invariant
from nodeward.base.quantity import Quantity
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.cpu.assignment import take_distributed, take_packed
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.policy_setup import make_static_policy
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.topology_manager.merging import RESTRICTED, TopologyPolicy
from nodeward.kubelet.topology_manager.topology_admission import POD_SCOPE, TopologyManager
from nodeward.machinery.clock import Clock, RealClock

ROUNDS: Final = 200
WANTED: Final = 8
MACHINE: Final = CPUDescription(sockets=2, numa_per_socket=4, cores_per_numa=16, threads=2, uncore=8)


async def cpus_figures(_cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures; the fastest round counts."""
    clock, topology = RealClock(), MACHINE.topology()
    # Every NUMA node has lost some CPUs, so that no unit but cores is free as a whole.
    free = topology.all_cpus - CPUSet.parse("0,16-17,32-34,48,64-67,80,96-98,112")
    machine = f"{WANTED} of {len(topology.all_cpus)} CPUs, {len(topology.numa_nodes)} NUMA nodes"
    size = f"{machine}, all of them used in part"
    packed = _fastest(clock, lambda: take_packed(topology, free, WANTED))
    yield Figure("cpus/take-packed", packed / 1e3, "us", size)
    uncore = _fastest(clock, lambda: take_packed(topology, free, WANTED, align_by_uncore=True))
    yield Figure("cpus/take-uncore", uncore / 1e3, "us", f"{size}; prefer-align-cpus-by-uncorecache")
    spread = _fastest(clock, lambda: take_distributed(topology, free, WANTED, group=2))
    yield Figure(
        "cpus/take-distributed", spread / 1e3, "us", f"{size}; distribute-cpus-across-numa, full-pcpus-only"
    )
    yield Figure(
        "cpus/admit",
        _admission(clock) / 1e3,
        "us",
        f"{machine}, none used; a whole pod with hints, restricted, pod scope",
    )


def _admission(clock: Clock) -> float:
    """Return how long a pod takes from hints to allocation, in ns; its CPUs return between rounds."""
    topology = MACHINE.topology()
    amounts = {"cpu": Quantity.of_int(WANTED), "memory": Quantity.parse("1Gi")}
    container = Container(name="c", resources=ResourceRequirements(requests=amounts, limits=amounts))
    pod = Pod(metadata=ObjectMeta(name="pod", uid="pod"), spec=PodSpec(containers=[container]))
    static = make_static_policy(topology, CpuManagerOptions(), Quantity.of_int(2))
    cpus = CPUManager(static, CPUState(), lambda: [pod])
    policy = TopologyPolicy(RESTRICTED, tuple(topology.numa_nodes), {})
    manager = TopologyManager(policy, [cpus], scope=POD_SCOPE)

    def admit() -> None:
        refusal = manager.admit(pod)
        invariant(refusal is None, f"the machine has room for the pod: {refusal}")

    best = _fastest(clock, admit, lambda: static.remove(cpus.state, "pod", "c"))
    invariant(cpus.state.default == topology.all_cpus, "all CPUs came back")
    return best


def _fastest(clock: Clock, act: Callable[[], object], undo: Callable[[], object] = lambda: None) -> float:
    best = 1 << 62
    for _ in range(ROUNDS):
        started = clock.monotonic_ns()
        act()
        best = min(best, max(1, clock.monotonic_ns() - started))
        undo()
    return best
