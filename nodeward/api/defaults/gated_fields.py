"""Fields of disabled feature gates, for every kind but pods: dropped before validation.

One line is one gate and the fields it introduced. A field stays when the stored object already uses one of them, so
that disabling a gate does not change existing objects. The strategies call this on create, update and status update,
after admission and before validation. Pods and templates: `pod_gates`; nodes: `node`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nodeward.api.apps_v1 import Deployment, ReplicaSet, StatefulSet
from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.blanking import Path, blank, is_set
from nodeward.api.context import Context
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.fields import KubeTop
from nodeward.api.resource_v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from nodeward.api.storage_v1 import CSIDriver, CSINode, VolumeAttachment


class Gated(NamedTuple):
    """The fields of a gate. `also`: fields whose use shows as well that the feature is in use."""

    gate: str
    paths: tuple[Path, ...]
    also: tuple[Path, ...] = ()


def drop_gated_fields(new: KubeTop, old: Any, ctx: Context) -> None:
    """Empty the fields of gates that are off, in place, unless `old` (None: a new object) uses them."""
    for rule in _closed(type(new), ctx):
        if old is None or not is_set(old, (*rule.paths, *rule.also)):
            blank(new, rule.paths)


@functools.lru_cache(maxsize=256)
def _closed(kind: type[KubeTop], ctx: Context) -> tuple[Gated, ...]:
    return tuple(rule for rule in GATED.get(kind, ()) if not ctx.on(rule.gate))


def _under(*prefix: str, to: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple((*prefix, name) for name in to)


def _claim(*prefix: str) -> tuple[Gated, ...]:
    requests = (*prefix, "devices", "requests")
    both = ((*requests, "exactly"), (*requests, "first_available"))
    distinct = (*prefix, "devices", "constraints", "distinct_attribute")
    return (
        Gated("DRAPrioritizedList", ((*requests, "first_available"),)),
        Gated("DRADeviceTaints", tuple((*each, "tolerations") for each in both)),
        Gated("DRAAdminAccess", ((*requests, "exactly", "admin_access"),)),
        Gated("DRAConsumableCapacity", (distinct, *((*each, "capacity") for each in both))),
        Gated("DRADerivedAttributes", tuple((*each, "derived_attributes") for each in both)),
    )


_SPEC: Final = ("spec",)
_DEVICES: Final = ("spec", "devices")
_RESULTS: Final = ("status", "allocation", "devices", "results")
_CAPACITY_IN_SPEC: Final = next(rule for rule in _claim("spec") if rule.gate == "DRAConsumableCapacity").paths

GATED: Final[Mapping[type[KubeTop], tuple[Gated, ...]]] = {
    Lease: (
        Gated("CoordinatedLeaderElection", (("spec", "strategy"),)),
        Gated("CoordinatedLeaderElection", (("spec", "preferred_holder"),)),
    ),
    Job: (Gated("WorkloadWithJob", (("spec", "scheduling"),)),),
    CronJob: (Gated("WorkloadWithJob", (("spec", "job_template", "spec", "scheduling"),)),),
    StatefulSet: (
        Gated(
            "MaxUnavailableStatefulSet", (("spec", "update_strategy", "rolling_update", "max_unavailable"),)
        ),
    ),
    Deployment: (Gated("DeploymentReplicaSetTerminatingReplicas", (("status", "terminating_replicas"),)),),
    ReplicaSet: (Gated("DeploymentReplicaSetTerminatingReplicas", (("status", "terminating_replicas"),)),),
    PersistentVolume: (Gated("VolumeAttributesClass", (("spec", "volume_attributes_class_name"),)),),
    PersistentVolumeClaim: (
        Gated("VolumeAttributesClass", (("spec", "volume_attributes_class_name"),)),
        Gated("VolumeAttributesClass", (("status", "current_volume_attributes_class_name"),)),
        Gated("VolumeAttributesClass", (("status", "modify_volume_status"),)),
        Gated("RecoverVolumeExpansionFailure", (("status", "allocated_resources"),)),
        Gated("RecoverVolumeExpansionFailure", (("status", "allocated_resource_statuses"),)),
        Gated("CSIVolumeHealth", (("status", "health_status"),)),
    ),
    CSIDriver: (
        Gated("SELinuxMountReadWriteOncePod", (("spec", "se_linux_mount"),)),
        Gated("MutableCSINodeAllocatableCount", (("spec", "node_allocatable_update_period_seconds"),)),
        Gated("CSIServiceAccountTokenSecrets", (("spec", "service_account_token_in_secrets"),)),
        Gated("VolumeLimitScaling", (("spec", "prevent_pod_scheduling_if_missing"),)),
    ),
    CSINode: (Gated("CSIVolumeHealth", (("status", "storage_health"),)),),
    VolumeAttachment: (
        Gated("MutableCSINodeAllocatableCount", (("status", "attach_error", "error_code"),)),
        Gated("MutableCSINodeAllocatableCount", (("status", "detach_error", "error_code"),)),
    ),
    EndpointSlice: (Gated("PreferSameTrafficDistribution", (("endpoints", "hints", "for_nodes"),)),),
    DeviceClass: (Gated("DRAExtendedResource", (("spec", "extended_resource_name"),)),),
    ResourceClaimTemplate: _claim("spec", "spec"),
    ResourceClaim: (
        *_claim("spec"),
        Gated("DRAResourceClaimDeviceStatus", (("status", "devices"),)),
        Gated(
            "DRAAdminAccess",
            ((*_RESULTS, "admin_access"),),
            also=(("spec", "devices", "requests", "exactly", "admin_access"),),
        ),
        Gated(
            "DRAConsumableCapacity",
            (
                (*_RESULTS, "share_id"),
                (*_RESULTS, "consumed_capacity"),
                ("status", "devices", "share_id"),
            ),
            also=_CAPACITY_IN_SPEC,
        ),
        Gated(
            "DRADeviceBindingConditions",
            _under(*_RESULTS, to=("binding_conditions", "binding_failure_conditions")),
        ),
    ),
    ResourceSlice: (
        Gated("DRADeviceTaints", ((*_DEVICES, "taints"),)),
        Gated(
            "DRAPartitionableDevices",
            (
                *_under(*_SPEC, to=("shared_counters", "per_device_node_selection")),
                *_under(*_DEVICES, to=("consumes_counters", "node_name", "node_selector", "all_nodes")),
            ),
        ),
        Gated(
            "DRADeviceBindingConditions",
            _under(*_DEVICES, to=("binding_conditions", "binding_failure_conditions", "binds_to_node")),
        ),
        Gated(
            "DRAConsumableCapacity",
            ((*_DEVICES, "allow_multiple_allocations"), (*_DEVICES, "capacity", "request_policy")),
        ),
        Gated("DRADeviceCompatibilityGroups", ((*_DEVICES, "consumes_counters", "compatibility_groups"),)),
        Gated("DRANodeAllocatableResources", ((*_DEVICES, "node_allocatable_resources"),)),
        Gated(
            "DRAListTypeAttributes",
            _under(*_DEVICES, "attributes", to=("ints", "bools", "strings", "versions")),
        ),
        Gated("DRAPartitionableDevicesType", (("spec", "partition_type_attribute"),)),
    ),
}
