"""What a kubelet counts, under the names of Kubernetes; readiness gates (KEP-5233) have names of ours in that style.

One object per process: thousands of simulated nodes count together, as one kubelet would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from nodeward.kubelet.cpu.cpu_metrics import CPUMetrics
from nodeward.kubelet.dra.dra_metrics import DRAMetrics
from nodeward.kubelet.pods.container_life import ContainerRole, State
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.resize_metrics import ResizeMetrics
from nodeward.kubelet.runtime.interface import ContainerFailed, ContainerStarted, RuntimeEvent, SandboxFailed
from nodeward.machinery.metrics import Metrics

#: Reasons that are counted by their name; all others are counted together, because some are made of names users choose.
COUNTED_REASONS: Final = frozenset(
    {
        "AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "InvalidNodeInfo",
        "InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported", "UnexpectedAdmissionError",
        "UnknownReason", "UnexpectedPredicateFailureType", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage",
        "OutOfpods", "PodLevelResourcesNotSupported", "PodFeatureUnsupported", "Evicted", "SysctlForbidden",
        "TopologyAffinityError", "NodeShutdown", "VolumeAttachmentLimitExceeded",
    }
)  # fmt: skip


_CONTAINER_TYPES: Final = {
    ContainerRole.INIT: "init_container",
    ContainerRole.SIDECAR: "init_container",
    ContainerRole.MAIN: "container",
    ContainerRole.EPHEMERAL: "ephemeral_container",
}


class KubeletMetrics:
    """The metrics of the node agent."""

    def __init__(self, metrics: Metrics) -> None:
        self.all: Final = metrics
        counter, gauge = metrics.counter, metrics.gauge
        self.node_name: Final = gauge(
            "kubelet_node_name", "The node's name. The count is always 1.", ("node",)
        )
        self.admission_rejections: Final = counter(
            "kubelet_admission_rejections_total", "Pods this kubelet refused to run, by reason.", ("reason",)
        )
        self.started_pods: Final = counter("kubelet_started_pods_total", "Pods started.")
        self.started_pods_errors: Final = counter(
            "kubelet_started_pods_errors_total", "Pods whose start failed."
        )
        self.started_containers: Final = counter(
            "kubelet_started_containers_total", "Containers started.", ("container_type",)
        )
        self.started_containers_errors: Final = counter(
            "kubelet_started_containers_errors_total",
            "Containers whose start failed.",
            ("container_type", "code"),
        )
        self.cpus: Final = CPUMetrics(metrics)
        self.dra: Final = DRAMetrics(metrics)
        self.resizes: Final = ResizeMetrics(metrics)
        self._pods: list[Callable[[], Iterable[PodLifecycle]]] = []
        gauge("kubelet_running_pods", "Pods with a running sandbox.", (), self._running_pods)
        gauge("kubelet_running_containers", "Containers, by state.", ("container_state",), self._containers)
        gauge(
            "kubelet_desired_pods",
            "Pods the kubelet is to run; static ones are not from the API.",
            ("static",),
            lambda: self._by_source(lambda life: not life.is_terminating),
        )
        gauge(
            "kubelet_active_pods",
            "Pods that count when others are admitted.",
            ("static",),
            lambda: self._by_source(lambda life: not life.is_finished),
        )
        self.gate_timeouts: Final = counter(
            "kubelet_node_readiness_gate_timeouts_total",
            "Readiness gates whose time ran out before their condition held.",
            ("condition_type",),
        )
        self.gate_probes: Final = counter(
            "kubelet_node_readiness_gate_probes_total",
            "Probes of readiness gates the kubelet ran itself, by result.",
            ("condition_type", "result"),
        )
        self.gate_satisfied: Final = gauge(
            "kubelet_node_readiness_gate_satisfied",
            "1 while the condition of a readiness gate holds, 0 while it does not.",
            ("node", "condition_type"),
        )

    def rejected(self, reason: str) -> None:
        """A pod was refused when it came (not when it was resized)."""
        if reason in COUNTED_REASONS:
            self.admission_rejections.inc(reason)
        else:
            self.admission_rejections.inc("OutOfExtendedResources" if reason.startswith("OutOf") else "Other")

    def follow(self, pods: Callable[[], Iterable[PodLifecycle]]) -> None:
        """Show how many pods and containers there are whenever somebody looks; `pods` are those of this kubelet."""
        self._pods.append(pods)
        self.resizes.follow(self._lives)

    def on_runtime_event(self, life: PodLifecycle, event: RuntimeEvent) -> None:
        """Count what started and what did not."""
        match event:
            case SandboxFailed():
                self.started_pods_errors.inc()
            case ContainerStarted(container=name):
                self.started_containers.inc(_container_type(life, name))
            case ContainerFailed(container=name, reason=reason):
                self.started_containers_errors.inc(_container_type(life, name), reason)

    def _running_pods(self) -> Mapping[tuple[str, ...], float]:
        return {(): sum(life.has_sandbox for life in self._lives())}

    def _containers(self) -> Mapping[tuple[str, ...], float]:
        counted = Counter(state for life in self._lives() for state in life.container_states())
        return {("running",): counted[State.RUNNING], ("exited",): counted[State.EXITED]}

    def _by_source(self, counts: Callable[[PodLifecycle], bool]) -> Mapping[tuple[str, ...], float]:
        counted = Counter(life.is_static for life in self._lives() if counts(life))
        return {("",): counted[False], ("true",): counted[True]}

    def _lives(self) -> Iterable[PodLifecycle]:
        return (life for pods in self._pods for life in pods())


def _container_type(life: PodLifecycle, name: str) -> str:
    role = life.role_of(name)
    return "" if role is None else _CONTAINER_TYPES[role]
