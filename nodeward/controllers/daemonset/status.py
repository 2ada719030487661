"""The status of a daemon set. Pure: its observed state in, a status out.

Called by `controller`; calls `plan`.
"""

from __future__ import annotations

import msgspec

from nodeward.api.apps_v1 import DaemonSetCondition, DaemonSetStatus
from nodeward.controllers.daemonset.plan import DaemonSetState, age
from nodeward.controllers.pods.control import CREATE_FAILED
from nodeward.controllers.pods.failure import with_failure
from nodeward.controllers.pods.state import is_ready


def status_of(
    state: DaemonSetState, collision_count: int | None, failure: str | None, *, has_acted: bool
) -> DaemonSetStatus:
    """Return the status to write. Unless it `has_acted` on the newest spec, that is not told as observed."""
    owner, before = state.owner, state.owner.status
    current = misplaced = ready = available = updated = 0
    for node, eligible in state.eligibility.items():
        pods = state.pods.get(node)
        if not pods:
            continue
        if not eligible.should_run:
            misplaced += 1
            continue
        current += 1
        pod = pods[0] if len(pods) == 1 else min(pods, key=age)
        if is_ready(pod):
            ready += 1
            available += state.serves(pod)
        updated += state.is_new(pod)
    wanted = state.wanted()
    return msgspec.structs.replace(
        before,
        desired_number_scheduled=wanted,
        current_number_scheduled=current,
        number_misscheduled=misplaced,
        number_ready=ready,
        number_available=available,
        number_unavailable=wanted - available,
        updated_number_scheduled=updated,
        observed_generation=owner.metadata.generation if has_acted else before.observed_generation,
        collision_count=collision_count,
        conditions=with_failure(before.conditions, DaemonSetCondition, CREATE_FAILED, failure, state.now_ns),
    )
