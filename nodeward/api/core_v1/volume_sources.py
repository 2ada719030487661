"""Where a volume in a pod comes from, one struct a kind of source."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.references import (
    KeyToPath,
    LocalObjectReference,
    ObjectFieldSelector,
    ResourceFieldSelector,
)
from nodeward.api.fields import (
    REQUIRED,
    Int32,
    Int64,
    KubeStruct,
    OneOf,
    RequiredList,
    WithRequiredLists,
    always,
    always_null,
    field,
    required_list,
)
from nodeward.base.quantity import Quantity


class AWSElasticBlockStoreVolumeSource(KubeStruct):
    volume_id: Annotated[str, REQUIRED] = always("", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(KubeStruct):
    disk_name: Annotated[str, REQUIRED] = always("")
    disk_uri: Annotated[str, REQUIRED] = always("", name="diskURI")
    caching_mode: Annotated[str | None, OneOf("None", "ReadOnly", "ReadWrite")] = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: Annotated[str | None, OneOf("Dedicated", "Managed", "Shared")] = None


class AzureFileVolumeSource(KubeStruct):
    secret_name: Annotated[str, REQUIRED] = always("")
    share_name: Annotated[str, REQUIRED] = always("")
    read_only: bool = False


class CSIVolumeSource(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}
    node_publish_secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(WithRequiredLists):
    monitors: Annotated[RequiredList[str], REQUIRED] = required_list()
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class CinderVolumeSource(KubeStruct):
    volume_id: Annotated[str, REQUIRED] = always("", name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class ConfigMapVolumeSource(KubeStruct):
    name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class DownwardAPIVolumeFile(KubeStruct):
    path: Annotated[str, REQUIRED] = always("")
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None
    user: Int64 | None = None


class DownwardAPIVolumeSource(KubeStruct):
    items: list[DownwardAPIVolumeFile] = []
    default_mode: Int32 | None = None
    default_user: Int64 | None = None


class EmptyDirVolumeSource(KubeStruct):
    medium: str = ""
    size_limit: Quantity | None = None
    mode: Int32 | None = None


class FCVolumeSource(KubeStruct):
    target_wwns: list[str] = field(default_factory=list, name="targetWWNs")
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: list[str] = []


class FlexVolumeSource(KubeStruct):
    driver: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: dict[str, str] = {}


class FlockerVolumeSource(KubeStruct):
    dataset_name: str = ""
    dataset_uuid: str = field(default="", name="datasetUUID")


class GCEPersistentDiskVolumeSource(KubeStruct):
    pd_name: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class GitRepoVolumeSource(KubeStruct):
    repository: Annotated[str, REQUIRED] = always("")
    revision: str = ""
    directory: str = ""


class GlusterfsVolumeSource(KubeStruct):
    endpoints: Annotated[str, REQUIRED] = always("")
    path: Annotated[str, REQUIRED] = always("")
    read_only: bool = False


class HostPathVolumeSource(KubeStruct):
    path: Annotated[str, REQUIRED] = always("")
    type: Annotated[
        str | None,
        OneOf(
            "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
        ),
    ] = None


class ISCSIVolumeSource(KubeStruct):
    target_portal: Annotated[str, REQUIRED] = always("")
    iqn: Annotated[str, REQUIRED] = always("")
    lun: Annotated[Int32, REQUIRED] = always(0)
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: list[str] = []
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class ImageVolumeSource(KubeStruct):
    reference: str = ""
    pull_policy: Annotated[str, OneOf("Always", "IfNotPresent", "Never")] = ""


class NFSVolumeSource(KubeStruct):
    server: Annotated[str, REQUIRED] = always("")
    path: Annotated[str, REQUIRED] = always("")
    read_only: bool = False


class PersistentVolumeClaimVolumeSource(KubeStruct):
    claim_name: Annotated[str, REQUIRED] = always("")
    read_only: bool = False


class PhotonPersistentDiskVolumeSource(KubeStruct):
    pd_id: Annotated[str, REQUIRED] = always("", name="pdID")
    fs_type: str = ""


class PortworxVolumeSource(KubeStruct):
    volume_id: Annotated[str, REQUIRED] = always("", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class QuobyteVolumeSource(KubeStruct):
    registry: Annotated[str, REQUIRED] = always("")
    volume: Annotated[str, REQUIRED] = always("")
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class RBDVolumeSource(WithRequiredLists):
    monitors: Annotated[RequiredList[str], REQUIRED] = required_list()
    image: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class ScaleIOVolumeSource(KubeStruct):
    gateway: Annotated[str, REQUIRED] = always("")
    system: Annotated[str, REQUIRED] = always("")
    secret_ref: Annotated[LocalObjectReference | None, REQUIRED] = always_null()
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class SecretVolumeSource(KubeStruct):
    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class StorageOSVolumeSource(KubeStruct):
    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class VsphereVirtualDiskVolumeSource(KubeStruct):
    volume_path: Annotated[str, REQUIRED] = always("")
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")
