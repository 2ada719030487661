"""A job and its pods as observed at one moment, with everything counted once. Pure.

Pods are in one of three states of the books: tracked (they carry the finalizer, and are not counted), uncounted (named
in the status, to be counted as soon as the finalizer is seen to be gone), and counted.

Called by the other modules of this package; calls `indexes`, `pod_facts` and `policies`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.indexes import NO_INDEXES, Indexes
from nodeward.controllers.job.pod_facts import (
    counts_by_index,
    finished_ns,
    ignored_index_failures,
    index_failures,
    index_of,
    is_failed,
    is_indexed,
    is_tracked,
)
from nodeward.controllers.job.policies import FAIL_INDEX, judge_failure
from nodeward.controllers.pods.state import is_active, is_terminating


@dataclass(frozen=True, slots=True)
class JobState:
    job: Job
    pods: Sequence[Pod]
    #: Those that run or may yet.
    active: Sequence[Pod]
    #: Tracked pods, less those whose finalizer is known to be on its way out.
    tracked: Sequence[Pod]
    #: Of them, those that ended and are not named in the status.
    new_succeeded: Sequence[Pod]
    new_failed: Sequence[Pod]
    #: How many there have been altogether; for an indexed job, how many indexes.
    succeeded: int
    failed: int
    terminating: int
    #: The indexes that are done; `known_indexes` are those the status names already.
    known_indexes: Indexes
    succeeded_indexes: Indexes
    failed_indexes: Indexes
    #: By index: the last failed pod, which is kept until its heir has taken over its count of failures.
    kept: dict[int, Pod]
    now_ns: int


def look_at(job: Job, pods: Sequence[Pod], released: Collection[str], now_ns: int) -> JobState:
    """`released`: the uids of pods whose finalizer was taken off, whatever the copy says."""
    uncounted = job.status.uncounted_terminated_pods
    noted_succeeded = frozenset(uncounted.succeeded if uncounted is not None else ())
    noted_failed = frozenset(uncounted.failed if uncounted is not None else ())
    active = [pod for pod in pods if is_active(pod)]
    tracked = [pod for pod in pods if is_tracked(pod) and pod.metadata.uid not in released]
    valid = [pod for pod in tracked if has_place(job, pod)]
    new_succeeded = [
        pod for pod in valid if pod.status.phase == "Succeeded" and pod.metadata.uid not in noted_succeeded
    ]
    new_failed = [pod for pod in valid if is_failed(pod, job) and pod.metadata.uid not in noted_failed]
    succeeded = job.status.succeeded + len(new_succeeded) + len(noted_succeeded)
    failed = job.status.failed + len(noted_failed)
    failed += sum(judge_failure(job, pod).counts for pod in new_failed)
    known = done = broken = NO_INDEXES
    kept: dict[int, Pod] = {}
    if is_indexed(job):
        completions = job.spec.completions or 0
        known = Indexes.parse(job.status.completed_indexes, completions)
        done = known | _indexes(pod for pod in valid if pod.status.phase == "Succeeded")
        succeeded = len(done)
        if counts_by_index(job):
            broken = Indexes.parse(job.status.failed_indexes, completions)
            broken |= _indexes(pod for pod in valid if _fails_its_index(job, pod))
            kept = _kept(job, valid, active, done | broken)
    return JobState(
        job=job,
        pods=pods,
        active=active,
        tracked=tracked,
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded,
        failed=failed,
        terminating=sum(map(is_terminating, pods)),
        known_indexes=known,
        succeeded_indexes=done,
        failed_indexes=broken,
        kept=kept,
        now_ns=now_ns,
    )


def has_place(job: Job, pod: Pod) -> bool:
    """Tell whether its end can count: in an indexed job only with an index the job has."""
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < (job.spec.completions or 0)


def _indexes(pods: Iterable[Pod]) -> Indexes:
    found = (index_of(pod) for pod in pods)
    return Indexes.of(dict.fromkeys(index for index in found if index is not None))


def _fails_its_index(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    judgement = judge_failure(job, pod)
    if judgement.action == FAIL_INDEX:
        return True
    return judgement.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _kept(job: Job, valid: Sequence[Pod], active: Sequence[Pod], over: Indexes) -> dict[int, Pod]:
    running = frozenset(index_of(pod) for pod in active)
    kept: dict[int, Pod] = {}
    for pod in valid:
        index = index_of(pod)
        if index is None or index in running or index in over or not is_failed(pod, job):
            continue
        before = kept.get(index)
        if before is None or _rank(pod) >= _rank(before):
            kept[index] = pod
    return kept


def _rank(pod: Pod) -> tuple[int, int]:
    return index_failures(pod) + ignored_index_failures(pod), finished_ns(pod)
