"""What CPU and topology managers count, under the names of Kubernetes.

One object per process, as `KubeletMetrics` has it: the managers of all its nodes count together, and gauges add up
over them (`follow`, until `leave`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.exclusive_requests import CPU
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.machinery.metrics import Metrics

CONTAINER: Final = "container"
POD: Final = "pod"
PHYSICAL_CPU: Final = "physical_cpu"
NUMA_NODE: Final = "numa_node"
UNCORE_CACHE: Final = "uncore_cache"
_ALIGNMENT: Final = ("scope", "boundary")
_DELAYS: Final = (0.5, 1.0, 2.0, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 30.0, 60.0)
_BOUNDARIES: Final = (
    (CONTAINER, PHYSICAL_CPU),
    (CONTAINER, UNCORE_CACHE),
    (CONTAINER, NUMA_NODE),
    (POD, NUMA_NODE),
)


class PodLevelCPUMetrics:
    """Allocations of CPUs to containers and to whole pods."""

    def __init__(self, metrics: Metrics) -> None:
        counter, prefix = metrics.counter, "kubelet_resource_manager"
        labels = ("resource_name", "source")
        self._allocations: Final = counter(
            f"{prefix}_allocations_total",
            "Allocations of exclusive resources, from the node or a pod.",
            labels,
        )
        self._errors: Final = counter(
            f"{prefix}_allocation_errors_total", "Allocations of exclusive resources that failed.", labels
        )
        self._assignments: Final = counter(
            f"{prefix}_container_assignments_total",
            "Containers by how they got their resources.",
            ("resource_name", "assignment_type"),
        )

    def count_container(self, *, is_allocated: bool) -> None:
        """Count the allocation of a container's CPUs from those of the node."""
        if is_allocated:
            self._allocations.inc(CPU, "node")
            self._assignments.inc(CPU, "node_exclusive")
        else:
            self._errors.inc(CPU, "node")

    def count_pod(self, exclusive: int, shared: int, *, is_allocated: bool) -> None:
        """Count the allocation of a pod's CPUs, of which so many containers have their own and so many share."""
        if not is_allocated:
            self._errors.inc(CPU, "pod")
            return
        self._allocations.inc(CPU, "pod")
        self._assignments.inc(CPU, "pod_exclusive", by=exclusive)
        self._assignments.inc(CPU, "pod_shared", by=shared)


class CPUMetrics:
    """The metrics of the CPU and topology managers of one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics: Final = metrics
        counter, gauge = metrics.counter, metrics.gauge
        self.pinning_requests: Final = counter(
            "kubelet_cpu_manager_pinning_requests_total", "Allocations of exclusive CPUs that were asked for."
        )
        self.pinning_errors: Final = counter(
            "kubelet_cpu_manager_pinning_errors_total", "Allocations of exclusive CPUs that failed."
        )
        self.aligned: Final = counter(
            "kubelet_container_aligned_compute_resources_count",
            "Containers and pods whose resources are aligned, by boundary.",
            _ALIGNMENT,
        )
        self.unaligned: Final = counter(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Containers and pods whose resources could not be aligned, by boundary.",
            _ALIGNMENT,
        )
        self.topology_requests: Final = counter(
            "kubelet_topology_manager_admission_requests_total",
            "Pods for which the topology manager was asked.",
        )
        self.topology_errors: Final = counter(
            "kubelet_topology_manager_admission_errors_total", "Pods that the topology manager refused."
        )
        self.scale_down_delay: Final = metrics.histogram(
            "kubelet_cpu_manager_scale_down_delay_seconds",
            "Seconds between the notice to a container that it will lose CPUs and the loss.",
            bounds=_DELAYS,
        )
        self._pod_level: PodLevelCPUMetrics | None = None
        self._followed: dict[int, tuple[StaticPolicy, CPUState]] = {}
        gauge(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "CPUs that can become exclusive, in millicores.",
            (),
            lambda: {(): 1000.0 * sum(len(policy.available(state)) for policy, state in self._nodes())},
        )
        gauge(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "Exclusive CPUs.",
            (),
            lambda: {(): float(sum(len(state.all_assigned()) for _, state in self._nodes()))},
        )
        gauge(
            "kubelet_cpu_manager_allocation_per_numa",
            "Exclusive CPUs, by NUMA node.",
            ("numa_node",),
            self._per_numa_node,
        )

    def with_pod_level(self) -> PodLevelCPUMetrics:
        """Return what is counted with feature gate PodLevelResourceManagers only."""
        if self._pod_level is None:
            self._pod_level = PodLevelCPUMetrics(self._metrics)
        return self._pod_level

    def follow(self, policy: StaticPolicy, state: CPUState) -> None:
        """Show the CPUs of a node from now on, and counters that are still zero."""
        for plain in (
            self.pinning_requests,
            self.pinning_errors,
            self.topology_requests,
            self.topology_errors,
        ):
            plain.inc(by=0)
        for scope, boundary in _BOUNDARIES:
            self.aligned.inc(scope, boundary, by=0)
            self.unaligned.inc(scope, boundary, by=0)
        self._followed[id(state)] = (policy, state)

    def leave(self, state: CPUState) -> None:
        """Show the CPUs of a node no more."""
        self._followed.pop(id(state), None)

    def count_pinning(self, policy: StaticPolicy, cpus: CPUSet | None, *, is_new: bool) -> None:
        """Count one allocation of exclusive CPUs to a container; `cpus` None: it failed."""
        self.pinning_requests.inc()
        if cpus is None:
            self.pinning_errors.inc()
        if policy.options.full_pcpus_only:
            (self.unaligned if cpus is None else self.aligned).inc(CONTAINER, PHYSICAL_CPU)
        if policy.with_pod_level and (is_new or cpus is None):
            self.with_pod_level().count_container(is_allocated=cpus is not None)
        if cpus and is_new and policy.topology.shares_uncore_cache(cpus):
            self.aligned.inc(CONTAINER, UNCORE_CACHE)

    def _nodes(self) -> Iterable[tuple[StaticPolicy, CPUState]]:
        return self._followed.values()

    def _per_numa_node(self) -> Mapping[tuple[str, ...], float]:
        counted: Counter[int] = Counter()
        for policy, state in self._nodes():
            assigned = state.all_assigned().bits
            for node in policy.topology.numa_nodes.values():
                counted[node.id] += (node.bits & assigned).bit_count()
        return {(str(node),): count for node, count in sorted(counted.items())}
