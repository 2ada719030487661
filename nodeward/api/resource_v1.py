"""Dynamic resource allocation: resource.k8s.io/v1 (KEP-5945 adds skipNodeOperations)."""

from __future__ import annotations

from typing import Annotated, Any

from nodeward.api.core_v1.references import NodeSelector
from nodeward.api.fields import (
    REQUIRED,
    Int64,
    Keyed,
    KubeStruct,
    ListMap,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_zero_quantity,
    field,
    nested,
    required_list,
)
from nodeward.api.meta import Condition, KubeObject, ObjectMeta
from nodeward.base.quantity import Quantity


class NetworkDeviceData(KubeStruct):
    interface_name: str = ""
    ips: list[str] = []
    hardware_address: str = ""


class AllocatedDeviceStatus(WithRequiredLists):
    driver: Annotated[str, REQUIRED] = always("")
    pool: Annotated[str, REQUIRED] = always("")
    device: Annotated[str, REQUIRED] = always("")
    share_id: str | None = field(default=None, name="shareID")
    conditions: Annotated[RequiredList[Condition], ListMap("type")] = required_list()
    data: Any = None
    network_data: NetworkDeviceData | None = None


class OpaqueDeviceConfiguration(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    parameters: Annotated[Any, REQUIRED] = None


class DeviceAllocationConfiguration(KubeStruct):
    source: Annotated[str, OneOf("FromClaim", "FromClass"), REQUIRED] = always("")
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceToleration(KubeStruct):
    key: str = ""
    operator: Annotated[str, OneOf("Equal", "Exists")] = ""
    value: str = ""
    effect: Annotated[str, OneOf("NoExecute", "NoSchedule", "None")] = ""
    toleration_seconds: Int64 | None = None


class DeviceRequestAllocationResult(KubeStruct):
    request: Annotated[str, REQUIRED] = always("")
    driver: Annotated[str, REQUIRED] = always("")
    pool: Annotated[str, REQUIRED] = always("")
    device: Annotated[str, REQUIRED] = always("")
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: bool | list[str] | None = None


class DeviceAllocationResult(KubeStruct):
    results: list[DeviceRequestAllocationResult] = []
    config: list[DeviceAllocationConfiguration] = []


class AllocationResult(KubeStruct):
    devices: DeviceAllocationResult = nested(DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class CELDeviceSelector(KubeStruct):
    expression: Annotated[str, REQUIRED] = always("")


class CapacityRequestPolicyRange(KubeStruct):
    min: Annotated[Quantity | None, REQUIRED] = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(KubeStruct):
    default: Quantity | None = None
    valid_values: list[Quantity] = []
    valid_range: CapacityRequestPolicyRange | None = None


class CapacityRequirements(KubeStruct):
    requests: dict[str, Quantity] = {}


class Counter(KubeStruct):
    value: Annotated[Quantity, REQUIRED] = always_zero_quantity()


class CounterSet(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    counters: Annotated[dict[str, Counter], REQUIRED] = {}


class DeviceAttribute(KubeStruct):
    int_: Int64 | None = field(default=None, name="int")
    bool_: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[Int64] = []
    bools: list[bool] = []
    strings: list[str] = []
    versions: list[str] = []


class DeviceCapacity(KubeStruct):
    value: Annotated[Quantity, REQUIRED] = always_zero_quantity()
    request_policy: CapacityRequestPolicy | None = None


class DeviceCounterConsumption(KubeStruct):
    counter_set: Annotated[str, REQUIRED] = always("")
    counters: Annotated[dict[str, Counter], REQUIRED] = {}
    compatibility_groups: list[str] = []


class DeviceTaint(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    value: str = ""
    effect: Annotated[str, OneOf("NoExecute", "NoSchedule", "None"), REQUIRED] = always("")
    time_added: Time | None = None


class NodeAllocatableMapping(KubeStruct):
    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(KubeStruct):
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(KubeStruct):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}


class DeviceClaimConfiguration(KubeStruct):
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceConstraint(KubeStruct):
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceDerivedAttribute(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    expression: Annotated[str, REQUIRED] = always("")


class DeviceSelector(KubeStruct):
    cel: CELDeviceSelector | None = None


class DeviceSubRequest(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    device_class_name: Annotated[str, REQUIRED] = always("")
    selectors: list[DeviceSelector] = []
    allocation_mode: Annotated[str, OneOf("All", "ExactCount")] = ""
    count: Int64 = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DeviceDerivedAttribute] = []


class ExactDeviceRequest(KubeStruct):
    device_class_name: Annotated[str, REQUIRED] = always("")
    selectors: list[DeviceSelector] = []
    allocation_mode: Annotated[str, OneOf("All", "ExactCount")] = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DeviceDerivedAttribute] = []


class DeviceRequest(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceClaim(WithRequiredLists):
    requests: RequiredList[DeviceRequest] = required_list()
    constraints: list[DeviceConstraint] = []
    config: list[DeviceClaimConfiguration] = []


class DeviceClassConfiguration(KubeStruct):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(KubeStruct):
    selectors: list[DeviceSelector] = []
    config: list[DeviceClassConfiguration] = []
    extended_resource_name: str | None = None


class DeviceClass(KubeObject):
    spec: DeviceClassSpec = nested(DeviceClassSpec)


class DeviceTaintSelector(KubeStruct):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeStruct):
    device_selector: DeviceTaintSelector | None = None
    taint: Annotated[DeviceTaint, REQUIRED] = nested(DeviceTaint)


class DeviceTaintRuleStatus(KubeStruct):
    conditions: Annotated[list[Condition], Keyed("type")] = []


class DeviceTaintRule(KubeObject):
    spec: Annotated[DeviceTaintRuleSpec, REQUIRED] = nested(DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = nested(DeviceTaintRuleStatus)


class ResourceClaimSpec(KubeStruct):
    devices: DeviceClaim = nested(DeviceClaim)


class ResourceClaimConsumerReference(KubeStruct):
    api_group: str = ""
    resource: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")
    uid: Annotated[str, REQUIRED] = always("")


class ResourceClaimStatus(KubeStruct):
    allocation: AllocationResult | None = None
    reserved_for: Annotated[list[ResourceClaimConsumerReference], Keyed("uid")] = []
    devices: Annotated[list[AllocatedDeviceStatus], ListMap("driver", "device", "pool", "shareID")] = []


class ResourceClaim(KubeObject):
    spec: ResourceClaimSpec = nested(ResourceClaimSpec)
    status: ResourceClaimStatus = nested(ResourceClaimStatus)


class ResourceClaimTemplateSpec(KubeStruct):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceClaimSpec = nested(ResourceClaimSpec)


class ResourceClaimTemplate(KubeObject):
    spec: ResourceClaimTemplateSpec = nested(ResourceClaimTemplateSpec)


class ResourcePool(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    generation: Annotated[Int64, REQUIRED] = always(0)
    resource_slice_count: Annotated[Int64, REQUIRED] = always(0)


class ResourceSliceSpec(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    pool: Annotated[ResourcePool, REQUIRED] = nested(ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] = []
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] = []
    partition_type_attribute: str | None = None
    skip_node_operations: bool | list[str] | None = None


class ResourceSlice(KubeObject):
    spec: Annotated[ResourceSliceSpec, REQUIRED] = nested(ResourceSliceSpec)
