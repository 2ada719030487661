"""The rules' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from typing import Final

from nodeward.api import events_v1
from nodeward.api.apps_v1 import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from nodeward.api.authentication_v1 import SelfSubjectReview, TokenRequest, TokenReview
from nodeward.api.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.cluster import (
    ConfigMap,
    Event,
    LimitRange,
    Namespace,
    ResourceQuota,
    Secret,
    ServiceAccount,
)
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.api.storage_v1 import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)
from nodeward.api.validation.apps_daemonset import CONTROLLER_REVISION, DAEMON_SET
from nodeward.api.validation.apps_deployment import DEPLOYMENT, REPLICA_SET
from nodeward.api.validation.apps_statefulset import STATEFUL_SET
from nodeward.api.validation.authentication import SELF_SUBJECT_REVIEW, TOKEN_REQUEST, TOKEN_REVIEW
from nodeward.api.validation.authorization import (
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)
from nodeward.api.validation.batch_cronjob import CRON_JOB
from nodeward.api.validation.batch_job import JOB
from nodeward.api.validation.config import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from nodeward.api.validation.coordination import LEASE
from nodeward.api.validation.discovery import ENDPOINT_SLICE
from nodeward.api.validation.endpoints import ENDPOINTS
from nodeward.api.validation.event import CORE_EVENT, EVENT
from nodeward.api.validation.limits import LIMIT_RANGE
from nodeward.api.validation.namespace import NAMESPACE
from nodeward.api.validation.node_runtimeclass import RUNTIME_CLASS
from nodeward.api.validation.policy import POD_DISRUPTION_BUDGET
from nodeward.api.validation.quota import RESOURCE_QUOTA
from nodeward.api.validation.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from nodeward.api.validation.readiness_rule import NODE_READINESS_RULE
from nodeward.api.validation.resource_class import RESOURCE_KINDS
from nodeward.api.validation.scheduling import PRIORITY_CLASS
from nodeward.api.validation.service import SERVICE
from nodeward.api.validation.storage import PERSISTENT_VOLUME
from nodeward.api.validation.storage_claim import PERSISTENT_VOLUME_CLAIM
from nodeward.api.validation.storageclass import (
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
)
from nodeward.api.validation.storageclass_csi import CSI_DRIVER, CSI_NODE, VOLUME_ATTACHMENT
from nodeward.api.validation.validator import Validators
from nodeward.api.validation.workloads_controller import REPLICATION_CONTROLLER

OTHERS: Final[Validators] = {
    ConfigMap: CONFIG_MAP,
    Endpoints: ENDPOINTS,
    Event: CORE_EVENT,
    LimitRange: LIMIT_RANGE,
    Namespace: NAMESPACE,
    PersistentVolume: PERSISTENT_VOLUME,
    PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIM,
    ReplicationController: REPLICATION_CONTROLLER,
    ResourceQuota: RESOURCE_QUOTA,
    Secret: SECRET,
    ServiceAccount: SERVICE_ACCOUNT,
    Service: SERVICE,
    ControllerRevision: CONTROLLER_REVISION,
    DaemonSet: DAEMON_SET,
    Deployment: DEPLOYMENT,
    ReplicaSet: REPLICA_SET,
    StatefulSet: STATEFUL_SET,
    events_v1.Event: EVENT,
    SelfSubjectReview: SELF_SUBJECT_REVIEW,
    TokenRequest: TOKEN_REQUEST,
    TokenReview: TOKEN_REVIEW,
    LocalSubjectAccessReview: LOCAL_SUBJECT_ACCESS_REVIEW,
    SelfSubjectAccessReview: SELF_SUBJECT_ACCESS_REVIEW,
    SelfSubjectRulesReview: SELF_SUBJECT_RULES_REVIEW,
    SubjectAccessReview: SUBJECT_ACCESS_REVIEW,
    CronJob: CRON_JOB,
    Job: JOB,
    PodDisruptionBudget: POD_DISRUPTION_BUDGET,
    ClusterRole: CLUSTER_ROLE,
    ClusterRoleBinding: CLUSTER_ROLE_BINDING,
    Role: ROLE,
    RoleBinding: ROLE_BINDING,
    CSIDriver: CSI_DRIVER,
    CSINode: CSI_NODE,
    CSIStorageCapacity: CSI_STORAGE_CAPACITY,
    StorageClass: STORAGE_CLASS,
    VolumeAttachment: VOLUME_ATTACHMENT,
    VolumeAttributesClass: VOLUME_ATTRIBUTES_CLASS,
    PriorityClass: PRIORITY_CLASS,
    Lease: LEASE,
    RuntimeClass: RUNTIME_CLASS,
    EndpointSlice: ENDPOINT_SLICE,
    **RESOURCE_KINDS,
    NodeReadinessRule: NODE_READINESS_RULE,
}
