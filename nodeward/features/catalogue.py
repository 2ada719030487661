"""Every feature gate, with its stage and default in each version of Kubernetes that can be emulated.

One line is one gate: `Name HISTORY < DEPENDENCIES`. A history is a list of steps, oldest first; a step is a stage
(`A` alpha, `B` beta, `GA`, `D` deprecated), the version it holds from, the default (`+` on, `-` off), `L` if it can
no longer be changed, and `@V` if it holds only when the cluster stays compatible with nothing older than V.
Steps before the oldest emulated version are folded into one. A gate can be set from its first step on.

What must stay true: every dependency is a gate here, is at least as stable as the gate that needs it, and is on
wherever that gate is on by default (a test checks all versions). The newest upstream release known is 1.37; in 1.38
everything is as it was in 1.37.

Read by `gates`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

from nodeward.base.invariant import InvariantBroken

OLDEST: Final = 34
NEWEST: Final = 38

ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"

#: Other names a gate may be set by: Kubernetes 1.37 ships KEP-5945 under another name than the proposal.
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"DRAOptionalNodeOperations": "DRAOptionalNodePreparation"}
)


class Stage(Enum):
    """How far a feature is; the values are the label of the metric `kubernetes_feature_enabled`."""

    PRE_ALPHA = "PRE-ALPHA"
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class FeatureSpec(msgspec.Struct, frozen=True):
    """One step in the life of a gate. Versions are the minor of 1.x."""

    since: int
    stage: Stage
    default: bool
    is_locked: bool = False
    min_compatibility: int = 0


#: What a gate is before its first step: off, and not to be set.
UNBORN: Final = FeatureSpec(0, Stage.PRE_ALPHA, False)


class Gate(msgspec.Struct, frozen=True):
    """A gate: its steps, oldest first, and the gates that must be on when it is."""

    name: str
    specs: tuple[FeatureSpec, ...]
    needs: tuple[str, ...] = ()

    def at(self, minor: int, min_compatibility: int) -> FeatureSpec:
        """Return the step that holds in a version."""
        for spec in reversed(self.specs):
            if spec.since <= minor and spec.min_compatibility <= min_compatibility:
                return spec
        return UNBORN


_STAGES: Final = {"A": Stage.ALPHA, "B": Stage.BETA, "GA": Stage.GA, "D": Stage.DEPRECATED}
_STEP: Final = re.compile(r"(A|B|GA|D)1\.(\d+)([+-])(L?)(?:@1\.(\d+))?")


def _read(line: str) -> Gate:
    rest, _, needs = line.partition(" < ")
    name, _, history = rest.partition(" ")
    specs = []
    for step in history.split():
        match = _STEP.fullmatch(step)
        if match is None:
            raise InvariantBroken(f"the catalogue of gates has a step that cannot be read: {line}")
        stage, since, default, lock, floor = match.groups()
        specs.append(FeatureSpec(int(since), _STAGES[stage], default == "+", bool(lock), int(floor or 0)))
    return Gate(name, tuple(specs), tuple(sorted(needs.split())))


#: Gates of the proposals this project implements that Kubernetes 1.37 does not have (or names differently), and the
#: two that set all gates of a stage.
_OWN: Final = """\
AllAlpha A1.0-
AllBeta B1.0-
CPUManagerScaleDelayOptOut A1.37- < InPlacePodVerticalScalingExclusiveCPUs
DRAOptionalNodePreparation A1.37- < DynamicResourceAllocation NodeDeclaredFeatures
DownwardAPIAssignedResources A1.37-
NodeReadinessGates A1.37-
"""

#: The gates of Kubernetes 1.37.
_UPSTREAM: Final = """\
APIResponseCompression B1.16+
APIServerIdentity B1.26+
APIServerWebhookAuthenticationToken A1.37-
APIServingWithRoutine A1.30-
AggregatedDiscoveryRemoveBetaType D1.33+ D1.35+L
AllowDNSOnlyNodeCSR D1.31-
AllowInsecureKubeletCertificateSigningRequests D1.31-
AllowOverwriteTerminationGracePeriodSeconds D1.32- D1.35-L
AllowParsingUserUIDFromCertAuth B1.33+
AllowServiceExternalIPs GA1.0+
AllowUnsafeMalformedObjectDeletion A1.32- B1.37+
AtomicFIFO B1.36+
AtomicWriteVolumeUserFields A1.37-
AuthorizePodWebsocketUpgradeCreatePermission B1.35+
CBORServingAndStorage A1.32-
CPUManagerPolicyAlphaOptions A1.23-
CPUManagerPolicyBetaOptions B1.23+
CPUManagerPolicyOptions GA1.33+L
CRDObservedGenerationTracking B1.35- B1.36+
CRDValidationRatcheting GA1.33+L
CRIListStreaming A1.36-
CSIServiceAccountTokenSecrets B1.35+ GA1.36+L
CSIVolumeHealth A1.21-
ChangeContainerStatusOnKubeletRestart GA1.0+ D1.35-
ClearingNominatedNodeNameAfterBinding A1.34- B1.35+
ClientsAllowCARotation B1.36+
ClientsAllowCBOR A1.32-
ClientsAllowTLSCacheGC B1.36+
ClientsPreferCBOR A1.32-
CloudControllerManagerWatchBasedRoutesReconciliation A1.35-
CloudControllerManagerWebhook A1.27-
ClusterTrustBundle B1.33- GA1.37+
ClusterTrustBundleProjection B1.33- GA1.37+ < ClusterTrustBundle
ComponentFlagz A1.32- B1.36+
ComponentStatusz A1.32- B1.36+
CompositePodGroup A1.37- < GenericWorkload TopologyAwareWorkloadScheduling
ConcurrentWatchObjectDecode B1.31- B1.37+
ConsistentListFromCacheSkipTimeoutFallback A1.37-
ConstrainedImpersonation A1.35- B1.36+
ContainerCheckpoint B1.30+
ContainerRestartRules A1.34- B1.35+
ContainerStopSignals A1.33-
CoordinatedLeaderElection B1.33-
CrossNamespaceVolumeDataSource A1.26-
CustomCPUCFSQuotaPeriod A1.12- GA1.36+
CustomResourceFieldSelectors GA1.32+L
DRAAdminAccess B1.34+ GA1.36+L < DynamicResourceAllocation
DRAConsumableCapacity A1.34- B1.36+ < DynamicResourceAllocation
DRADerivedAttributes A1.37- < DynamicResourceAllocation
DRADeviceBindingConditions A1.34- B1.36+ < DynamicResourceAllocation DRAResourceClaimDeviceStatus
DRADeviceCompatibilityGroups A1.37- < DynamicResourceAllocation DRAPartitionableDevices
DRADeviceTaintRules A1.35- B1.36- GA1.37+ < DRADeviceTaints
DRADeviceTaints A1.33- B1.36+ GA1.37+ < DynamicResourceAllocation
DRAExtendedResource A1.34- B1.36+ GA1.37+L < DynamicResourceAllocation
DRAFractionalCapacityRange B1.37- B1.37+@1.37 < DRAConsumableCapacity
DRAListTypeAttributes A1.36- < DynamicResourceAllocation
DRANodeAllocatableResources A1.36- < DynamicResourceAllocation
DRAPartitionableDevices A1.33- B1.36+ < DynamicResourceAllocation
DRAPartitionableDevicesType A1.37- < DynamicResourceAllocation DRAPartitionableDevices DRAResourcePoolStatus
DRAPrioritizedList B1.34+ GA1.36+ GA1.37+L < DynamicResourceAllocation
DRAResourceClaimDeviceStatus B1.33+ GA1.37+L
DRAResourceClaimGranularStatusAuthorization B1.36+ < DynamicResourceAllocation DRAResourceClaimDeviceStatus
DRAResourcePoolStatus A1.36- < DynamicResourceAllocation
DRASchedulerFilterTimeout B1.34+ < DynamicResourceAllocation
DRAWorkloadResourceClaims A1.36- B1.37- < DynamicResourceAllocation GenericWorkload
DeclarativeValidation B1.33+ GA1.36+L
DeclarativeValidationBeta B1.36+ < DeclarativeValidation
DeclarativeValidationTakeover B1.33- D1.36- D1.37-L < DeclarativeValidation
DefaultPodSysctls A1.37-
DeploymentReplicaSetTerminatingReplicas A1.33- B1.35+
DetectCacheInconsistency B1.34+
DisableAllocatorDualWrite GA1.34+ GA1.35+L < MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs B1.33+ D1.36+ D1.37+L
DisableNodeKubeProxyVersion D1.33+ D1.36+L
DynamicResourceAllocation GA1.34+ GA1.35+L
EmptyDirVolumeMode A1.37-
EnvFiles A1.34- B1.35+
EtcdRangeStream B1.37+
EventedPLEG A1.26- < PLEGOnDemandRelist
EvictionRequestAPI A1.37-
ExcludeAdmissionWebhookVirtualResources B1.37+
ExecProbeTimeout GA1.20+ GA1.35+L
ExtendWebSocketsToKubelet B1.36+ < NodeDeclaredFeatures
ExternalServiceAccountTokenSigner B1.34+ GA1.36+L
GRPCContainerProbeTLS A1.37-
GenericWorkload A1.35- B1.37-
GitRepoVolumeDriver D1.33- D1.36-L
GracefulNodeShutdown B1.21+
GracefulNodeShutdownBasedOnPodPriority B1.24+ < GracefulNodeShutdown
H2CContainerProbe A1.37- < NodeDeclaredFeatures
HPAConfigurableTolerance A1.33- B1.35+ GA1.37+L
HPAGeneration B1.37+
HPAOptimizedSelectorStore B1.37+
HPAScaleToZero A1.16- B1.37+
HostnameOverride A1.34- B1.35+ GA1.37+L
HugepageAwareEviction B1.37+
ImageMaximumGCAge B1.30+ GA1.35+L
ImageVolume B1.33- B1.35+ GA1.36+L
ImageVolumeWithDigest A1.35- < ImageVolume
InOrderInformers B1.33+ GA1.36+L
InOrderInformersBatchProcess B1.35+
InPlacePodLevelResourcesVerticalScaling A1.35- B1.36+ < InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures
InPlacePodVerticalScaling B1.33+ GA1.35+L
InPlacePodVerticalScalingExclusiveCPUs A1.32- < InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory A1.34- < InPlacePodVerticalScaling
InPlacePodVerticalScalingInitContainers B1.36+ GA1.37+L < InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingMemoryBackedVolumes A1.37- < InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingSchedulerPreemption A1.37- < InPlacePodVerticalScaling
InformerResourceVersion A1.30- GA1.35+
InterPodAffinityHostnameFastPath A1.37-
JobManagedBy B1.32+ GA1.35+L
KMSv1 D1.29-
KubeProxyIPVS GA1.0+ D1.37+
KubeProxyNFTablesLocalhostNodePorts A1.37-
KubeletAllocatedPodsEndpoint A1.37- < InPlacePodVerticalScaling
KubeletCgroupDriverFromCRI GA1.34+L
KubeletCrashLoopBackOffMax A1.32- B1.35+
KubeletEnsureSecretPulledImages A1.33- B1.35+
KubeletFineGrainedAuthz B1.33+ GA1.36+L
KubeletInUserNamespace A1.22- B1.37+
KubeletPSI B1.34+ GA1.36+L
KubeletPodResourcesDynamicResources B1.34+ GA1.36+L
KubeletPodResourcesGet B1.34+ GA1.36+L
KubeletPodResourcesListUseActivePods D1.34+
KubeletRegistrationGetOnExistsOnly D1.32-
KubeletSeparateDiskGC B1.31+
KubeletServiceAccountTokenForCredentialProviders B1.34+
KubeletTracing GA1.34+L
ListFromCacheSnapshot B1.34+
LocalStorageCapacityIsolationFSQuotaMonitoring B1.31-
ManifestBasedAdmissionControlConfig A1.36- B1.37+
MatchLabelKeysInPodAffinity GA1.33+L
MatchLabelKeysInPodTopologySpread B1.27+
MatchLabelKeysInPodTopologySpreadSelectorMerge B1.34+ < MatchLabelKeysInPodTopologySpread
MaxUnavailableStatefulSet A1.24- B1.35- B1.37+
MemoryQoS A1.22- B1.37+
MultiCIDRServiceAllocator GA1.34+L
MutableCSINodeAllocatableCount B1.34- B1.35+ GA1.36+L
MutablePVNodeAffinity A1.35-
MutablePodResourcesForSuspendedJobs A1.35- B1.36+
MutableSchedulingDirectivesForSuspendedJobs A1.35- B1.36+
MutatingAdmissionPolicy B1.34- GA1.36+
NFTablesNetlink B1.37+
NFTablesProxyMode GA1.33+L
NodeControllerLeaseCircuitBreaker B1.37+ < AtomicFIFO
NodeDeclaredFeatures A1.35- B1.36+ GA1.37+L
NodeInclusionPolicyInPodTopologySpread GA1.33+L
NodeLifecycleConditions A1.37-
NodeLogQuery B1.30- GA1.36+L
NodeSwap GA1.34+L
NominatedNodeNameForExpectation A1.34- B1.35+
OpenAPIEnums B1.24+
OpportunisticBatching B1.35+
PLEGOnDemandRelist B1.36+ GA1.37+L
PersistentVolumeClaimUnusedSinceTime A1.36- B1.37+
PodAndContainerStatsFromCRI A1.23- B1.37-
PodCertificateRequest A1.34- B1.35- GA1.37+
PodDeletionCost B1.22+
PodGroupPreemptionPolicy A1.37- < GenericWorkload
PodLevelResourceManagers A1.36- B1.37- < PodLevelResources
PodLevelResources B1.34+
PodLevelResourcesFixDefaulting B1.37+ < PodLevelResources
PodLevelResourcesFixKubeletQOSClass B1.37+ < PodLevelResources
PodLogsQuerySplitStreams A1.32-
PodObservedGenerationTracking B1.34+ GA1.35+L
PodReadyToStartContainersCondition B1.29+ GA1.37+L
PodSchedulingReadiness GA1.30+L
PodTopologyLabelsAdmission A1.33- B1.35+
PodsAPI A1.36- B1.37+
PortForwardWebsockets B1.31+
PreferSameTrafficDistribution B1.34+ GA1.35+L
ProcMountType B1.33+ GA1.36+L < UserNamespacesSupport
QOSReserved A1.11-
RecoverVolumeExpansionFailure GA1.34+L
RecursiveReadOnlyMounts GA1.33+L
ReduceDefaultCrashLoopBackOffDecay A1.33-
RelaxedEnvironmentVariableValidation GA1.34+L
RelaxedServiceNameValidation A1.34- B1.36+ GA1.37+L
ReloadKubeletClientCAFile B1.36+
ReloadKubeletServerCertificateFile B1.31+
RemoteRequestHeaderUID B1.33+
ResourceHealthStatus A1.31- B1.36+ < DynamicResourceAllocation
ResourceHealthStatusMessage B1.36+ < ResourceHealthStatus
RestartAllContainersOnContainerExits A1.35- B1.36+ < ContainerRestartRules NodeDeclaredFeatures
RotateKubeletServerCertificate B1.12+
RuntimeClassInImageCriApi A1.29-
SELinuxChangePolicy B1.33+ GA1.36+L
SELinuxMount B1.33- GA1.37+
SELinuxMountReadWriteOncePod B1.28+ GA1.36+L
SchedulerAsyncAPICalls B1.34-
SchedulerAsyncPreemption B1.33+
SchedulerPopFromBackoffQ B1.33+
SchedulerPreQueueingHints A1.37-
SeparateCacheWatchRPC D1.33- D1.36-L
SeparateTaintEvictionController GA1.34+L
ServiceAccountNodeAudienceRestriction B1.33+
ServiceAccountTokenJTI GA1.32+L
ServiceAccountTokenNodeBinding GA1.33+L < ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation GA1.32+L
ServiceAccountTokenPodNodeInfo GA1.32+L
ServiceCIDRStatusFieldWiping GA1.0- D1.36+
ShardedListAndWatch A1.36-
SizeBasedListCostEstimate B1.34+
StaleControllerConsistencyDaemonSet B1.36+ < AtomicFIFO
StaleControllerConsistencyHPA B1.37+ < AtomicFIFO
StaleControllerConsistencyJob B1.36+ < AtomicFIFO
StaleControllerConsistencyReplicaSet B1.36+ < AtomicFIFO
StaleControllerConsistencyStatefulSet B1.36+ < AtomicFIFO
StatefulSetRecreateStrategy A1.37-
StatefulSetSemanticRevisionComparison B1.0+
StorageCapacityScoring A1.33- B1.37+
StorageNamespaceIndex D1.33+
StorageVersionAPI A1.20- < APIServerIdentity
StorageVersionHash B1.15+
StorageVersionMigrator A1.30- B1.35- GA1.37+
StrictIPCIDRValidation A1.33- B1.36+
StructuredAuthenticationConfigurationEgressSelector B1.34+
StructuredAuthenticationConfigurationJWKSMetrics B1.35+
SupplementalGroupsPolicy B1.33+ GA1.35+L
SystemdWatchdog B1.32+ GA1.35+L
TaintTolerationComparisonOperators A1.35-
TokenRequestServiceAccountUIDValidation B1.34+
TopologyAwareWorkloadScheduling A1.36- < GenericWorkload
TopologyManagerPolicyAlphaOptions A1.26-
TopologyManagerPolicyBetaOptions B1.28+
TopologyManagerPolicyOptions GA1.32+L
TranslateStreamCloseWebsocketRequests B1.30+
UnauthenticatedHTTP2DOSMitigation B1.29+
UnknownVersionInteroperabilityProxy A1.28- B1.36+ < APIServerIdentity
UnlockWhileProcessingFIFO B1.36+
UserNamespacesHostNetworkSupport A1.35- < UserNamespacesSupport NodeDeclaredFeatures
UserNamespacesSupport B1.33+ GA1.36+L
VolumeAttributesClass GA1.34+ GA1.36+L
VolumeBindMountOptions A1.37-
VolumeLimitScaling A1.35- B1.37+
WatchCacheInitializationPostStartHook B1.31- B1.36+ GA1.37+L
WatchList B1.34+
WatchListClient B1.30- B1.35+
WatchListCompression B1.37+
WebhookRoundTripLoadBalancing B1.37+
WinDSR GA1.34+L
WinOverlay GA1.34+L
WindowsCPUAndMemoryAffinity A1.32-
WindowsGracefulNodeShutdown B1.34+ < GracefulNodeShutdown
WindowsHostNetwork D1.33-
WorkloadWithJob A1.36- < GenericWorkload
"""

CATALOGUE: Final[Mapping[str, Gate]] = MappingProxyType(
    {
        gate.name: gate
        for gate in sorted(map(_read, (_OWN + _UPSTREAM).splitlines()), key=lambda gate: gate.name)
    }
)
