"""The job controller: looks at a job and its pods, takes one step, counts ended pods.

Keys are "namespace/name". A sync makes or deletes pods, then stores what has ended (`accounting`), and only when that
is stored lets the ended pods go.

What must stay true: every status is written on top of the one it was worked out from, so that nothing is counted twice
by two controllers; no sync begins from a job older than what this controller wrote itself; killed at any point, the
counts come out the same.

Run by `controllers.runner`; the package's docstring lists what it calls.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.batch_v1 import Job, JobCondition, JobStatus
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.job import conditions
from nodeward.controllers.job.accounting import enter, is_settled, own_copy, settle
from nodeward.controllers.job.backoff import BackoffRecord
from nodeward.controllers.job.ending import completed, decided, seconds_to_deadline
from nodeward.controllers.job.job_state import JobState, look_at
from nodeward.controllers.job.orphans import Orphans, is_managed_elsewhere
from nodeward.controllers.job.pod_facts import TRACKING, is_suspended
from nodeward.controllers.job.pod_writes import PodWrites
from nodeward.controllers.job.sizing import next_step
from nodeward.controllers.own_writes import OwnWrites
from nodeward.controllers.pods.control import CREATE_FAILED
from nodeward.controllers.pods.controller_ref_manager import ControllerRefManager, controller_of
from nodeward.controllers.pods.failure import with_failure
from nodeward.controllers.pods.owners import OwnerQueue
from nodeward.controllers.pods.state import is_ready
from nodeward.machinery.recorder import NORMAL, WARNING
from nodeward.rules.selectors import LabelRequirements, from_label_selector

_log: Final = logging.getLogger(__name__)

WORKERS: Final = 5
#: Somebody else wrote the job, or our own write has not come back yet.
STALE_SECONDS: Final = 0.05
_RESETS_START_GATE: Final = "MutableSchedulingDirectivesForSuspendedJobs"


@dataclass(slots=True)
class _Observed:
    """What one sync has found, and what the status is going to be."""

    key: str
    #: As it is stored.
    job: Job
    state: JobState
    status: JobStatus
    backoff: BackoffRecord
    #: The job is decided, and what ran has been told to end.
    ending: JobCondition | None = None
    #: Told once the status is stored: type, reason, message.
    news: tuple[str, str, str] | None = None
    wait_seconds: float = 0.0


class JobController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._resets_start = context.gates.enabled(_RESETS_START_GATE)
        self._ref_manager = ControllerRefManager(context.client, Job, Pod, finalizers=(TRACKING,))
        self._owners = OwnerQueue(
            context,
            Job,
            "job",
            selector_of=lambda job: from_label_selector(job.spec.selector),
            size_of=lambda job: job.spec.parallelism or 0,
            forget=self._forget,
        )
        self._expectations = self._owners.expectations
        self._creation_backoff = self._owners.creation_backoff
        self._writes = PodWrites(context, self._owners.pods.informer, self._expectations)
        self._orphans = Orphans(context, self._owners.owners, self._owners.pods, self._writes)
        self._written = OwnWrites()
        #: By uid: failures so far.
        self._backoffs: dict[str, BackoffRecord] = {}

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._owners.queue, self._handle, workers=WORKERS), self._orphans.work())

    def _forget(self, job: Job) -> None:
        self._backoffs.pop(job.metadata.uid, None)
        self._written.forget(job.metadata.uid)

    # -- one sync -----------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        job = self._owners.owners.by_key(key)
        if job is None or is_managed_elsewhere(job):
            return None
        if conditions.is_finished(job):
            self._forget(job)
            return None
        selector = from_label_selector(job.spec.selector)
        if selector is None:
            return None
        if self._written.is_behind(job):
            return STALE_SECONDS
        # Asked before the pods are: what is seen to happen from here on is not in the list.
        waiting = self._expectations.seconds_left(key)
        observed = self._begin(key, job, await self._claim(job, selector))
        await self._act(observed, is_waiting=waiting > 0)
        try:
            await self._keep_books(observed)
        except ApiError as error:
            if error.reason == "Conflict":
                return STALE_SECONDS
            if error.code != 404:
                raise
        deadline = seconds_to_deadline(observed.job, self._clock.now_ns())
        # What was just made or deleted is waited for as well: its end wakes this key, or the time limit does.
        waits = (self._expectations.seconds_left(key), observed.wait_seconds, max(deadline or 0.0, 0.0))
        return min((wait for wait in waits if wait), default=None)

    async def _claim(self, job: Job, selector: LabelRequirements) -> list[Pod]:
        pods = await self._ref_manager.claim(job, selector, self._owners.candidates(job))
        return [pod if controller_of(pod) is not None else _adopted(pod) for pod in pods]

    def _begin(self, key: str, job: Job, pods: Sequence[Pod]) -> _Observed:
        now_ns = self._clock.now_ns()
        status = own_copy(job.status)
        if status.start_time is None and not is_suspended(job):
            status.start_time = rfc3339(now_ns)
        seen = msgspec.structs.replace(job, status=status)
        state = look_at(seen, pods, self._writes.released, now_ns)
        known = self._backoffs.get(job.metadata.uid, BackoffRecord())
        backoff = known.after(state.new_succeeded, state.new_failed)
        return _Observed(key, job, state, own_copy(status), backoff)

    async def _act(self, observed: _Observed, *, is_waiting: bool) -> None:
        """Make and delete pods; what runs then is told in the status."""
        state, status = observed.state, observed.status
        status.active = len(state.active)
        status.ready = sum(map(is_ready, state.active))
        status.terminating = state.terminating
        if is_waiting:
            return
        ending = decided(state)
        if ending is not None:
            if await self._delete(observed, state.active, counts=True):
                observed.ending = ending
        elif state.job.metadata.deletion_timestamp is None:
            await self._resize(observed)
            observed.ending = completed(state, status.active)
            if observed.ending is None:
                self._note_suspension(observed)
        else:
            observed.ending = completed(state, status.active)

    async def _resize(self, observed: _Observed) -> None:
        state, job = observed.state, observed.state.job
        step = next_step(state, observed.backoff)
        observed.wait_seconds = step.pause_seconds
        failure: str | None = None
        if step.delete and not await self._delete(observed, step.delete, counts=False):
            return
        if step.create:
            held = self._creation_backoff.seconds_left(observed.key, job.metadata)
            if held:
                observed.wait_seconds = held
                return
            outcome = await self._writes.create(observed.key, job, step.create, state.kept)
            observed.status.active += outcome.done
            if outcome.error is not None and not (
                isinstance(outcome.error, ApiError) and refused_for_namespace(outcome.error)
            ):
                observed.wait_seconds = self._creation_backoff.refused(observed.key, job.metadata)
                failure = str(outcome.error)
                _log.warning("Job %s: %s", observed.key, failure)
        if failure is None:
            self._creation_backoff.forget(observed.key)
        status = observed.status
        status.conditions = with_failure(
            status.conditions, JobCondition, CREATE_FAILED, failure, state.now_ns
        )

    async def _delete(self, observed: _Observed, pods: Sequence[Pod], *, counts: bool) -> bool:
        """Tell whether all of them are on their way out."""
        if not pods:
            return True
        failures = await self._writes.delete(observed.key, observed.state.job, pods, counts=counts)
        if failures:
            observed.wait_seconds = self._creation_backoff.refused(observed.key, observed.state.job.metadata)
            _log.warning("Job %s: %s", observed.key, failures[0])
            return False
        status = observed.status
        status.active -= len(pods)
        status.ready = (status.ready or 0) - sum(map(is_ready, pods))
        status.terminating = (status.terminating or 0) + len(pods)
        return True

    def _note_suspension(self, observed: _Observed) -> None:
        now_ns, status = observed.state.now_ns, observed.status
        if is_suspended(observed.state.job):
            made = conditions.condition(conditions.SUSPENDED, "JobSuspended", "Job suspended", now_ns)
            if conditions.put(status, made):
                observed.news = (NORMAL, "Suspended", "Job suspended")
                if self._resets_start:
                    status.start_time = None
            return
        made = conditions.condition(conditions.SUSPENDED, "JobResumed", "Job resumed", now_ns, "False")
        if conditions.put(status, made):
            observed.news = (NORMAL, "Resumed", "Job resumed")
            # The deadline is for the time a job runs at a stretch.
            status.start_time = rfc3339(now_ns)

    # -- the books ------------------------------------------------------------------------------------------------

    async def _keep_books(self, observed: _Observed) -> None:
        state, ending = observed.state, observed.ending
        tracked = {pod.metadata.uid: None for pod in state.tracked}
        settle(observed.status, tracked)
        entries = enter(state, observed.status, ending)
        if ending is not None:
            conditions.put(observed.status, ending)
        await self._store(observed)
        self._backoffs[observed.job.metadata.uid] = observed.backoff
        failed = await self._writes.release(entries.release)
        for pod in entries.release:
            if pod.metadata.uid not in failed:
                tracked.pop(pod.metadata.uid, None)
        settle(observed.status, tracked)
        is_done = not entries.is_full and not failed and is_settled(observed.status)
        if ending is not None and is_done and not observed.status.terminating:
            self._finish(observed, ending)
        await self._store(observed)
        for error in failed.values():
            raise error

    def _finish(self, observed: _Observed, ending: JobCondition) -> None:
        final = conditions.FINAL[ending.type]
        now_ns = self._clock.now_ns()
        conditions.put(observed.status, conditions.condition(final, ending.reason, ending.message, now_ns))
        if final == conditions.FAILED:
            observed.news = (WARNING, ending.reason, ending.message)
            return
        observed.status.completion_time = rfc3339(now_ns)
        observed.news = (NORMAL, "Completed", "Job completed")
        wanted = observed.state.job.spec.completions
        if wanted is not None and observed.status.succeeded > wanted:
            text = "Too many succeeded pods running after completion count reached"
            self._recorder.event(observed.job, WARNING, "TooManySucceededPods", text)

    async def _store(self, observed: _Observed) -> None:
        """Write the status, on top of the one it is based on, if it says anything new."""
        if observed.status != observed.job.status:
            job = msgspec.structs.replace(observed.job, status=observed.status)
            observed.job = await self._client.update(job, subresource="status")
            observed.status = own_copy(observed.job.status)
            self._written.note(observed.job)
        if observed.news is not None:
            self._recorder.event(observed.job, *observed.news)
            observed.news = None


def _adopted(pod: Pod) -> Pod:
    """Return the pod as it is since it was adopted a moment ago."""
    if TRACKING in pod.metadata.finalizers:
        return pod
    meta = msgspec.structs.replace(pod.metadata, finalizers=[*pod.metadata.finalizers, TRACKING])
    return msgspec.structs.replace(pod, metadata=meta)
