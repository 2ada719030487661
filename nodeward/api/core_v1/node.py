"""Nodes: what they are, what they have, what they declare (KEP-5328) and wait for (KEP-5233)."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import Taint
from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    Int64,
    Keyed,
    KubeStruct,
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
from nodeward.api.meta import KubeObject
from nodeward.base.quantity import Quantity


class AttachedVolume(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    device_path: Annotated[str, REQUIRED] = always("")


class ConfigMapNodeConfigSource(KubeStruct):
    namespace: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: Annotated[str, REQUIRED] = always("")


class ContainerImage(WithRequiredLists):
    names: RequiredList[str] = required_list()
    size_bytes: Int64 = 0


class DaemonEndpoint(KubeStruct):
    port: Annotated[Int32, REQUIRED] = always(0, name="Port")


class NodeConfigSource(KubeStruct):
    config_map: ConfigMapNodeConfigSource | None = None


class NodePodPreemptionPolicy(KubeStruct):
    disable_resize_preemption: Annotated[list[str], SET] = []


class NodeReadinessGate(KubeStruct):
    condition_type: Annotated[str, REQUIRED] = always("")
    timeout_seconds: Annotated[Int32 | None, REQUIRED] = None
    failure_action: Annotated[str, OneOf("BypassWithWarning", "Taint")] = ""
    readiness_taint: Taint | None = None


class NodeSpec(KubeStruct):
    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: Annotated[list[str], SET, Merge("")] = field(default_factory=list, name="podCIDRs")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: list[Taint] = []
    config_source: NodeConfigSource | None = None
    external_id: str = field(default="", name="externalID")
    pod_preemption_policy: NodePodPreemptionPolicy | None = None
    readiness_gates: Annotated[list[NodeReadinessGate], Keyed("conditionType")] = []


class NodeAddress(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    address: Annotated[str, REQUIRED] = always("")


class NodeCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    last_heartbeat_time: Time | None = always_null()
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class NodeConfigStatus(KubeStruct):
    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class NodeDaemonEndpoints(KubeStruct):
    kubelet_endpoint: DaemonEndpoint = nested(DaemonEndpoint)


class NodeFeatures(KubeStruct):
    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(KubeStruct):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(KubeStruct):
    name: str = always("")
    features: NodeRuntimeHandlerFeatures | None = None


class NodeSwapStatus(KubeStruct):
    capacity: Int64 | None = None


class NodeSystemInfo(KubeStruct):
    machine_id: Annotated[str, REQUIRED] = always("", name="machineID")
    system_uuid: Annotated[str, REQUIRED] = always("", name="systemUUID")
    boot_id: Annotated[str, REQUIRED] = always("", name="bootID")
    kernel_version: Annotated[str, REQUIRED] = always("")
    os_image: Annotated[str, REQUIRED] = always("")
    container_runtime_version: Annotated[str, REQUIRED] = always("")
    kubelet_version: Annotated[str, REQUIRED] = always("")
    kube_proxy_version: Annotated[str, REQUIRED] = always("")
    operating_system: Annotated[str, REQUIRED] = always("")
    architecture: Annotated[str, REQUIRED] = always("")
    swap: NodeSwapStatus | None = None
    running_in_user_namespace: bool | None = None


class NodeStatus(KubeStruct):
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    phase: Annotated[str, OneOf("Pending", "Running", "Terminated")] = ""
    conditions: Annotated[list[NodeCondition], Keyed("type")] = []
    addresses: Annotated[list[NodeAddress], Keyed("type")] = []
    daemon_endpoints: NodeDaemonEndpoints = nested(NodeDaemonEndpoints)
    node_info: NodeSystemInfo = nested(NodeSystemInfo)
    images: list[ContainerImage] = []
    volumes_in_use: list[str] = []
    volumes_attached: list[AttachedVolume] = []
    config: NodeConfigStatus | None = None
    runtime_handlers: list[NodeRuntimeHandler] = []
    features: NodeFeatures | None = None
    declared_features: list[str] = []


class Node(KubeObject):
    spec: NodeSpec = nested(NodeSpec)
    status: NodeStatus = nested(NodeStatus)
