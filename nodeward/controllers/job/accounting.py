"""Job tracking with finalizers: how ended pods get into the counts, each exactly once. Pure.

1. `enter` names ended pods in `status.uncountedTerminatedPods` (an index that succeeded is entered at once: the set of
   indexes cannot count it twice). That status is stored.
2. The finalizers of those pods are taken off.
3. `settle` counts the named pods whose finalizer is gone. That is stored with the next status.

What must stay true: killed between any two of these, the next look finds every pod in exactly one of the states. At
most `MAX_UNCOUNTED` pods are entered at a time, so that the status stays small.

Called by `controller`; calls `conditions`, `indexes`, `job_state`, `pod_facts` and `policies`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeward.api.batch_v1 import JobCondition, JobStatus, UncountedTerminatedPods
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.conditions import SUCCESS_CRITERIA_MET
from nodeward.controllers.job.indexes import Indexes
from nodeward.controllers.job.job_state import JobState, has_place
from nodeward.controllers.job.pod_facts import counts_by_index, index_of, is_failed, is_indexed
from nodeward.controllers.job.policies import judge_failure

MAX_UNCOUNTED: Final = 500


@dataclass(slots=True)
class Entries:
    #: A copy, with the entries.
    status: JobStatus
    #: Whose finalizers can be taken off once the status is stored.
    release: list[Pod]
    #: There are more than could be entered.
    is_full: bool


def own_copy(status: JobStatus) -> JobStatus:
    """Return a copy that the functions here may change."""
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    return msgspec.structs.replace(
        status,
        conditions=[*status.conditions],
        uncounted_terminated_pods=UncountedTerminatedPods(
            succeeded=[*uncounted.succeeded], failed=[*uncounted.failed]
        ),
    )


def settle(status: JobStatus, tracked: Collection[str]) -> None:
    """Count the named pods that are not tracked any more."""
    uncounted = status.uncounted_terminated_pods
    if uncounted is None:
        return
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded += len(uncounted.succeeded) - len(succeeded)
    status.failed += len(uncounted.failed) - len(failed)
    status.uncounted_terminated_pods = UncountedTerminatedPods(succeeded=succeeded, failed=failed)


def is_settled(status: JobStatus) -> bool:
    uncounted = status.uncounted_terminated_pods
    return uncounted is None or not (uncounted.succeeded or uncounted.failed)


def enter(state: JobState, status: JobStatus, ending: JobCondition | None) -> Entries:
    """Enter what has ended into `status`, which is changed. `ending`: the job is decided, so everything has ended."""
    job = state.job
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    status.uncounted_terminated_pods = uncounted
    has_failed = ending is not None and ending.type != SUCCESS_CRITERIA_MET
    noted = frozenset((*uncounted.succeeded, *uncounted.failed))
    entries = Entries(status, [], False)
    new_indexes: dict[int, None] = {}
    for pod in sorted(state.tracked, key=lambda pod: index_of(pod) or 0):
        if not _may_go(state, pod, ending):
            continue
        entries.release.append(pod)
        uid, index = pod.metadata.uid, index_of(pod)
        if uid not in noted and has_place(job, pod):
            if pod.status.phase == "Succeeded":
                if not is_indexed(job):
                    uncounted.succeeded.append(uid)
                elif index is not None and index not in state.known_indexes:
                    new_indexes[index] = None
            elif (has_failed or is_failed(pod, job)) and judge_failure(job, pod).counts:
                uncounted.failed.append(uid)
        if len(new_indexes) + len(uncounted.succeeded) + len(uncounted.failed) >= MAX_UNCOUNTED:
            entries.is_full = True
            break
    if is_indexed(job):
        done = state.known_indexes | Indexes.of(new_indexes)
        status.completed_indexes = str(done)
        status.succeeded = len(done)
        status.failed_indexes = str(state.failed_indexes) if counts_by_index(job) else None
    return entries


def _may_go(state: JobState, pod: Pod, ending: JobCondition | None) -> bool:
    if state.job.metadata.deletion_timestamp is not None or ending is not None:
        return True
    if pod.status.phase == "Succeeded":
        return True
    if not is_failed(pod, state.job):
        return False
    index = index_of(pod)
    heirless = state.kept.get(index) if index is not None else None
    # The count of its index's failures is on it until there is another pod of that index.
    return heirless is None or heirless.metadata.uid != pod.metadata.uid
