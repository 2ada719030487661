"""The status of a replica set or replication controller. Pure: pods and the time in, a status out.

Called by `replicaset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from nodeward.api.apps_v1 import ReplicaSet, ReplicaSetCondition
from nodeward.api.core_v1.pod import Pod, ReplicationController, ReplicationControllerCondition
from nodeward.controllers.pods.control import CREATE_FAILED, DELETE_FAILED
from nodeward.controllers.pods.failure import with_failure
from nodeward.controllers.pods.state import is_available, is_ready

R = TypeVar("R", ReplicaSet, ReplicationController)
Condition: TypeAlias = ReplicaSetCondition | ReplicationControllerCondition


def status_of(
    owner: R, active: Sequence[Pod], terminating: int | None, failure: str | None, now_ns: int
) -> Any:
    """Return the status `owner` should have. `terminating` None: not reported. `failure`: why writes failed."""
    template = owner.spec.template
    labels = template.metadata.labels.items() if template is not None else ()
    fully_labeled = ready = available = 0
    for pod in active:
        if all(pod.metadata.labels.get(key) == value for key, value in labels):
            fully_labeled += 1
        if is_ready(pod):
            ready += 1
            if is_available(pod, owner.spec.min_ready_seconds, now_ns):
                available += 1
    values: dict[str, Any] = {
        "replicas": len(active),
        "fully_labeled_replicas": fully_labeled,
        "ready_replicas": ready,
        "available_replicas": available,
        "observed_generation": owner.metadata.generation,
        "conditions": _conditions(owner, len(active), failure, now_ns),
    }
    if isinstance(owner, ReplicaSet):
        values["terminating_replicas"] = terminating
    return msgspec.structs.replace(owner.status, **values)


def _conditions(owner: R, active: int, failure: str | None, now_ns: int) -> list[Any]:
    reason = CREATE_FAILED if active < (owner.spec.replicas or 0) else DELETE_FAILED
    make: type[Condition] = (
        ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
    )
    return with_failure(owner.status.conditions, make, reason, failure, now_ns)
