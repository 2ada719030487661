"""Defaults of the kinds that need one line each: namespaces, secrets, limits, priorities, tokens, readiness rules."""

from __future__ import annotations

from typing import Final

from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.core_v1.cluster import LimitRange, Namespace, ResourceQuota, Secret
from nodeward.api.defaults.rounding import round_up
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.api.scheduling_v1 import PriorityClass

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_HOUR: Final = 3600


def default_namespace(namespace: Namespace) -> None:
    """Label a namespace with its name; one with a generated name is labelled later."""
    if namespace.metadata.name:
        namespace.metadata.labels[_NAME_LABEL] = namespace.metadata.name
    namespace.status.phase = namespace.status.phase or "Active"


def default_secret(secret: Secret) -> None:
    secret.type = secret.type or "Opaque"


def default_limit_range(limits: LimitRange) -> None:
    """Set a container's default limit to its maximum, and its default request to that limit, else the minimum."""
    for item in limits.spec.limits:
        for amounts in (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio):
            round_up(amounts)
        if item.type == "Container":
            for name, amount in item.max.items():
                item.default.setdefault(name, amount)
            for name, amount in (*item.default.items(), *item.min.items()):
                item.default_request.setdefault(name, amount)


def default_resource_quota(quota: ResourceQuota) -> None:
    for amounts in (quota.spec.hard, quota.status.hard, quota.status.used):
        round_up(amounts)


def default_runtime_class(runtime: RuntimeClass) -> None:
    if runtime.overhead is not None:
        round_up(runtime.overhead.pod_fixed)


def default_priority_class(priority: PriorityClass) -> None:
    if priority.preemption_policy is None:
        priority.preemption_policy = "PreemptLowerPriority"


def default_token_request(request: TokenRequest) -> None:
    if request.spec.expiration_seconds is None:
        request.spec.expiration_seconds = _HOUR


def default_readiness_rule(rule: NodeReadinessRule) -> None:
    rule.spec.condition_policy = rule.spec.condition_policy or "allOf"
