"""Pods, pod templates, replication controllers, and what hangs on a pod: binding, gates, DNS."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.core_v1.affinity import Affinity, TopologySpreadConstraint
from nodeward.api.core_v1.container import (
    AppArmorProfile,
    Container,
    EphemeralContainer,
    ResourceRequirements,
    SeccompProfile,
    SELinuxOptions,
    WindowsSecurityContextOptions,
)
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.api.core_v1.references import LocalObjectReference, ObjectReference, Toleration
from nodeward.api.core_v1.volume import Volume
from nodeward.api.fields import (
    ATOMIC,
    REQUIRED,
    Int32,
    Int64,
    Keyed,
    KubeStruct,
    ListMap,
    Merge,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_null,
    field,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.base.quantity import Quantity


class EvictionResponder(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: Annotated[str, REQUIRED] = always("")
    priority: Annotated[Int32 | None, REQUIRED] = always_null()


class HostAlias(KubeStruct):
    ip: Annotated[str, REQUIRED] = always("")
    hostnames: list[str] = []


class PodDNSConfigOption(KubeStruct):
    name: str = ""
    value: str | None = None


class PodDNSConfig(KubeStruct):
    nameservers: list[str] = []
    searches: list[str] = []
    options: list[PodDNSConfigOption] = []


class PodOS(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")


class PodReadinessGate(KubeStruct):
    condition_type: Annotated[str, REQUIRED] = always("")


class PodResourceClaim(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")


class PodSchedulingGroup(KubeStruct):
    pod_group_name: str | None = None


class Sysctl(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    value: Annotated[str, REQUIRED] = always("")


class PodSecurityContext(KubeStruct):
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: list[Int64] = []
    supplemental_groups_policy: Annotated[str | None, OneOf("Merge", "Strict")] = None
    fs_group: Int64 | None = None
    sysctls: list[Sysctl] = []
    fs_group_change_policy: Annotated[str | None, OneOf("Always", "OnRootMismatch")] = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None


class PodSpec(WithRequiredLists):
    volumes: Annotated[list[Volume], ListMap("name"), Merge("name", retain_keys=True)] = []
    init_containers: Annotated[list[Container], Keyed("name")] = []
    containers: Annotated[RequiredList[Container], Keyed("name"), REQUIRED] = required_list()
    ephemeral_containers: Annotated[list[EphemeralContainer], Keyed("name")] = []
    restart_policy: Annotated[str, OneOf("Always", "Never", "OnFailure")] = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: Annotated[str, OneOf("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")] = ""
    node_selector: Annotated[dict[str, str], ATOMIC] = {}
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: Annotated[list[LocalObjectReference], Keyed("name")] = []
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: list[Toleration] = []
    host_aliases: Annotated[list[HostAlias], Keyed("ip")] = []
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: list[PodReadinessGate] = []
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: Annotated[str | None, OneOf("Never", "PreemptLowerPriority")] = None
    overhead: dict[str, Quantity] = {}
    topology_spread_constraints: Annotated[
        list[TopologySpreadConstraint],
        ListMap("topologyKey", "whenUnsatisfiable"),
        Merge("topologyKey"),
    ] = []
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: Annotated[list[PodSchedulingGate], Keyed("name")] = []
    resource_claims: Annotated[list[PodResourceClaim], ListMap("name"), Merge("name", retain_keys=True)] = []
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    eviction_responders: Annotated[list[EvictionResponder], Keyed("name")] = []


class Pod(KubeObject):
    spec: PodSpec = nested(PodSpec)
    status: PodStatus = nested(PodStatus)


class PodTemplateSpec(KubeStruct):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: PodSpec = nested(PodSpec)


class PodTemplate(KubeObject):
    template: PodTemplateSpec = nested(PodTemplateSpec)


class Binding(KubeObject):
    target: Annotated[ObjectReference, REQUIRED] = nested(ObjectReference)


class ReplicationControllerSpec(KubeStruct):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: Annotated[dict[str, str], ATOMIC] = {}
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class ReplicationControllerStatus(KubeStruct):
    replicas: Annotated[Int32, REQUIRED] = always(0)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: Annotated[list[ReplicationControllerCondition], Keyed("type")] = []


class ReplicationController(KubeObject):
    spec: ReplicationControllerSpec = nested(ReplicationControllerSpec)
    status: ReplicationControllerStatus = nested(ReplicationControllerStatus)
