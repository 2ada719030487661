"""Which values of a `KubeletConfiguration` make sense together: ranges, choices, and options that need a gate.

In goes the tree of a file whose types are right; what is wrong is written into `Problems`. Ranges and words are
upstream's, so that what a real kubelet refuses is refused here, with file and line in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodeward.base.cpuset import CPUSet, CPUSetError
from nodeward.base.duration import MILLISECOND_NS, SECOND_NS, format_duration
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.kubelet.config.cpu_options import CPU_POLICIES, TOPOLOGY_POLICIES, TOPOLOGY_SCOPES
from nodeward.kubelet.config.reading import nearest

_NEGATIVE: Final = "must not be a negative number"
#: field: lowest, highest, what must hold
_RANGES: Final[Mapping[str, tuple[int, int, str]]] = {
    **dict.fromkeys(
        [
            "eventBurst",
            "eventRecordQPS",
            "kubeAPIBurst",
            "kubeAPIQPS",
            "maxOpenFiles",
            "maxPods",
            "podsPerCore",
            "registryBurst",
            "registryPullQPS",
            "evictionMaxPodGracePeriod",
        ],
        (0, 2**63, _NEGATIVE),
    ),
    "nodeLeaseDurationSeconds": (0, 2**31, "must be greater than 0"),
    "port": (0, 65535, "must be between 1 and 65535, inclusive"),
    "healthzPort": (0, 65535, "must be between 1 and 65535, inclusive (0 is off)"),
    "readOnlyPort": (0, 65535, "must be between 0 and 65535, inclusive"),
    "imageGCHighThresholdPercent": (0, 100, "must be between 0 and 100, inclusive"),
    "imageGCLowThresholdPercent": (0, 100, "must be between 0 and 100, inclusive"),
    "iptablesDropBit": (0, 31, "must be between 0 and 31, inclusive"),
    "iptablesMasqueradeBit": (0, 31, "must be between 0 and 31, inclusive"),
    "nodeStatusMaxImages": (-1, 2**31, "must be -1 or greater"),
    "oomScoreAdj": (-1000, 1000, "must be between -1000 and 1000, inclusive"),
    "maxParallelImagePulls": (1, 2**31, "must be a positive number"),
    "containerLogMaxFiles": (2, 2**31, "must be greater than 1"),
    "containerLogMaxWorkers": (1, 2**31, "must be greater than or equal to 1"),
}
#: Spans that repeat something: a negative one would never come round.
_PERIODS: Final = [
    "syncFrequency",
    "fileCheckFrequency",
    "httpCheckFrequency",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "cpuManagerReconcilePeriod",
    "volumeStatsAggPeriod",
    "runtimeRequestTimeout",
    "streamingConnectionIdleTimeout",
    "imageMinimumGCAge",
    "imageMaximumGCAge",
    "evictionPressureTransitionPeriod",
]
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpuManagerPolicy": CPU_POLICIES,
    "memoryManagerPolicy": ("None", "Static"),
    "topologyManagerPolicy": TOPOLOGY_POLICIES,
    "topologyManagerScope": TOPOLOGY_SCOPES,
    "hairpinMode": ("none", "hairpin-veth", "promiscuous-bridge"),
    "cgroupDriver": ("cgroupfs", "systemd"),
    "configMapAndSecretChangeDetectionStrategy": ("Get", "Cache", "Watch"),
    "memoryReservationPolicy": ("None", "TieredReservation"),
}
_SHUTDOWN: Final = ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")


def check(tree: Mapping[str, Any], gates: Gates | None, problems: Problems) -> None:
    """Everything but gates, reservations, manager options and readiness gates, which are read where they belong."""
    for name, (low, high, must) in _RANGES.items():
        if name in tree and not low <= tree[name] <= high:
            problems.wrong(name, tree[name], must)
    for name in _PERIODS:
        if tree.get(name, 0) < 0:
            problems.wrong(name, format_duration(tree[name]), "must not be negative")
    for name, among in _CHOICES.items():
        value = tree.get(name, "")
        if value and value not in among:
            listed = ", ".join(f'"{each}"' for each in among)
            problems.wrong(name, value, f"must be one of: {listed}{nearest(value, among)}")
    if tree.get("runOnce"):
        problems.wrong("runOnce", True, "Runonce mode has been deprecated and should not be set")
    _check_pairs(tree, problems)
    _check_shutdown(tree, problems)
    _check_cpus(tree, problems)
    if gates is not None:
        _check_gated(tree, gates, problems)


def _check_pairs(tree: Mapping[str, Any], problems: Problems) -> None:
    low, high = tree.get("imageGCLowThresholdPercent", 80), tree.get("imageGCHighThresholdPercent", 85)
    if low >= high:
        problems.wrong(
            "imageGCLowThresholdPercent", low, f"must be less than imageGCHighThresholdPercent {high}"
        )
    if tree.get("serializeImagePulls") and tree.get("maxParallelImagePulls", 1) > 1:
        problems.wrong(
            "maxParallelImagePulls",
            tree["maxParallelImagePulls"],
            "maxParallelImagePulls cannot be larger than 1 unless serializeImagePulls is set to false",
        )
    if tree.get("systemCgroups") and not tree.get("cgroupRoot"):
        problems.say("systemCgroups", "systemCgroups was specified and cgroupRoot was not specified")
    logs = tree.get("podLogsDir", "")
    if logs and not logs.startswith("/"):
        problems.wrong("podLogsDir", logs, "must be absolute path")


def _check_shutdown(tree: Mapping[str, Any], problems: Problems) -> None:
    whole, critical = (tree.get(name, 0) for name in _SHUTDOWN)
    for name, span in zip(_SHUTDOWN, (whole, critical), strict=True):
        if span < 0 or 0 < span < SECOND_NS:
            problems.wrong(name, format_duration(span), "must be either zero or otherwise >= 1 sec")
    if critical > whole:
        what = f"must be <= shutdownGracePeriod {format_duration(whole)}"
        problems.wrong(_SHUTDOWN[1], format_duration(critical), what)
    if tree.get("shutdownGracePeriodByPodPriority") and (whole or critical):
        problems.say(
            "shutdownGracePeriodByPodPriority",
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
        )


def _check_cpus(tree: Mapping[str, Any], problems: Problems) -> None:
    reserved = tree.get("reservedSystemCPUs", "")
    if reserved:
        try:
            CPUSet.parse(reserved)
        except CPUSetError as error:
            problems.wrong("reservedSystemCPUs", reserved, f"{error}; want a list such as 0-1,8")
        if tree.get("systemReservedCgroup") or tree.get("kubeReservedCgroup"):
            problems.say(
                "reservedSystemCPUs",
                "can't use reservedSystemCPUs with systemReservedCgroup or kubeReservedCgroup",
            )


def _check_gated(tree: Mapping[str, Any], gates: Gates, problems: Problems) -> None:
    if any(tree.get(name, 0) > 0 for name in _SHUTDOWN) and not gates.enabled("GracefulNodeShutdown"):
        problems.say(
            _SHUTDOWN[0],
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate "
            "GracefulNodeShutdown",
        )
    if tree.get("shutdownGracePeriodByPodPriority") and not gates.enabled(
        "GracefulNodeShutdownBasedOnPodPriority"
    ):
        problems.say(
            "shutdownGracePeriodByPodPriority",
            "Specifying shutdownGracePeriodByPodPriority requires feature gate "
            "GracefulNodeShutdownBasedOnPodPriority",
        )
    longest = tree.get("crashLoopBackOff", {}).get("maxContainerRestartPeriod")
    at = "crashLoopBackOff.maxContainerRestartPeriod"
    if longest is not None and not gates.enabled("KubeletCrashLoopBackOffMax"):
        problems.say(
            at,
            "FeatureGate KubeletCrashLoopBackOffMax not enabled, "
            "CrashLoopBackOff.MaxContainerRestartPeriod must not be set",
        )
    elif longest is not None and not 1000 <= longest // MILLISECOND_NS <= 300_000:
        problems.wrong(at, format_duration(longest), "must be set between 1s and 300s")
    period = tree.get("cpuCFSQuotaPeriod")
    if period is not None and period != 100 * MILLISECOND_NS and not gates.enabled("CustomCPUCFSQuotaPeriod"):
        what = "requires feature gate CustomCPUCFSQuotaPeriod"
        problems.wrong("cpuCFSQuotaPeriod", format_duration(period), what)
