"""The conditions of a job: made, found, set. Pure.

A job ends in two steps. `FailureTarget` or `SuccessCriteriaMet` says that it is decided, `Failed` or `Complete` that
nothing of it runs any more and everything has been counted.

Called by the other modules of this package, the cron job and TTL controllers.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.batch_v1 import Job, JobCondition, JobStatus
from nodeward.base.timestamp import rfc3339

FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
FAILED: Final = "Failed"
COMPLETE: Final = "Complete"
SUSPENDED: Final = "Suspended"

#: What follows on what.
FINAL: Final = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA_MET: COMPLETE}


def condition(type_: str, reason: str, message: str, now_ns: int, status: str = "True") -> JobCondition:
    now = rfc3339(now_ns)
    return JobCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=now,
        last_transition_time=now,
    )


def find(status: JobStatus, type_: str) -> JobCondition | None:
    return next((each for each in status.conditions if each.type == type_), None)


def is_true(status: JobStatus, type_: str) -> bool:
    found = find(status, type_)
    return found is not None and found.status == "True"


def finish_of(job: Job) -> JobCondition | None:
    """Return the condition that says the job has finished, `Complete` or `Failed`; None while it has not."""
    for each in job.status.conditions:
        if each.type in (COMPLETE, FAILED) and each.status == "True":
            return each
    return None


def is_finished(job: Job) -> bool:
    """Tell whether the job is complete or has failed, with nothing of it running."""
    return finish_of(job) is not None


def put(status: JobStatus, new: JobCondition) -> bool:
    """Set a condition; whether that changed anything. What never was need not be told as false."""
    known = find(status, new.type)
    if known is None and new.status == "False":
        return False
    if known is not None and (known.status, known.reason, known.message) == (
        new.status,
        new.reason,
        new.message,
    ):
        return False
    status.conditions = [*(each for each in status.conditions if each.type != new.type), new]
    return True
