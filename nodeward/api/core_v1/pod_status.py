"""What the node says of a pod and its containers."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.fields import (
    REQUIRED,
    SET,
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
from nodeward.base.quantity import Quantity


class ContainerExtendedResourceRequest(KubeStruct):
    container_name: Annotated[str, REQUIRED] = always("")
    resource_name: Annotated[str, REQUIRED] = always("")
    request_name: Annotated[str, REQUIRED] = always("")


class ContainerStateRunning(KubeStruct):
    started_at: Time | None = always_null()


class ContainerStateTerminated(KubeStruct):
    exit_code: Annotated[Int32, REQUIRED] = always(0)
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = always_null()
    finished_at: Time | None = always_null()
    container_id: str = field(default="", name="containerID")


class ContainerStateWaiting(KubeStruct):
    reason: str = ""
    message: str = ""


class ContainerState(KubeStruct):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class LinuxContainerUser(KubeStruct):
    uid: Annotated[Int64, REQUIRED] = always(0)
    gid: Annotated[Int64, REQUIRED] = always(0)
    supplemental_groups: list[Int64] = []


class ContainerUser(KubeStruct):
    linux: LinuxContainerUser | None = None


class ResourceHealth(KubeStruct):
    resource_id: Annotated[str, REQUIRED] = always("", name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    resources: Annotated[list[ResourceHealth], ListMap("resourceID")] = []


class ImageVolumeStatus(KubeStruct):
    image_ref: Annotated[str, REQUIRED] = ""


class VolumeStatus(KubeStruct):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    mount_path: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    state: ContainerState = nested(ContainerState)
    last_state: ContainerState = nested(ContainerState)
    ready: Annotated[bool, REQUIRED] = always(False)
    restart_count: Annotated[Int32, REQUIRED] = always(0)
    image: Annotated[str, REQUIRED] = always("")
    image_id: Annotated[str, REQUIRED] = always("", name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: dict[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    volume_mounts: Annotated[list[VolumeMountStatus], Keyed("mountPath")] = []
    user: ContainerUser | None = None
    allocated_resources_status: Annotated[list[ResourceStatus], Keyed("name")] = []
    stop_signal: str | None = None


class HostIP(KubeStruct):
    ip: Annotated[str, REQUIRED] = always("")


class NodeAllocatableMappedResources(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    quantity: Annotated[Quantity | None, REQUIRED] = always_null()


class NodeAllocatableOverheadResources(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(KubeStruct):
    resource_claim_name: Annotated[str, REQUIRED] = always("")
    containers: Annotated[list[str], SET] = []
    mapping: Annotated[list[NodeAllocatableMappedResources], Keyed("name")] = []
    overhead: Annotated[list[NodeAllocatableOverheadResources], Keyed("name")] = []


class PodCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    observed_generation: Int64 = 0
    status: Annotated[str, REQUIRED] = always("")
    last_probe_time: Time | None = always_null()
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class PodExtendedResourceClaimStatus(WithRequiredLists):
    request_mappings: Annotated[RequiredList[ContainerExtendedResourceRequest], REQUIRED] = required_list()
    resource_claim_name: Annotated[str, REQUIRED] = always("")


class PodIP(KubeStruct):
    ip: Annotated[str, REQUIRED] = always("")


class PodResourceClaimStatus(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    resource_claim_name: str | None = None


class VolumeHealthCondition(KubeStruct):
    status: Annotated[str, OneOf("DataLoss", "Degraded", "Inaccessible"), REQUIRED] = always("")
    reason: Annotated[str, REQUIRED] = always("")
    message: str = ""


class PodVolumeHealth(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    health_conditions: Annotated[
        list[VolumeHealthCondition],
        ListMap("status", "reason"),
        Merge("status"),
    ] = []
    last_transition_time: Time | None = always_null()


class PodStatus(KubeStruct):
    observed_generation: Int64 = 0
    phase: Annotated[str, OneOf("Failed", "Pending", "Running", "Succeeded", "Unknown")] = ""
    conditions: Annotated[list[PodCondition], Keyed("type")] = []
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    host_ips: Annotated[list[HostIP], Merge("ip")] = field(default_factory=list, name="hostIPs")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: Annotated[list[PodIP], Keyed("ip")] = field(default_factory=list, name="podIPs")
    start_time: Time | None = None
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    qos_class: Annotated[str, OneOf("BestEffort", "Burstable", "Guaranteed")] = ""
    ephemeral_container_statuses: list[ContainerStatus] = []
    resize: str = ""
    resource_claim_statuses: Annotated[
        list[PodResourceClaimStatus],
        ListMap("name"),
        Merge("name", retain_keys=True),
    ] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: dict[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: Annotated[
        list[NodeAllocatableResourceClaimStatus],
        Keyed("resourceClaimName"),
    ] = []
    volume_health: Annotated[list[PodVolumeHealth], ListMap("name")] = []


class VolumeHealthStatus(KubeStruct):
    health_conditions: Annotated[
        list[VolumeHealthCondition],
        ListMap("status", "reason"),
        Merge("status"),
    ] = []
    last_transition_time: Time | None = always_null()
