"""Make the container manager of a node from the kubelet's configuration, its machine and its state file.

The `Host` calls `make_container_manager` when a kubelet starts. `config.cpu_options` has read the options by then.

What must stay true: the static policy never starts without reserved CPUs, because the shared set must not run empty;
texts are upstream's;
without the static policy a node costs nothing here, and has no state file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.config.cpu_options import TRUE_TEXTS, CpuManagerOptions
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.container_manager import SHARED_CPUS, ContainerManager
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.exclusive_resize import ExclusiveResize
from nodeward.kubelet.cpu.node_pods import NodePods
from nodeward.kubelet.cpu.state_store import CPUStateStore, check_foreign_state
from nodeward.kubelet.cpu.static_cpus import ManagerParts, StaticCPUs
from nodeward.kubelet.cpu.static_policy import InvalidState, StaticPolicy
from nodeward.kubelet.cpu.topology import CPUDescription, CPUTopology
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.node_services import NodeServices
from nodeward.kubelet.topology_manager.hint_provider import HintProvider
from nodeward.kubelet.topology_manager.merging import TopologyPolicy
from nodeward.kubelet.topology_manager.topology_admission import MOST_NUMA_NODES, TopologyManager

RESIZE_GATE: Final = "InPlacePodVerticalScalingExclusiveCPUs"
#: With the gate, pods with the annotation "true" do without the scale-down delay (KEP-6122 plans an opt-out).
OPT_OUT_GATE: Final = "CPUManagerScaleDelayOptOut"
OPT_OUT_ANNOTATION: Final = "cpu-manager.kubernetes.io/skip-scale-delay"


def make_container_manager(
    specification: NodeSpecification, services: NodeServices, pods: NodePods, parts: ManagerParts
) -> ContainerManager:
    """Return the container manager of a node whose kubelet starts.

    Raises `ConfigError`, or `StateFileError` or `InvalidState` when the state file is not one of this node.
    """
    settings = specification.settings
    if settings.cpu_policy != StaticPolicy.name:
        if services.has_disk:
            check_foreign_state(services.disk)
        return SHARED_CPUS
    gates = settings.gates
    topology = machine_topology(specification.model)
    policy = configured_policy(topology, settings)
    store = CPUStateStore(services.disk, policy.name)
    state = store.load(keeps_baselines=gates.enabled(RESIZE_GATE), with_pod_level=policy.with_pod_level)
    resizing = None
    if gates.enabled(RESIZE_GATE):
        resizing = ExclusiveResize(
            policy, state, lambda pod: scale_delay_ns(settings, pod), parts.clock.monotonic_ns
        )
    try:
        cpus = CPUManager(policy, state, pods.active, parts.metrics, resizing)
    except InvalidState as error:
        raise InvalidState(
            f"static policy invalid state, please drain node and remove policy state file {store.path}: {error}"
        ) from None
    topology_manager = make_topology_manager(settings, topology, [cpus], with_pod_level=policy.with_pod_level)
    made = StaticCPUs(specification.name, settings, cpus, topology_manager, store, pods, parts)
    made.start()
    return made


def make_topology_manager(
    settings: KubeletSettings,
    topology: CPUTopology,
    providers: Sequence[HintProvider],
    *,
    with_pod_level: bool = False,
) -> TopologyManager:
    """Return the topology manager of a machine. Raises `ConfigError`."""
    options = settings.topology_options
    prefers_closest = options.get("prefer-closest-numa-nodes", "") in TRUE_TEXTS
    if prefers_closest and topology.distances is None and settings.topology_policy != "none":
        raise ConfigError("cannot discover NUMA topology: error getting NUMA distances from cadvisor")
    return TopologyManager(
        TopologyPolicy(
            settings.topology_policy,
            tuple(topology.numa_nodes),
            topology.distances or {},
            prefers_closest=prefers_closest,
        ),
        providers,
        scope=settings.topology_scope,
        with_pod_level=with_pod_level,
        most_numa_nodes=int(options.get("max-allowable-numa-nodes", MOST_NUMA_NODES)),
    )


def configured_policy(topology: CPUTopology, settings: KubeletSettings) -> StaticPolicy:
    """Return the static policy of a kubelet with these settings on a machine. Raises `ConfigError`."""
    gates = settings.gates
    return make_static_policy(
        topology,
        settings.cpu_options,
        settings.reservation.amounts.get("cpu"),
        reserved=settings.reservation.cpus,
        topology_policy=settings.topology_policy,
        with_pod_level=gates.enabled("PodLevelResourceManagers") and gates.enabled("PodLevelResources"),
    )


def scale_delay_ns(settings: KubeletSettings, pod: Pod) -> int:
    """Return how long a pod's containers keep exclusive CPUs that they give up."""
    if settings.gates.enabled(OPT_OUT_GATE) and pod.metadata.annotations.get(OPT_OUT_ANNOTATION) == "true":
        return 0
    return settings.cpu_options.scale_delay_ns


def machine_topology(model: NodeModel) -> CPUTopology:
    """Return where the CPUs of a node are. Without a description each is a core of one socket. Raises `ConfigError`."""
    if model.cpus is not None:
        return model.cpus
    cpus = model.capacity["cpu"].value if "cpu" in model.capacity else 0
    if cpus < 1:
        raise ConfigError("could not detect number of cpus")
    return _flat_topology(cpus)


@lru_cache(maxsize=16)
def _flat_topology(cpus: int) -> CPUTopology:
    return CPUDescription(cores_per_numa=cpus).topology()


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
