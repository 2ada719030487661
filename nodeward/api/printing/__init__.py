"""Server-side printing: objects as tables for `kubectl get`, and as partial metadata.

Called by `apiserver/presenting.py`. One printer per kind, in the file of its group; `PRINTERS` maps kinds to printers.
A kind without an entry is shown by name and creation time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeward.api.meta import KubeObject, ListMeta
from nodeward.api.printing import (
    cluster,
    devices,
    events,
    jobs,
    nodes,
    pods,
    rbac,
    services,
    volumes,
    workloads,
)
from nodeward.api.printing.printer import Cell, Cells, Column, Printer, RowCondition
from nodeward.api.printing.table import (
    Include,
    MetaVersion,
    build_table,
    parse_include,
    partial_metadata,
    partial_metadata_list,
)
from nodeward.api.scheme import Kind

__all__ = [
    "DEFAULT",
    "PRINTERS",
    "Cell",
    "Cells",
    "Column",
    "Include",
    "MetaVersion",
    "Printer",
    "RowCondition",
    "parse_include",
    "partial_metadata",
    "partial_metadata_list",
    "printer_for",
    "table",
]

DEFAULT = cluster.DEFAULT

#: (group, kind) -> its printer
PRINTERS: Mapping[tuple[str, str], Printer] = {
    ("", "ComponentStatus"): cluster.COMPONENT_STATUS,
    ("", "ConfigMap"): cluster.CONFIG_MAP,
    ("", "Endpoints"): services.ENDPOINTS,
    ("", "Event"): events.CORE_EVENT,
    ("", "Namespace"): cluster.NAMESPACE,
    ("", "Node"): nodes.NODE,
    ("", "PersistentVolume"): volumes.PERSISTENT_VOLUME,
    ("", "PersistentVolumeClaim"): volumes.PERSISTENT_VOLUME_CLAIM,
    ("", "Pod"): pods.POD,
    ("", "PodTemplate"): pods.POD_TEMPLATE,
    ("", "ReplicationController"): workloads.REPLICATION_CONTROLLER,
    ("", "ResourceQuota"): cluster.RESOURCE_QUOTA,
    ("", "Secret"): cluster.SECRET,
    ("", "Service"): services.SERVICE,
    ("", "ServiceAccount"): cluster.NAME_AND_AGE,
    ("apps", "ControllerRevision"): workloads.CONTROLLER_REVISION,
    ("apps", "DaemonSet"): workloads.DAEMON_SET,
    ("apps", "Deployment"): workloads.DEPLOYMENT,
    ("apps", "ReplicaSet"): workloads.REPLICA_SET,
    ("apps", "StatefulSet"): workloads.STATEFUL_SET,
    ("autoscaling", "Scale"): workloads.SCALE,
    ("batch", "CronJob"): jobs.CRON_JOB,
    ("batch", "Job"): jobs.JOB,
    ("coordination.k8s.io", "Lease"): cluster.LEASE,
    ("discovery.k8s.io", "EndpointSlice"): services.ENDPOINT_SLICE,
    ("events.k8s.io", "Event"): events.EVENT,
    ("node.k8s.io", "RuntimeClass"): nodes.RUNTIME_CLASS,
    ("policy", "PodDisruptionBudget"): workloads.POD_DISRUPTION_BUDGET,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): rbac.BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): rbac.BINDING,
    ("readiness.node.x-k8s.io", "NodeReadinessRule"): nodes.NODE_READINESS_RULE,
    ("resource.k8s.io", "DeviceClass"): cluster.NAME_AND_AGE,
    ("resource.k8s.io", "DeviceTaintRule"): devices.DEVICE_TAINT_RULE,
    ("resource.k8s.io", "ResourceClaim"): devices.RESOURCE_CLAIM,
    ("resource.k8s.io", "ResourceClaimTemplate"): cluster.NAME_AND_AGE,
    ("resource.k8s.io", "ResourceSlice"): devices.RESOURCE_SLICE,
    ("scheduling.k8s.io", "PriorityClass"): cluster.PRIORITY_CLASS,
    ("storage.k8s.io", "CSIDriver"): volumes.CSI_DRIVER,
    ("storage.k8s.io", "CSINode"): volumes.CSI_NODE,
    ("storage.k8s.io", "StorageClass"): volumes.STORAGE_CLASS,
    ("storage.k8s.io", "VolumeAttachment"): volumes.VOLUME_ATTACHMENT,
    ("storage.k8s.io", "VolumeAttributesClass"): volumes.VOLUME_ATTRIBUTES_CLASS,
}


def printer_for(group: str, kind: str) -> Printer:
    return PRINTERS.get((group, kind), DEFAULT)


def table(
    kind: Kind | tuple[str, str],
    objects: Sequence[tuple[KubeObject, bytes | None]],
    *,
    now_ns: int,
    include: Include = "Metadata",
    resource_version: str = "",
    continue_: str = "",
    remaining: int | None = None,
    has_headers: bool = True,
    is_list: bool = True,
    version: MetaVersion = "v1",
) -> bytes:
    """Return the objects as a Table.

    `kind` may be given as (group, kind name) for kinds that are not stored, such as a Scale. Each object may come with
    its encoded form, which is used as it is when `include` is "Object". A watch sends one table for each event, with
    `is_list=False`, and headers only in the first.
    """
    group, name = kind if isinstance(kind, tuple) else (kind.group, kind.name)
    metadata = ListMeta(
        resource_version=resource_version, continue_=continue_, remaining_item_count=remaining
    )
    return build_table(
        printer_for(group, name),
        objects,
        now_ns=now_ns,
        include=include,
        metadata=metadata,
        has_headers=has_headers,
        is_list=is_list,
        version=version,
    )
