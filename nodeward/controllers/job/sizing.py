"""Which pods of a job to make and to delete next. Pure.

What must stay true: never more pods at work than `parallelism`, nor than completions are missing; with
`podReplacementPolicy: Failed` pods that are going count as well; an index has one pod at a time.

Called by `controller`; calls `backoff`, `indexes`, `job_state` and `pod_facts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.backoff import BackoffRecord, seconds_left_of_index
from nodeward.controllers.job.indexes import Indexes
from nodeward.controllers.job.job_state import JobState, has_place
from nodeward.controllers.job.pod_facts import (
    counts_by_index,
    index_of,
    is_indexed,
    is_suspended,
    replaces_only_failed,
)
from nodeward.controllers.pods.ranking import deletion_order, first_to_delete
from nodeward.controllers.pods.state import is_terminating

#: How many pods are made or deleted at most before the informer has to confirm.
BURST: Final = 500


@dataclass(slots=True)
class JobStep:
    """What to do next for a job: deletions, or creations, or a wait; or nothing."""

    delete: Sequence[Pod] = ()
    #: One for each pod to make; None where pods have no index.
    create: list[int | None] = field(default_factory=list)
    #: Pods are missing, but not to be made for so long.
    pause_seconds: float = 0.0


def next_step(state: JobState, backoff: BackoffRecord) -> JobStep:
    wanted = 0 if is_suspended(state.job) else _wanted(state)
    doomed = _doomed(state, max(0, len(state.active) - wanted))
    if doomed or is_suspended(state.job):
        return JobStep(delete=doomed[:BURST])
    going = state.terminating if replaces_only_failed(state.job) else 0
    missing = wanted - going - len(state.active)
    if missing <= 0:
        return JobStep()
    by_index = counts_by_index(state.job)
    pause = 0.0 if by_index else backoff.seconds_left(state.now_ns)
    if pause:
        return JobStep(pause_seconds=pause)
    missing = min(missing, BURST)
    if not is_indexed(state.job):
        return JobStep(create=[None] * missing)
    pending = list(islice(_busy(state).absent(state.job.spec.completions or 0), missing))
    if not by_index:
        return JobStep(create=[*pending])
    pauses = [seconds_left_of_index(state.kept.get(index), state.now_ns) for index in pending]
    ready = [index for index, left in zip(pending, pauses, strict=True) if not left]
    # Unlike upstream, the pauses of other indexes are waited for even while some can be made.
    return JobStep(create=[*ready], pause_seconds=min((left for left in pauses if left), default=0.0))


def _wanted(state: JobState) -> int:
    spec = state.job.spec
    if spec.completions is None:
        # The first success ends it: what runs may finish, and nothing more is started.
        return len(state.active) if state.succeeded else (spec.parallelism or 0)
    return max(0, min(spec.completions - state.succeeded, spec.parallelism or 0))


def _busy(state: JobState) -> Indexes:
    """Return the indexes that need no pod: succeeded, failed, or with an active pod."""
    at_work = [index_of(pod) for pod in state.active]
    if replaces_only_failed(state.job):
        at_work += [index_of(pod) for pod in state.pods if is_terminating(pod)]
    running = Indexes.of(dict.fromkeys(index for index in at_work if index is not None))
    return state.succeeded_indexes | state.failed_indexes | running


def _doomed(state: JobState, at_least: int) -> list[Pod]:
    """Return pods to delete: without an index, all but the best of each index, and as many more as needed."""
    doomed: list[Pod] = []
    left: Sequence[Pod] = state.active
    if is_indexed(state.job):
        order = deletion_order((), state.now_ns)
        best: dict[int | None, Pod] = {}
        for pod in sorted(state.active, key=order, reverse=True):
            index = index_of(pod)
            if has_place(state.job, pod) and index not in best:
                best[index] = pod
            else:
                doomed.append(pod)
        left = list(best.values())
    more = at_least - len(doomed)
    return [*doomed, *first_to_delete(left, more, (), state.now_ns)] if more > 0 else doomed
