"""What a kubelet counts, under the names of Kubernetes; readiness gates (KEP-5233) have names of ours in that style.

One object per process: thousands of simulated nodes count together, as one kubelet would.
"""

from __future__ import annotations

from typing import Final

from nodeward.machinery.metrics import Metrics, exponential

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
        self.restarted_pods: Final = counter(
            "kubelet_restarted_pods_total",
            "Pods that were made anew with the same uid while the kubelet watched them.",
            ("static",),
        )
        self.running_pods: Final = gauge("kubelet_running_pods", "Pods with a running sandbox.")
        self.running_containers: Final = gauge(
            "kubelet_running_containers", "Containers, by state.", ("container_state",)
        )
        self.desired_pods: Final = gauge(
            "kubelet_desired_pods",
            "Pods the kubelet is to run; static ones are not from the API.",
            ("static",),
        )
        self.active_pods: Final = gauge(
            "kubelet_active_pods", "Pods that count when others are admitted.", ("static",)
        )
        self.pod_start_seconds: Final = metrics.histogram(
            "kubelet_pod_start_duration_seconds",
            "From the first sight of a pod until it runs.",
            (
                0.5,
                1,
                2,
                3,
                4,
                5,
                6,
                8,
                10,
                20,
                30,
                45,
                60,
                120,
                180,
                240,
                300,
                360,
                480,
                600,
                900,
                1200,
                1800,
            ),
        )
        self.pod_worker_seconds: Final = metrics.histogram(
            "kubelet_pod_worker_duration_seconds",
            "One look at one pod, by what was done.",
            exponential(0.005, 2.5, 9),
            ("operation_type",),
        )
        self.evictions: Final = counter(
            "kubelet_evictions", "Pods evicted, by what there was too little of.", ("eviction_signal",)
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
