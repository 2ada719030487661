"""Jobs that have finished are deleted after the time they ask for (`ttlSecondsAfterFinished`), with their pods.

Keys are jobs. What counts is the time at which the job's condition says that it finished; a job that finished in the
future (clocks differ) waits until then and its time to live after that.

What must stay true: a job is deleted only if the API's own copy, read just before, has expired too: its owner may have
given it more time.

Run by `controllers.runner`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.batch_v1 import Job
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.job.conditions import finish_of, is_finished
from nodeward.machinery.metrics import exponential
from nodeward.machinery.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)

WORKERS: Final = 5


class NoFinishTime(WorldError):
    """A job says that it has finished, but not when."""


class TtlAfterFinishedController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="ttl_jobs_to_delete")
        self._jobs = context.informers.informer(Job)
        self._jobs.add_handler(on_add=self._seen, on_update=lambda _, new: self._seen(new))
        self._delay = context.metrics.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "The time it took to delete the job since it became eligible for deletion",
            bounds=exponential(0.1, 2, 14),
        )

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    def _seen(self, job: Job) -> None:
        if _is_to_go(job):
            self._queue.add(f"{job.metadata.namespace}/{job.metadata.name}")

    async def _handle(self, key: str) -> float | None:
        known = self._jobs.by_key(key)
        if known is None or not _is_to_go(known):
            return None
        left = self._seconds_left(known)
        if left > 0:
            return left
        namespace, _, name = key.partition("/")
        try:
            job = await self._client.get(Job, name, namespace)
            if not _is_to_go(job):
                return None
            left = self._seconds_left(job)
            if left > 0:
                return left
            await self._client.delete(Job, name, namespace, propagation="Foreground", uid=job.metadata.uid)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        self._delay.observe(-left)
        return None

    def _seconds_left(self, job: Job) -> float:
        finished_ns, now_ns = _finished_ns(job), self._clock.now_ns()
        if finished_ns > now_ns:
            name = f"{job.metadata.namespace}/{job.metadata.name}"
            LOG.warning("job %s finished in the future, clocks differ: it is deleted later", name)
        return (finished_ns - now_ns) / SECOND_NS + (job.spec.ttl_seconds_after_finished or 0)


def _is_to_go(job: Job) -> bool:
    """Tell whether the job has finished and has a TTL."""
    return (
        job.metadata.deletion_timestamp is None
        and job.spec.ttl_seconds_after_finished is not None
        and is_finished(job)
    )


def _finished_ns(job: Job) -> int:
    found = finish_of(job)
    if found is not None and found.last_transition_time:
        return parse_rfc3339(found.last_transition_time)
    name = f"{job.metadata.namespace}/{job.metadata.name}"
    raise NoFinishTime(f"unable to find the time when the Job {name} finished")
