"""Workloads that keep pods running: apps/v1."""

from __future__ import annotations

from typing import Annotated, Any

from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.fields import (
    REQUIRED,
    RETAIN_KEYS,
    Int32,
    Int64,
    IntOrString,
    Keyed,
    KubeStruct,
    OneOf,
    Time,
    always,
    always_null,
    nested,
)
from nodeward.api.meta import KubeObject, LabelSelector


class ControllerRevision(KubeObject):
    data: Annotated[Any, REQUIRED] = None
    revision: Int64 = always(0)


class RollingUpdateDaemonSet(KubeStruct):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(KubeStruct):
    type: Annotated[str, OneOf("OnDelete", "RollingUpdate")] = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(KubeStruct):
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, REQUIRED] = nested(PodTemplateSpec)
    update_strategy: DaemonSetUpdateStrategy = nested(DaemonSetUpdateStrategy)
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetCondition(KubeStruct):
    type: str = always("")
    status: str = always("")
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class DaemonSetStatus(KubeStruct):
    current_number_scheduled: Annotated[Int32, REQUIRED] = always(0)
    number_misscheduled: Annotated[Int32, REQUIRED] = always(0)
    desired_number_scheduled: Annotated[Int32, REQUIRED] = always(0)
    number_ready: Annotated[Int32, REQUIRED] = always(0)
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: Annotated[list[DaemonSetCondition], Keyed("type")] = []


class DaemonSet(KubeObject):
    spec: Annotated[DaemonSetSpec, REQUIRED] = nested(DaemonSetSpec)
    status: DaemonSetStatus = nested(DaemonSetStatus)


class RollingUpdateDeployment(KubeStruct):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(KubeStruct):
    type: Annotated[str, OneOf("Recreate", "RollingUpdate")] = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(KubeStruct):
    replicas: Int32 | None = None
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, REQUIRED] = nested(PodTemplateSpec)
    strategy: Annotated[DeploymentStrategy, RETAIN_KEYS] = nested(DeploymentStrategy)
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentCondition(KubeStruct):
    type: str = always("")
    status: str = always("")
    last_update_time: Time | None = always_null()
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class DeploymentStatus(KubeStruct):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: Annotated[list[DeploymentCondition], Keyed("type")] = []
    collision_count: Int32 | None = None


class Deployment(KubeObject):
    spec: Annotated[DeploymentSpec, REQUIRED] = nested(DeploymentSpec)
    status: DeploymentStatus = nested(DeploymentStatus)


class ReplicaSetSpec(KubeStruct):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: PodTemplateSpec = nested(PodTemplateSpec)


class ReplicaSetCondition(KubeStruct):
    type: str = always("")
    status: str = always("")
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class ReplicaSetStatus(KubeStruct):
    replicas: Annotated[Int32, REQUIRED] = always(0)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: Annotated[list[ReplicaSetCondition], Keyed("type")] = []


class ReplicaSet(KubeObject):
    spec: Annotated[ReplicaSetSpec, REQUIRED] = nested(ReplicaSetSpec)
    status: ReplicaSetStatus = nested(ReplicaSetStatus)


class RollingUpdateStatefulSetStrategy(KubeStruct):
    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetOrdinals(KubeStruct):
    start: Int32 = always(0)


class StatefulSetPersistentVolumeClaimRetentionPolicy(KubeStruct):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetUpdateStrategy(KubeStruct):
    type: Annotated[str, OneOf("OnDelete", "Recreate", "RollingUpdate")] = ""
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetSpec(KubeStruct):
    replicas: Int32 | None = None
    selector: Annotated[LabelSelector | None, REQUIRED] = None
    template: Annotated[PodTemplateSpec, REQUIRED] = nested(PodTemplateSpec)
    volume_claim_templates: list[PersistentVolumeClaim] = []
    service_name: str = always("")
    pod_management_policy: Annotated[str, OneOf("OrderedReady", "Parallel")] = ""
    update_strategy: StatefulSetUpdateStrategy = nested(StatefulSetUpdateStrategy)
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetCondition(KubeStruct):
    type: str = always("")
    status: str = always("")
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class StatefulSetStatus(KubeStruct):
    observed_generation: Int64 = 0
    replicas: Annotated[Int32, REQUIRED] = always(0)
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: Annotated[list[StatefulSetCondition], Keyed("type")] = []
    available_replicas: Int32 = always(0)


class StatefulSet(KubeObject):
    spec: Annotated[StatefulSetSpec, REQUIRED] = nested(StatefulSetSpec)
    status: StatefulSetStatus = nested(StatefulSetStatus)
