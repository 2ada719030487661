"""Which rules hold for which kind: `VALIDATORS[type(obj)]`, a plain dict; a new kind is one line in it.

The API server's strategies look a kind up here once, when they are made. This module imports the rules of every kind,
so nothing in `nodeward.validation` imports it. Subresources of pods have functions of their own: `validate_pod_resize`,
`validate_ephemeral_containers_update`, `validate_binding`.
"""

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
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodTemplate, ReplicationController
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
from nodeward.validation.apps.daemonset import CONTROLLER_REVISION, DAEMON_SET
from nodeward.validation.apps.deployment import DEPLOYMENT, REPLICA_SET
from nodeward.validation.apps.statefulset import STATEFUL_SET
from nodeward.validation.authentication import SELF_SUBJECT_REVIEW, TOKEN_REQUEST, TOKEN_REVIEW
from nodeward.validation.authorization import (
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)
from nodeward.validation.batch.cronjob import CRON_JOB
from nodeward.validation.batch.job import JOB
from nodeward.validation.coordination import LEASE
from nodeward.validation.core.config import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from nodeward.validation.core.endpoints import ENDPOINTS
from nodeward.validation.core.event import CORE_EVENT, EVENT
from nodeward.validation.core.limit_range import LIMIT_RANGE
from nodeward.validation.core.namespace import NAMESPACE
from nodeward.validation.core.node import NODE
from nodeward.validation.core.persistent_volume import PERSISTENT_VOLUME
from nodeward.validation.core.persistent_volume_claim import PERSISTENT_VOLUME_CLAIM
from nodeward.validation.core.replication_controller import REPLICATION_CONTROLLER
from nodeward.validation.core.resource_quota import RESOURCE_QUOTA
from nodeward.validation.core.service import SERVICE
from nodeward.validation.discovery import ENDPOINT_SLICE
from nodeward.validation.pod.pod import (
    pod_name,
    validate_pod,
    validate_pod_template,
    validate_pod_template_update,
)
from nodeward.validation.pod.status import validate_pod_status_update
from nodeward.validation.pod.update import validate_pod_update
from nodeward.validation.pod.warnings import pod_template_kind_warnings, pod_warnings
from nodeward.validation.policy import POD_DISRUPTION_BUDGET
from nodeward.validation.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from nodeward.validation.readiness_rule import NODE_READINESS_RULE
from nodeward.validation.resource.device_class import RESOURCE_KINDS
from nodeward.validation.runtime_class import RUNTIME_CLASS
from nodeward.validation.scheduling import PRIORITY_CLASS
from nodeward.validation.storage.csi import CSI_DRIVER, CSI_NODE, VOLUME_ATTACHMENT
from nodeward.validation.storage.storage_class import (
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    VOLUME_ATTRIBUTES_CLASS,
)
from nodeward.validation.validator import Validator, Validators

VALIDATORS: Final[Validators] = {
    Pod: Validator(
        create=validate_pod,
        update=validate_pod_update,
        status=validate_pod_status_update,
        name=pod_name,
        warnings=pod_warnings,
    ),
    PodTemplate: Validator(
        create=validate_pod_template,
        update=validate_pod_template_update,
        status=None,
        name=pod_name,
        warnings=pod_template_kind_warnings,
    ),
    Node: NODE,
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
