"""The `cpus` part of the benchmark: exclusive CPUs for a container on a large machine (KEP-6122).

Measured are the choice of CPUs alone, packed and distributed, a whole admission with hints of all combinations of NUMA
nodes, and a reconcile pass over a thousand containers that wait for a scale-down delay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import HOUR_NS
from nodeward.base.invariant import invariant
from nodeward.base.quantity import Quantity
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.cpu.assignment import take_distributed, take_packed
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.cpu_metrics import CPUMetrics
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.exclusive_resize import ExclusiveResize
from nodeward.kubelet.cpu.policy_setup import RESIZE_GATE, make_static_policy
from nodeward.kubelet.cpu.state_store import CPUStateStore
from nodeward.kubelet.cpu.static_cpus import ManagerParts, StaticCPUs
from nodeward.kubelet.cpu.topology import CPUDescription, MachineCore, discover
from nodeward.kubelet.disk import MemoryDisk
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.kubelet.topology_manager.merging import RESTRICTED, TopologyPolicy
from nodeward.kubelet.topology_manager.topology_admission import POD_SCOPE, TopologyManager
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.metrics import Metrics

ROUNDS: Final = 200
WANTED: Final = 8
WAITING: Final = 1000
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

    yield Figure(
        "cpus/reconcile-delays",
        _pass_with_delays(clock) / 1e6,
        "ms",
        f"one pass over {WAITING} running containers, each of which holds a CPU in a scale-down delay",
    )


class _RunningPods:
    """Pods of one container each, all of which run; files and events are nobody's business here."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods

    def active(self) -> Sequence[Pod]:
        return self._pods

    def running_id(self, uid: str, container: str) -> str:
        return uid

    def cpus_in_force(self, uid: str, container: str) -> None:
        """Nothing is known from before."""

    def refresh_own_fields(self, uid: str, written: Callable[[str], None]) -> None:
        written("")

    def sync(self, uid: str) -> None:
        """Nobody waits for a resize."""

    def record(self, uid: str, event: RecordEvent) -> None:
        """Nobody reads events."""


def _pass_with_delays(clock: Clock) -> float:
    """Return how long a pass takes in which no delay is over, in ns."""
    cores = {0: [MachineCore(0, (cpu,)) for cpu in range(2 * WAITING + 1)]}
    topology = discover(cores, cpu_count=2 * WAITING + 1, socket_count=1)
    options = {"scale-delay-time": "10s"}
    config = {"cpuManagerPolicy": "static", "cpuManagerPolicyOptions": options, "reservedSystemCPUs": "0"}
    gates = {"CPUManagerPolicyAlphaOptions": True, RESIZE_GATE: True}
    settings = load_tree(config, "bench", "1.37", gates)
    pods = _RunningPods([_pod(f"pod-{number}", 1) for number in range(WAITING)])
    wheel, runtime = TimerWheel(clock), SimRuntime(clock)
    parts = ManagerParts(clock, wheel, runtime, CPUMetrics(Metrics()))
    disk = MemoryDisk()
    policy = make_static_policy(topology, settings.cpu_options, Quantity.of_int(1), reserved=CPUSet.of(0))
    state = CPUState(keeps_baselines=True)
    resizing = ExclusiveResize(
        policy, state, lambda _: settings.cpu_options.scale_delay_ns, clock.monotonic_ns
    )
    cpus = CPUManager(policy, state, pods.active, parts.metrics, resizing)
    joined = TopologyManager(TopologyPolicy(RESTRICTED, (0,), {}), [cpus], scope=POD_SCOPE)
    manager = StaticCPUs("node", settings, cpus, joined, CPUStateStore(disk, policy.name), pods, parts)
    manager.on_pods_known()
    for number, pod in enumerate(pods.active()):
        uid = pod.metadata.uid
        both = CPUSet.of(2 * number + 1, 2 * number + 2)
        state.assign(uid, "c", both)
        state.default -= both
        cpus.on_applied(uid, "c", both)
        # Long enough that no delay ends while this is measured.
        resizing.delays.start(uid, "c", CPUSet.of(2 * number + 1), HOUR_NS, clock.monotonic_ns())
    best = _fastest(clock, manager.reconcile)
    still = cpus.resizing is not None and all(
        cpus.resizing.delays.is_waiting(f"pod-{n}") for n in (0, WAITING - 1)
    )
    invariant(still, "no delay was over")
    wheel.stop()
    return best


def _pod(name: str, cpus: int) -> Pod:
    amounts = {"cpu": Quantity.of_int(cpus), "memory": Quantity.parse("1Gi")}
    container = Container(name="c", resources=ResourceRequirements(requests=amounts, limits=amounts))
    return Pod(metadata=ObjectMeta(name=name, uid=name), spec=PodSpec(containers=[container]))


def _admission(clock: Clock) -> float:
    """Return how long a pod takes from hints to allocation, in ns; its CPUs return between rounds."""
    topology = MACHINE.topology()
    pod = _pod("pod", WANTED)
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
