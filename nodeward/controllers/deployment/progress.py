"""What a deployment's status says: counts, and the conditions Progressing, Available and ReplicaFailure. Pure.

`kubectl rollout status` reads the counts and Progressing; the reasons and messages are those its users know.

What must stay true: progress is a change of counts for the better; without any for `progressDeadlineSeconds` the
rollout has failed, which is told and changes nothing else. A rollout that was complete is not judged again.

Called by `controller`; calls `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from nodeward.api.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.controllers.deployment.arithmetic import max_unavailable, replicas, total

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
REPLICA_FAILURE: Final = "ReplicaFailure"

SET_UPDATED: Final = "ReplicaSetUpdated"
SET_CREATE_ERROR: Final = "ReplicaSetCreateError"
SET_CREATED: Final = "NewReplicaSetCreated"
SET_FOUND: Final = "FoundNewReplicaSet"
SET_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"

_NO_DEADLINE: Final = 2**31 - 1


def condition(status: DeploymentStatus, type_: str) -> DeploymentCondition | None:
    return next((each for each in status.conditions if each.type == type_), None)


def set_condition(
    status: DeploymentStatus,
    type_: str,
    value: str,
    reason: str,
    message: str,
    now_ns: int,
    *,
    is_news: bool = False,
) -> None:
    """Put a condition into a status of our own; the same status and reason again is nothing, unless `is_news`."""
    known = condition(status, type_)
    if known is not None and (known.status, known.reason) == (value, reason) and not is_news:
        return
    now = rfc3339(now_ns)
    since = known.last_transition_time if known is not None and known.status == value else now
    _put(
        status,
        DeploymentCondition(
            type=type_,
            status=value,
            reason=reason,
            message=message,
            last_update_time=now,
            last_transition_time=since,
        ),
    )


def _put(status: DeploymentStatus, new: DeploymentCondition) -> None:
    remove_condition(status, new.type)
    status.conditions.append(new)


def remove_condition(status: DeploymentStatus, type_: str) -> None:
    status.conditions = [each for each in status.conditions if each.type != type_]


def own_copy(status: DeploymentStatus) -> DeploymentStatus:
    """Return a copy that the functions here may change."""
    return msgspec.structs.replace(status, conditions=[*status.conditions])


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def note_pause(deployment: Deployment, status: DeploymentStatus, now_ns: int) -> None:
    """Set the condition for pausing or resuming, so that a pause does not count against the deadline."""
    known = condition(status, PROGRESSING)
    if not has_deadline(deployment) or (known is not None and known.reason == TIMED_OUT):
        return
    was_paused = known is not None and known.reason == PAUSED
    if deployment.spec.paused and not was_paused:
        set_condition(status, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now_ns)
    elif was_paused and not deployment.spec.paused:
        set_condition(status, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now_ns)


def counted(
    deployment: Deployment,
    status: DeploymentStatus,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    now_ns: int,
    *,
    tells_terminating: bool,
) -> DeploymentStatus:
    """Return a status with the replica sets' counts and Available; other conditions are those of `status`."""
    sets = [*old, new] if new is not None else [*old]
    serving = sum(each.status.available_replicas for each in sets)
    result = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(each.status.ready_replicas for each in sets),
        available_replicas=serving,
        unavailable_replicas=max(0, total(sets) - serving),
        terminating_replicas=_terminating(sets) if tells_terminating else None,
        collision_count=status.collision_count,
        conditions=[*status.conditions],
    )
    if serving >= replicas(deployment) - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        set_condition(result, AVAILABLE, "True", "MinimumReplicasAvailable", text, now_ns)
    else:
        text = "Deployment does not have minimum availability."
        set_condition(result, AVAILABLE, "False", "MinimumReplicasUnavailable", text, now_ns)
    return result


def _terminating(sets: Iterable[ReplicaSet]) -> int | None:
    """Sum terminating pods; None as soon as one observed replica set does not report them."""
    count = 0
    for each in sets:
        if each.status.terminating_replicas is not None:
            count += each.status.terminating_replicas
        elif each.status.observed_generation:
            return None
    return count


def judge(
    deployment: Deployment,
    result: DeploymentStatus,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    now_ns: int,
) -> None:
    """Put Progressing and ReplicaFailure into `result`, which has the counts; the deployment has those of before."""
    known = condition(result, PROGRESSING)
    if not has_deadline(deployment):
        remove_condition(result, PROGRESSING)
    elif not (
        known is not None and known.reason == SET_AVAILABLE and result.replicas == result.updated_replicas
    ):
        subject = (
            f'ReplicaSet "{new.metadata.name}"'
            if new is not None
            else f'Deployment "{deployment.metadata.name}"'
        )
        if is_complete(deployment, result):
            text = f"{subject} has successfully progressed."
            set_condition(result, PROGRESSING, "True", SET_AVAILABLE, text, now_ns)
        elif _is_progress(deployment.status, result):
            text = f"{subject} is progressing."
            set_condition(result, PROGRESSING, "True", SET_UPDATED, text, now_ns, is_news=True)
        elif _is_late(deployment, known, now_ns):
            text = f"{subject} has timed out progressing."
            set_condition(result, PROGRESSING, "False", TIMED_OUT, text, now_ns)
    _pass_on_failure(result, [*([new] if new is not None else []), *old])


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Tell whether all pods asked for are of the current template and available, with no others left."""
    wanted = replicas(deployment)
    return (
        status.updated_replicas == status.replicas == status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def _is_progress(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_late(deployment: Deployment, known: DeploymentCondition | None, now_ns: int) -> bool:
    if known is None or known.reason in (SET_AVAILABLE, TIMED_OUT):
        return False
    return (_deadline_ns(deployment, known) or now_ns) < now_ns


def _deadline_ns(deployment: Deployment, known: DeploymentCondition) -> int | None:
    seconds = deployment.spec.progress_deadline_seconds
    if seconds is None or known.last_update_time is None:
        return None
    return parse_rfc3339(known.last_update_time) + seconds * SECOND_NS


def seconds_to_deadline(deployment: Deployment, status: DeploymentStatus, now_ns: int) -> float | None:
    """Return when to look again if nothing happens; None: nothing to judge then."""
    known = condition(status, PROGRESSING)
    if (
        known is None
        or not has_deadline(deployment)
        or deployment.spec.paused
        or is_complete(deployment, status)
    ):
        return None
    if known.reason in (TIMED_OUT, SET_AVAILABLE):
        return None
    deadline_ns = _deadline_ns(deployment, known)
    # A second more: the moments in conditions are whole seconds.
    return None if deadline_ns is None else max(0.0, (deadline_ns - now_ns) / SECOND_NS) + 1.0


def _pass_on_failure(result: DeploymentStatus, newest_first: Iterable[ReplicaSet]) -> None:
    """Copy a replica set's failure condition to the deployment, preferring the current replica set's."""
    for each in newest_first:
        for found in each.status.conditions:
            if found.type == REPLICA_FAILURE:
                known = condition(result, REPLICA_FAILURE)
                if known is None or (known.reason, known.message) != (found.reason, found.message):
                    _put(
                        result,
                        DeploymentCondition(
                            type=REPLICA_FAILURE,
                            status=found.status,
                            reason=found.reason,
                            message=found.message,
                            last_update_time=found.last_transition_time,
                            last_transition_time=found.last_transition_time,
                        ),
                    )
                return
    remove_condition(result, REPLICA_FAILURE)
