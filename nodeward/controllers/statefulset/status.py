"""The status of a stateful set. Pure: its observed state in, a status out.

`currentRevision` is what pods were before the update under way; once all of them are of the new revision and ready,
the new one is the current one.

Called by `controller`; calls `identity` and `plan`.
"""

from __future__ import annotations

import msgspec

from nodeward.api.apps_v1 import StatefulSetCondition, StatefulSetStatus
from nodeward.controllers.pods.control import CREATE_FAILED
from nodeward.controllers.pods.failure import with_failure
from nodeward.controllers.pods.state import is_ready
from nodeward.controllers.statefulset.identity import revision_of
from nodeward.controllers.statefulset.plan import StatefulSetState


def status_of(state: StatefulSetState, collision_count: int | None, failure: str | None) -> StatefulSetStatus:
    owner, before = state.owner, state.owner.status
    pods = [*state.pods.values(), *state.condemned]
    staying = [revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)
    updated, wanted = staying.count(state.update), owner.spec.replicas or 0
    is_complete = updated == ready == len(pods) == wanted
    return msgspec.structs.replace(
        before,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=ready,
        available_replicas=sum(map(state.serves, pods)),
        current_replicas=updated if is_complete else staying.count(state.current),
        updated_replicas=updated,
        current_revision=state.update if is_complete else state.current,
        update_revision=state.update,
        collision_count=collision_count or 0,
        conditions=with_failure(
            before.conditions, StatefulSetCondition, CREATE_FAILED, failure, state.now_ns
        ),
    )
