"""What a stateful set says of its pods. Pure: a scene in, a status out.

`currentRevision` is what pods were before the update under way; once all of them are of the new revision and ready,
the new one is the current one.
"""

from __future__ import annotations

import msgspec

from nodeward.api.apps_v1 import StatefulSetCondition, StatefulSetStatus
from nodeward.controllers.pods.control import CREATE_FAILED
from nodeward.controllers.pods.failure import with_failure
from nodeward.controllers.pods.state import is_ready
from nodeward.controllers.statefulset.identity import revision_of
from nodeward.controllers.statefulset.plan import Scene


def status_of(scene: Scene, collision_count: int | None, failure: str | None) -> StatefulSetStatus:
    owner, before = scene.owner, scene.owner.status
    pods = [*scene.pods.values(), *scene.condemned]
    staying = [revision_of(pod) for pod in pods if pod.metadata.deletion_timestamp is None]
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)
    updated, wanted = staying.count(scene.update), owner.spec.replicas or 0
    is_complete = updated == ready == len(pods) == wanted
    return msgspec.structs.replace(
        before,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=ready,
        available_replicas=sum(map(scene.serves, pods)),
        current_replicas=updated if is_complete else staying.count(scene.current),
        updated_replicas=updated,
        current_revision=scene.update if is_complete else scene.current,
        update_revision=scene.update,
        collision_count=collision_count or 0,
        conditions=with_failure(
            before.conditions, StatefulSetCondition, CREATE_FAILED, failure, scene.now_ns
        ),
    )
