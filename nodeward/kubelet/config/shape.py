"""Which fields a `KubeletConfiguration` has, and of what type each is: upstream's names, plus `nodeReadinessGates`.

Every field Kubernetes 1.37 knows is here, so that a file written for a real kubelet is accepted; which of them change
anything is in `settings`. A shape says nothing about which values make sense: that is `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"


class Plain(Enum):
    """A value without parts; the words say what is wanted."""

    TEXT = "a text"
    TRUTH = "true or false"
    INT32 = "a whole number of 32 bits"
    INT64 = "a whole number of 64 bits"
    NUMBER = "a number"
    SPAN = "a span of time with its unit, such as 10s or 1m30s"
    QUANTITY = "a quantity, such as 500m or 1Gi"
    INT_OR_TEXT = "a whole number or a text"
    #: kept as it is
    MAP = "a map"
    SPAN_OR_NS = "a span of time with its unit, such as 5s, or a whole number of nanoseconds"


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    item: Shape


@dataclass(frozen=True, slots=True)
class Part:
    """A map with these names and no others."""

    fields: Mapping[str, Shape]


Shape: TypeAlias = Plain | ListOf | MapOf | Part

_TEXT, _TRUTH, _INT32, _SPAN = Plain.TEXT, Plain.TRUTH, Plain.INT32, Plain.SPAN

_TAINT: Final = Part({"key": _TEXT, "value": _TEXT, "effect": _TEXT, "timeAdded": _TEXT})

_PROBE: Final = Part(
    {
        "exec": Part({"command": ListOf(_TEXT)}),
        "httpGet": Part(
            {
                "path": _TEXT,
                "port": Plain.INT_OR_TEXT,
                "host": _TEXT,
                "scheme": _TEXT,
                "httpHeaders": ListOf(Part({"name": _TEXT, "value": _TEXT})),
            }
        ),
        "tcpSocket": Part({"port": Plain.INT_OR_TEXT, "host": _TEXT}),
        "grpc": Part({"port": _INT32, "service": _TEXT}),
        "initialDelaySeconds": _INT32,
        "periodSeconds": _INT32,
        "timeoutSeconds": _INT32,
        "successThreshold": _INT32,
        "failureThreshold": _INT32,
    }
)

#: KEP-5233: what is copied to the node's spec, and the probe the kubelet runs itself.
_READINESS_GATE: Final = Part(
    {
        "conditionType": _TEXT,
        "timeoutSeconds": _INT32,
        "failureAction": _TEXT,
        "readinessTaint": _TAINT,
        "probe": _PROBE,
    }
)

_ROUTED: Final[Mapping[str, Shape]] = {"splitStream": _TRUTH, "infoBufferSize": Plain.QUANTITY}

_PARTS: Final[Mapping[str, Shape]] = {
    "authentication": Part(
        {
            "x509": Part({"clientCAFile": _TEXT}),
            "webhook": Part({"enabled": _TRUTH, "cacheTTL": _SPAN}),
            "anonymous": Part({"enabled": _TRUTH}),
        }
    ),
    "authorization": Part(
        {"mode": _TEXT, "webhook": Part({"cacheAuthorizedTTL": _SPAN, "cacheUnauthorizedTTL": _SPAN})}
    ),
    "memorySwap": Part({"swapBehavior": _TEXT}),
    "logging": Part(
        {
            "format": _TEXT,
            "flushFrequency": Plain.SPAN_OR_NS,
            "verbosity": _INT32,
            "vmodule": ListOf(Part({"filePattern": _TEXT, "verbosity": _INT32})),
            "options": Part({"text": Part(_ROUTED), "json": Part(_ROUTED)}),
        }
    ),
    "shutdownGracePeriodByPodPriority": ListOf(
        Part({"priority": _INT32, "shutdownGracePeriodSeconds": Plain.INT64})
    ),
    "crashLoopBackOff": Part({"maxContainerRestartPeriod": _SPAN}),
    "reservedMemory": ListOf(Part({"numaNode": _INT32, "limits": MapOf(Plain.QUANTITY)})),
    "tracing": Part({"endpoint": _TEXT, "samplingRatePerMillion": _INT32}),
    "userNamespaces": Part({"idsPerPod": Plain.INT64}),
    "registerWithTaints": ListOf(_TAINT),
    "nodeReadinessGates": ListOf(_READINESS_GATE),
    "staticPodURLHeader": MapOf(ListOf(_TEXT)),
    "featureGates": MapOf(_TRUTH),
    "tlsCurvePreferences": ListOf(_INT32),
}

#: Names by type, each line a group that belongs together.
_PLAIN: Final[Mapping[Shape, str]] = {
    _TEXT: """
        apiVersion kind staticPodPath podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion
        imagePullCredentialsVerificationPolicy healthzBindAddress clusterDomain resolvConf podCIDR providerID
        kubeletCgroups systemCgroups cgroupRoot cgroupDriver systemReservedCgroup kubeReservedCgroup
        cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy topologyManagerScope reservedSystemCPUs
        hairpinMode contentType containerLogMaxSize configMapAndSecretChangeDetectionStrategy
        showHiddenMetricsForVersion volumePluginDir memoryReservationPolicy
        containerRuntimeEndpoint imageServiceEndpoint
    """,
    _TRUTH: """
        enableServer rotateCertificates serverTLSBootstrap enableDebuggingHandlers enableContentionProfiling
        cgroupsPerQOS singleProcessOOMKill runOnce cpuCFSQuota serializeImagePulls mergeDefaultEvictionSettings
        enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains failSwapOn
        kernelMemcgNotification enableSystemLogHandler enableSystemLogQuery enableProfilingHandler
        enableDebugFlagsHandler seccompDefault registerNode localStorageCapacityIsolation failCgroupV1
    """,
    _INT32: """
        port readOnlyPort healthzPort registryPullQPS registryBurst eventRecordQPS eventBurst oomScoreAdj
        nodeLeaseDurationSeconds imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods podsPerCore
        nodeStatusMaxImages kubeAPIQPS kubeAPIBurst maxParallelImagePulls evictionMaxPodGracePeriod
        iptablesMasqueradeBit iptablesDropBit containerLogMaxFiles containerLogMaxWorkers
    """,
    Plain.INT64: "podPidsLimit maxOpenFiles",
    Plain.NUMBER: "memoryThrottlingFactor",
    _SPAN: """
        syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout
        nodeStatusUpdateFrequency nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge
        volumeStatsAggPeriod cpuManagerReconcilePeriod runtimeRequestTimeout cpuCFSQuotaPeriod
        evictionPressureTransitionPeriod containerLogMonitorInterval
        shutdownGracePeriod shutdownGracePeriodCriticalPods
    """,
    ListOf(_TEXT): """
        tlsCipherSuites preloadedImagesVerificationAllowlist clusterDNS enforceNodeAllocatable
        allowedUnsafeSysctls
    """,
    MapOf(_TEXT): """
        cpuManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionHard evictionSoft
        evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved defaultPodSysctls
    """,
}

CONFIGURATION: Final = Part(
    {**{name: shape for shape, names in _PLAIN.items() for name in names.split()}, **_PARTS}
)
