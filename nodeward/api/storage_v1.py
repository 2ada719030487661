"""Storage classes, CSI nodes and drivers, attachments: storage.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import TopologySelectorTerm
from nodeward.api.core_v1.storage import PersistentVolumeSpec
from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    Int64,
    Keyed,
    KubeStruct,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_null,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject, LabelSelector
from nodeward.base.quantity import Quantity


class TokenRequest(KubeStruct):
    audience: Annotated[str, REQUIRED] = always("")
    expiration_seconds: Int64 | None = None


class CSIDriverSpec(KubeStruct):
    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: Annotated[list[str], SET] = []
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    token_requests: list[TokenRequest] = []
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    service_account_token_in_secrets: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    spec: Annotated[CSIDriverSpec, REQUIRED] = nested(CSIDriverSpec)


class VolumeNodeResources(KubeStruct):
    count: Int32 | None = None


class CSINodeDriver(WithRequiredLists):
    name: Annotated[str, REQUIRED] = always("")
    node_id: Annotated[str, REQUIRED] = always("", name="nodeID")
    topology_keys: RequiredList[str] = required_list()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(WithRequiredLists):
    drivers: Annotated[RequiredList[CSINodeDriver], Keyed("name"), REQUIRED] = required_list()


class StorageHealthCondition(KubeStruct):
    status: Annotated[str, OneOf("StorageDegraded", "StorageUnreachable"), REQUIRED] = always("")
    reason: Annotated[str, REQUIRED] = always("")
    message: str = ""
    access_mode: Annotated[
        str | None,
        OneOf("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"),
    ] = None
    volume_mode: Annotated[str | None, OneOf("Block", "Filesystem")] = None
    last_transition_time: Time | None = always_null()


class StorageHealth(KubeStruct):
    name: Annotated[str, REQUIRED] = always("")
    health_conditions: list[StorageHealthCondition] = []


class CSINodeStatus(KubeStruct):
    storage_health: Annotated[list[StorageHealth], Keyed("name")] = []


class CSINode(KubeObject):
    spec: Annotated[CSINodeSpec, REQUIRED] = nested(CSINodeSpec)
    status: CSINodeStatus = nested(CSINodeStatus)


class CSIStorageCapacity(KubeObject):
    node_topology: LabelSelector | None = None
    storage_class_name: Annotated[str, REQUIRED] = always("")
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class StorageClass(KubeObject):
    provisioner: Annotated[str, REQUIRED] = always("")
    parameters: dict[str, str] = {}
    reclaim_policy: Annotated[str | None, OneOf("Delete", "Recycle", "Retain")] = None
    mount_options: list[str] = []
    allow_volume_expansion: bool | None = None
    volume_binding_mode: Annotated[str | None, OneOf("Immediate", "WaitForFirstConsumer")] = None
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeAttachmentSource(KubeStruct):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(KubeStruct):
    attacher: Annotated[str, REQUIRED] = always("")
    source: Annotated[VolumeAttachmentSource, REQUIRED] = nested(VolumeAttachmentSource)
    node_name: Annotated[str, REQUIRED] = always("")


class VolumeError(KubeStruct):
    time: Time | None = always_null()
    message: str = ""
    error_code: Int32 | None = None


class VolumeAttachmentStatus(KubeStruct):
    attached: Annotated[bool, REQUIRED] = always(False)
    attachment_metadata: dict[str, str] = {}
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    spec: Annotated[VolumeAttachmentSpec, REQUIRED] = nested(VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = nested(VolumeAttachmentStatus)


class VolumeAttributesClass(KubeObject):
    driver_name: Annotated[str, REQUIRED] = always("")
    parameters: dict[str, str] = {}
