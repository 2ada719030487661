"""Persistent volumes, claims on them, and the sources only they have."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.pod_status import VolumeHealthStatus
from nodeward.api.core_v1.references import (
    NodeSelector,
    ObjectReference,
    SecretReference,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from nodeward.api.core_v1.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from nodeward.api.fields import (
    GRANULAR,
    REQUIRED,
    Int32,
    Keyed,
    KubeStruct,
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
from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta
from nodeward.base.quantity import Quantity


class AzureFilePersistentVolumeSource(KubeStruct):
    secret_name: Annotated[str, REQUIRED] = always("")
    share_name: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    secret_namespace: str | None = always_null()


class CSIPersistentVolumeSource(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    volume_handle: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class CephFSPersistentVolumeSource(WithRequiredLists):
    monitors: Annotated[RequiredList[str], REQUIRED] = required_list()
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class CinderPersistentVolumeSource(KubeStruct):
    volume_id: Annotated[str, REQUIRED] = always("", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None


class FlexPersistentVolumeSource(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class GlusterfsPersistentVolumeSource(KubeStruct):
    endpoints: Annotated[str, REQUIRED] = always("")
    path: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    endpoints_namespace: str | None = None


class ISCSIPersistentVolumeSource(KubeStruct):
    target_portal: Annotated[str, REQUIRED] = always("")
    iqn: Annotated[str, REQUIRED] = always("")
    lun: Annotated[Int32, REQUIRED] = always(0)
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: SecretReference | None = None
    initiator_name: str | None = None


class LocalVolumeSource(KubeStruct):
    path: Annotated[str, REQUIRED] = always("")
    fs_type: str | None = None


class ModifyVolumeStatus(KubeStruct):
    target_volume_attributes_class_name: str = ""
    status: Annotated[str, OneOf("InProgress", "Infeasible", "Pending"), REQUIRED] = always("")


class RBDPersistentVolumeSource(WithRequiredLists):
    monitors: Annotated[RequiredList[str], REQUIRED] = required_list()
    image: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: SecretReference | None = None
    read_only: bool = False


class ScaleIOPersistentVolumeSource(KubeStruct):
    gateway: Annotated[str, REQUIRED] = always("")
    system: Annotated[str, REQUIRED] = always("")
    secret_ref: Annotated[SecretReference | None, REQUIRED] = always_null()
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSPersistentVolumeSource(KubeStruct):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None


class VolumeNodeAffinity(KubeStruct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct):
    capacity: dict[str, Quantity] = {}
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = field(default=None, name="scaleIO")
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: list[str] = []
    claim_ref: Annotated[ObjectReference | None, GRANULAR] = None
    persistent_volume_reclaim_policy: Annotated[str, OneOf("Delete", "Recycle", "Retain")] = ""
    storage_class_name: str = ""
    mount_options: list[str] = []
    volume_mode: Annotated[str | None, OneOf("Block", "Filesystem")] = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(KubeStruct):
    phase: Annotated[str, OneOf("Available", "Bound", "Failed", "Pending", "Released")] = ""
    message: str = ""
    reason: str = ""
    last_phase_transition_time: Time | None = None


class PersistentVolume(KubeObject):
    spec: PersistentVolumeSpec = nested(PersistentVolumeSpec)
    status: PersistentVolumeStatus = nested(PersistentVolumeStatus)


class VolumeResourceRequirements(KubeStruct):
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(KubeStruct):
    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = nested(VolumeResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: Annotated[str | None, OneOf("Block", "Filesystem")] = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    last_probe_time: Time | None = always_null()
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class PersistentVolumeClaimStatus(KubeStruct):
    phase: Annotated[str, OneOf("Bound", "Lost", "Pending")] = ""
    access_modes: list[str] = []
    capacity: dict[str, Quantity] = {}
    conditions: Annotated[list[PersistentVolumeClaimCondition], Keyed("type")] = []
    allocated_resources: dict[str, Quantity] = {}
    allocated_resource_statuses: dict[str, str] = {}
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    health_status: VolumeHealthStatus | None = None


class PersistentVolumeClaim(KubeObject):
    spec: PersistentVolumeClaimSpec = nested(PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = nested(PersistentVolumeClaimStatus)


class PersistentVolumeClaimTemplate(KubeStruct):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: Annotated[PersistentVolumeClaimSpec, REQUIRED] = nested(PersistentVolumeClaimSpec)


class EphemeralVolumeSource(KubeStruct):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None
