"""The defaults' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from typing import Final

from nodeward.api.apps_v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.core_v1.cluster import LimitRange, Namespace, ResourceQuota, Secret
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.defaults.batch import default_cron_job, default_job
from nodeward.api.defaults.defaulter import Defaults
from nodeward.api.defaults.rbac import default_binding
from nodeward.api.defaults.resource import (
    default_resource_claim,
    default_resource_claim_template,
    default_resource_slice,
)
from nodeward.api.defaults.service import default_endpoint_slice, default_endpoints, default_service
from nodeward.api.defaults.small_kinds import (
    default_limit_range,
    default_namespace,
    default_priority_class,
    default_readiness_rule,
    default_resource_quota,
    default_runtime_class,
    default_secret,
    default_token_request,
)
from nodeward.api.defaults.storage import (
    default_claim,
    default_csi_driver,
    default_storage_class,
    default_volume,
)
from nodeward.api.defaults.workloads import (
    default_daemon_set,
    default_deployment,
    default_replica_set,
    default_replication_controller,
    default_stateful_set,
)
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.rbac_v1 import ClusterRoleBinding, RoleBinding
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.api.resource_v1 import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.api.storage_v1 import CSIDriver, StorageClass

OTHERS: Final[Defaults] = {
    Endpoints: default_endpoints,
    LimitRange: default_limit_range,
    Namespace: default_namespace,
    PersistentVolume: default_volume,
    PersistentVolumeClaim: default_claim,
    ReplicationController: default_replication_controller,
    ResourceQuota: default_resource_quota,
    Secret: default_secret,
    Service: default_service,
    DaemonSet: default_daemon_set,
    Deployment: default_deployment,
    ReplicaSet: default_replica_set,
    StatefulSet: default_stateful_set,
    TokenRequest: default_token_request,
    CronJob: default_cron_job,
    Job: default_job,
    ClusterRoleBinding: default_binding,
    RoleBinding: default_binding,
    CSIDriver: default_csi_driver,
    StorageClass: default_storage_class,
    PriorityClass: default_priority_class,
    RuntimeClass: default_runtime_class,
    EndpointSlice: default_endpoint_slice,
    ResourceClaim: default_resource_claim,
    ResourceSlice: default_resource_slice,
    ResourceClaimTemplate: default_resource_claim_template,
    NodeReadinessRule: default_readiness_rule,
}
