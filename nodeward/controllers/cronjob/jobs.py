"""The jobs of a cron job: how they are made, which are still at work, which of the finished go. Pure.

Called by `controller`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Final

from nodeward.api.batch_v1 import CronJob, Job
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.controllers.job.conditions import finish_of

SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_name(cron: CronJob, moment: int) -> str:
    """Return the one name for this moment, so that the same run cannot be started twice."""
    return f"{cron.metadata.name}-{moment // 60}"


def new_job(cron: CronJob, reference: OwnerReference, moment: int, zone: tzinfo) -> Job:
    template = cron.spec.job_template
    shown = datetime.fromtimestamp(moment, zone).isoformat().replace("+00:00", "Z")
    return Job(
        metadata=ObjectMeta(
            name=job_name(cron, moment),
            namespace=cron.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={**template.metadata.annotations, SCHEDULED: shown},
            owner_references=[reference],
        ),
        spec=template.spec,
    )


def end_of(job: Job) -> str:
    """Return `Complete` or `Failed`; empty while the job is at work."""
    found = finish_of(job)
    return "" if found is None else found.type


def surplus(jobs: Iterable[Job], end: str, limit: int | None) -> Sequence[Job]:
    """Return the oldest of the jobs that ended with `end`, beyond the limit."""
    ended = [job for job in jobs if end_of(job) == end]
    if limit is None or len(ended) <= limit:
        return ()
    # Those that were never started come last.
    ended.sort(key=lambda job: (job.status.start_time or "~", job.metadata.name))
    return ended[: len(ended) - limit]


def without(active: Iterable[ObjectReference], uid: str) -> list[ObjectReference]:
    return [each for each in active if each.uid != uid]
