"""Defaults of workloads: replicas, update strategies, history limits."""

from __future__ import annotations

from typing import Final

from nodeward.api.apps_v1 import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    RollingUpdateDaemonSet,
    RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
)
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.defaults.pod import default_pod_template
from nodeward.api.defaults.storage import default_claim

_HISTORY: Final = 10
_PROGRESS_SECONDS: Final = 600


def default_deployment(deployment: Deployment) -> None:
    spec = deployment.spec
    if spec.replicas is None:
        spec.replicas = 1
    strategy = spec.strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDeployment()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = "25%"
        if rolling.max_surge is None:
            rolling.max_surge = "25%"
    if spec.revision_history_limit is None:
        spec.revision_history_limit = _HISTORY
    if spec.progress_deadline_seconds is None:
        spec.progress_deadline_seconds = _PROGRESS_SECONDS
    default_pod_template(spec.template)


def default_replica_set(replicas: ReplicaSet) -> None:
    if replicas.spec.replicas is None:
        replicas.spec.replicas = 1
    default_pod_template(replicas.spec.template)


def default_daemon_set(daemons: DaemonSet) -> None:
    strategy = daemons.spec.update_strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDaemonSet()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = 1
        if rolling.max_surge is None:
            rolling.max_surge = 0
    if daemons.spec.revision_history_limit is None:
        daemons.spec.revision_history_limit = _HISTORY
    default_pod_template(daemons.spec.template)


def default_stateful_set(stateful: StatefulSet) -> None:
    spec = stateful.spec
    spec.pod_management_policy = spec.pod_management_policy or "OrderedReady"
    strategy = spec.update_strategy
    if not strategy.type:
        strategy.type = "RollingUpdate"
        strategy.rolling_update = strategy.rolling_update or RollingUpdateStatefulSetStrategy()
    if strategy.type == "RollingUpdate" and strategy.rolling_update is not None:
        if strategy.rolling_update.partition is None:
            strategy.rolling_update.partition = 0
        if strategy.rolling_update.max_unavailable is None:
            strategy.rolling_update.max_unavailable = 1
    policy = spec.persistent_volume_claim_retention_policy
    if policy is None:
        policy = StatefulSetPersistentVolumeClaimRetentionPolicy()
        spec.persistent_volume_claim_retention_policy = policy
    policy.when_deleted = policy.when_deleted or "Retain"
    policy.when_scaled = policy.when_scaled or "Retain"
    if spec.replicas is None:
        spec.replicas = 1
    if spec.revision_history_limit is None:
        spec.revision_history_limit = _HISTORY
    default_pod_template(spec.template)
    for claim in spec.volume_claim_templates:
        claim.kind, claim.api_version = claim.kind or "PersistentVolumeClaim", claim.api_version or "v1"
        default_claim(claim)


def default_replication_controller(controller: ReplicationController) -> None:
    """Take selector and labels from the template where they are not set."""
    spec = controller.spec
    if spec.replicas is None:
        spec.replicas = 1
    if spec.template is not None:
        labels = spec.template.metadata.labels
        spec.selector = spec.selector or dict(labels)
        controller.metadata.labels = controller.metadata.labels or dict(labels)
        default_pod_template(spec.template)
