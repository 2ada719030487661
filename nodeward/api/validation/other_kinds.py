"""The rules' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from typing import Final

from nodeward.api import events_v1
from nodeward.api.authentication_v1 import SelfSubjectReview, TokenRequest, TokenReview
from nodeward.api.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
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
from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.api.validation.authentication import SELF_SUBJECT_REVIEW, TOKEN_REQUEST, TOKEN_REVIEW
from nodeward.api.validation.authorization import (
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)
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
from nodeward.api.validation.scheduling import PRIORITY_CLASS
from nodeward.api.validation.service import SERVICE
from nodeward.api.validation.validator import Validators

OTHERS: Final[Validators] = {
    ConfigMap: CONFIG_MAP,
    Endpoints: ENDPOINTS,
    Event: CORE_EVENT,
    LimitRange: LIMIT_RANGE,
    Namespace: NAMESPACE,
    ResourceQuota: RESOURCE_QUOTA,
    Secret: SECRET,
    ServiceAccount: SERVICE_ACCOUNT,
    Service: SERVICE,
    events_v1.Event: EVENT,
    SelfSubjectReview: SELF_SUBJECT_REVIEW,
    TokenRequest: TOKEN_REQUEST,
    TokenReview: TOKEN_REVIEW,
    LocalSubjectAccessReview: LOCAL_SUBJECT_ACCESS_REVIEW,
    SelfSubjectAccessReview: SELF_SUBJECT_ACCESS_REVIEW,
    SelfSubjectRulesReview: SELF_SUBJECT_RULES_REVIEW,
    SubjectAccessReview: SUBJECT_ACCESS_REVIEW,
    PodDisruptionBudget: POD_DISRUPTION_BUDGET,
    ClusterRole: CLUSTER_ROLE,
    ClusterRoleBinding: CLUSTER_ROLE_BINDING,
    Role: ROLE,
    RoleBinding: ROLE_BINDING,
    PriorityClass: PRIORITY_CLASS,
    Lease: LEASE,
    RuntimeClass: RUNTIME_CLASS,
    EndpointSlice: ENDPOINT_SLICE,
}
