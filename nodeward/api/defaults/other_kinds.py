"""The defaults' registry, second half: every kind but pods and nodes."""

from __future__ import annotations

from typing import Final

from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.core_v1.cluster import LimitRange, Namespace, Secret
from nodeward.api.core_v1.service import Endpoints, Service
from nodeward.api.defaults.defaulter import Defaults
from nodeward.api.defaults.misc import (
    default_limit_range,
    default_namespace,
    default_priority_class,
    default_secret,
    default_token_request,
)
from nodeward.api.defaults.rbac import default_binding
from nodeward.api.defaults.service import default_endpoint_slice, default_endpoints, default_service
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.rbac_v1 import ClusterRoleBinding, RoleBinding
from nodeward.api.scheduling_v1 import PriorityClass

OTHERS: Final[Defaults] = {
    Endpoints: default_endpoints,
    LimitRange: default_limit_range,
    Namespace: default_namespace,
    Secret: default_secret,
    Service: default_service,
    TokenRequest: default_token_request,
    ClusterRoleBinding: default_binding,
    RoleBinding: default_binding,
    PriorityClass: default_priority_class,
    EndpointSlice: default_endpoint_slice,
}
