"""What a replica set (or a replication controller) says of its pods. Pure: pods and the time in, a status out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from nodeward.api.apps_v1 import ReplicaSet, ReplicaSetCondition
from nodeward.api.core_v1.pod import Pod, ReplicationController, ReplicationControllerCondition
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.pods.control import CREATE_FAILED, DELETE_FAILED
from nodeward.controllers.pods.state import is_available, is_ready

R = TypeVar("R", ReplicaSet, ReplicationController)
Condition: TypeAlias = ReplicaSetCondition | ReplicationControllerCondition

REPLICA_FAILURE: Final = "ReplicaFailure"


def status_of(
    owner: R, active: Sequence[Pod], terminating: int | None, failure: str | None, now_ns: int
) -> Any:
    """The status `owner` should have. `terminating` None: not told. `failure`: why pods were not made or deleted."""
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
    others: list[Any] = [each for each in owner.status.conditions if each.type != REPLICA_FAILURE]
    if failure is None:
        return others
    known = next((each for each in owner.status.conditions if each.type == REPLICA_FAILURE), None)
    reason = CREATE_FAILED if active < (owner.spec.replicas or 0) else DELETE_FAILED
    if known is not None and (known.reason, known.message) == (reason, failure):
        return [*owner.status.conditions]
    make: type[Condition] = (
        ReplicaSetCondition if isinstance(owner, ReplicaSet) else ReplicationControllerCondition
    )
    # Unlike upstream, which keeps the first message for ever: what is wrong now is what the user can mend.
    since = known.last_transition_time if known is not None else rfc3339(now_ns)
    return [
        *others,
        make(type=REPLICA_FAILURE, status="True", reason=reason, message=failure, last_transition_time=since),
    ]
