"""The cron job controller: starts a job when its moment has come, and tidies up after those that ended.

Keys are "namespace/name". A look that finds nothing to do says when the next moment comes.

What must stay true: the name of a job is its moment, so that no moment gets two jobs, whoever is killed when; a look
never begins from a copy older than what this controller wrote itself.

Run by `controllers.runner`; calls `due` and `jobs`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from typing import Any, Final

import msgspec

from nodeward.api.batch_v1 import CronJob, CronJobStatus, Job
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.cronjob.due import Due, due
from nodeward.controllers.cronjob.jobs import SCHEDULED, end_of, job_name, new_job, surplus, without
from nodeward.controllers.own_writes import OwnWrites
from nodeward.controllers.pods.controller_ref_manager import controller_of, controller_reference
from nodeward.controllers.pods.creation_backoff import CreationBackoff
from nodeward.controllers.pods.index import OwnerIndex
from nodeward.controllers.pods.owners import key_of
from nodeward.machinery.recorder import NORMAL, WARNING, reference
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.cron import parse, zone_of
from nodeward.rules.cron_grammar import CronError

_log: Final = logging.getLogger(__name__)

WORKERS: Final = 5
#: Clocks differ a little: a moment is looked at when it has surely come.
PADDING_SECONDS: Final = 0.1
STALE_SECONDS: Final = 0.05


class CronJobController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._kind = context.client.kind_of(CronJob)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="cronjob")
        self._creation_backoff: CreationBackoff[str] = CreationBackoff(context.clock)
        self._written = OwnWrites()
        self._crons = context.informers.informer(CronJob)
        self._jobs = OwnerIndex(context.informers, Job)
        #: By uid: when the schedule was changed last, while we looked.
        self._changed: dict[str, int] = {}
        self._crons.add_handler(self._seen, self._cron_changed, self._gone)
        self._jobs.informer.add_handler(self._job_seen, self._job_changed, self._job_seen)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    # -- who needs a look -----------------------------------------------------------------------------------------

    def _seen(self, cron: CronJob) -> None:
        self._queue.add(key_of(cron))

    def _cron_changed(self, old: CronJob, new: CronJob) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._gone(old)
        elif (old.spec.schedule, old.spec.time_zone) != (new.spec.schedule, new.spec.time_zone):
            # What the new schedule would have started earlier was never asked for.
            self._changed[new.metadata.uid] = self._clock.now_ns() // SECOND_NS
        self._seen(new)

    def _gone(self, cron: CronJob) -> None:
        self._changed.pop(cron.metadata.uid, None)
        self._creation_backoff.forget(key_of(cron))
        self._written.forget(cron.metadata.uid)

    def _job_seen(self, job: KubeObject) -> None:
        owner = controller_of(job)
        if owner is not None and owner.kind == self._kind.name:
            cron = self._crons.get(owner.name, job.metadata.namespace)
            if cron is not None and cron.metadata.uid == owner.uid:
                self._seen(cron)

    def _job_changed(self, old: Job, new: Job) -> None:
        if end_of(old) != end_of(new) or old.metadata.owner_references != new.metadata.owner_references:
            self._job_seen(old)
            self._job_seen(new)

    # -- a look ---------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        cron = self._crons.by_key(key)
        if cron is None:
            return None
        if self._written.is_behind(cron):
            return STALE_SECONDS
        status = msgspec.structs.replace(cron.status, active=[*cron.status.active])
        jobs = self._jobs.controlled_by(cron.metadata.uid)
        await self._tidy_up(cron, status, jobs)
        await self._follow(cron, status, jobs)
        try:
            return await self._start_if_due(key, cron, status)
        finally:
            if status != cron.status:
                await self._write(cron, status)

    async def _write(self, cron: CronJob, status: CronJobStatus) -> None:
        written = msgspec.structs.replace(cron, status=status)
        try:
            self._written.note(await self._client.update(written, subresource="status"))
        except ApiError as error:
            if error.reason == "Conflict":
                # Somebody else wrote it: their version comes soon, and with it another look.
                self._queue.add_after(key_of(cron), STALE_SECONDS)
            elif error.code != 404:
                raise

    async def _tidy_up(self, cron: CronJob, status: CronJobStatus, jobs: Sequence[Job]) -> None:
        """Delete finished jobs beyond the history limits."""
        limits = (
            ("Complete", cron.spec.successful_jobs_history_limit),
            ("Failed", cron.spec.failed_jobs_history_limit),
        )
        for end, limit in limits:
            for job in surplus(jobs, end, limit):
                if job.metadata.deletion_timestamp is None:
                    await self._delete(cron, status, job)

    async def _follow(self, cron: CronJob, status: CronJobStatus, jobs: Sequence[Job]) -> None:
        """Bring the status up to date: the active jobs, and the last success."""
        known = [each.uid for each in status.active]
        for job in jobs:
            uid, end = job.metadata.uid, end_of(job)
            if not end:
                if uid not in known:
                    self._take_note(cron, status, job)
                continue
            if uid in known:
                status.active = without(status.active, uid)
                text = f"Saw completed job: {job.metadata.name}, condition: {end}"
                self._recorder.event(cron, NORMAL, "SawCompletedJob", text)
            done = job.status.completion_time
            if end == "Complete" and done and done > (status.last_successful_time or ""):
                status.last_successful_time = done
        uids = [job.metadata.uid for job in jobs]
        for each in status.active:
            if each.uid not in uids and not await self._exists(each.name, each.namespace, each.uid):
                self._recorder.event(cron, NORMAL, "MissingJob", f"Active job went missing: {each.name}")
                status.active = without(status.active, each.uid)

    def _take_note(self, cron: CronJob, status: CronJobStatus, job: Job) -> None:
        """Report an active job that the status does not name: made just before a crash, or by somebody else."""
        if job.metadata.deletion_timestamp is not None:
            return
        if SCHEDULED in job.metadata.annotations:
            # Unlike upstream, which forgets it, and may then start another beside it where that is forbidden.
            status.active = [*status.active, reference(job, self._client)]
            return
        text = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
        self._recorder.event(cron, WARNING, "UnexpectedJob", text)

    async def _exists(self, name: str, namespace: str, uid: str) -> bool:
        """Ask the API itself: an informer may not have heard of a job made a moment ago."""
        try:
            return (await self._client.get(Job, name, namespace)).metadata.uid == uid
        except ApiError as error:
            if error.code != 404:
                raise
            return False

    async def _start_if_due(self, key: str, cron: CronJob, status: CronJobStatus) -> float | None:
        if cron.metadata.deletion_timestamp is not None:
            return None
        zone = zone_of(cron.spec.time_zone)
        if zone is None:
            text = f'invalid timeZone: "{cron.spec.time_zone}": unknown time zone {cron.spec.time_zone}'
            self._recorder.event(cron, WARNING, "UnknownTimeZone", text)
            return None
        if cron.spec.suspend:
            return None
        try:
            schedule = parse(cron.spec.schedule, zone)
        except CronError as error:
            text = f'unparseable schedule: "{cron.spec.schedule}" : {error}'
            self._recorder.event(cron, WARNING, "UnparseableSchedule", text)
            return None
        now_ns = self._clock.now_ns()
        found = due(cron, schedule, now_ns // SECOND_NS, not_before=self._changed.get(cron.metadata.uid, 0))
        if found.next is None:
            text = f"invalid schedule: {cron.spec.schedule} : it never comes"
            self._recorder.event(cron, WARNING, "InvalidSchedule", text)
            return None
        wait = found.next - now_ns / SECOND_NS + PADDING_SECONDS
        if found.moment is None:
            return wait
        held = self._creation_backoff.seconds_left(key, cron.metadata)
        if not held and await self._may_start(cron, status, found, found.moment):
            held = await self._start(key, cron, status, found.moment, zone)
        return min(wait, held) if held else wait

    async def _may_start(self, cron: CronJob, status: CronJobStatus, found: Due, moment: int) -> bool:
        if found.missed_many:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._recorder.event(cron, WARNING, "TooManyMissedTimes", text)
        name = job_name(cron, moment)
        if any(each.name == name for each in status.active):
            return False
        deadline = cron.spec.starting_deadline_seconds
        if deadline is not None and moment + deadline < self._clock.now_ns() // SECOND_NS:
            when = format_datetime(datetime.fromtimestamp(moment, UTC))
            self._recorder.event(
                cron, WARNING, "MissSchedule", f"Missed scheduled time to start a job: {when}"
            )
            return False
        if cron.spec.concurrency_policy == "Forbid" and status.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._recorder.event(cron, NORMAL, "JobAlreadyActive", text)
            return False
        if cron.spec.concurrency_policy == "Replace":
            for each in status.active:
                job = await self._client.get(Job, each.name, each.namespace)
                await self._delete(cron, status, job)
        return True

    async def _start(
        self, key: str, cron: CronJob, status: CronJobStatus, moment: int, zone: tzinfo
    ) -> float:
        """Make the job of this moment; how long to wait if that was refused."""
        wanted = new_job(cron, controller_reference(cron, self._kind), moment, zone)
        name, namespace = wanted.metadata.name, wanted.metadata.namespace
        try:
            job = await self._client.create(wanted)
        except ApiError as error:
            if refused_for_namespace(error):
                return 0.0
            if error.reason != "AlreadyExists":
                # Unlike upstream: without the moment in it, so that repeats are one event.
                text = str(error).replace(name, f"{cron.metadata.name}-")
                self._recorder.event(cron, WARNING, "FailedCreate", f"Error creating job: {text}")
                _log.warning("CronJob %s: %s", key, error)
                return self._creation_backoff.refused(key, cron.metadata)
            job = await self._client.get(Job, name, namespace)
            owner = controller_of(job)
            if owner is None or owner.uid != cron.metadata.uid:
                # Somebody else's, who took the name.
                return 0.0
        else:
            self._recorder.event(cron, NORMAL, "SuccessfulCreate", f"Created job {name}")
        self._creation_backoff.forget(key)
        if not end_of(job):
            status.active = [*without(status.active, job.metadata.uid), reference(job, self._client)]
        status.last_schedule_time = rfc3339(moment * SECOND_NS)
        return 0.0

    async def _delete(self, cron: CronJob, status: CronJobStatus, job: Job) -> None:
        meta = job.metadata
        try:
            await self._client.delete(Job, meta.name, meta.namespace, uid=meta.uid, propagation="Background")
        except ApiError as error:
            if error.code != 404:
                self._recorder.event(cron, WARNING, "FailedDelete", f"Deleted job: {error}")
                raise
        status.active = without(status.active, meta.uid)
        self._recorder.event(cron, NORMAL, "SuccessfulDelete", f"Deleted job {meta.name}")
