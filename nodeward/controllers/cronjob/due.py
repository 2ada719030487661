"""Whether a cron job should start a job now. Pure: a cron job and the time in, an answer out.

Counted from the last start, or from its creation. Of several moments that were missed only the last is made up for;
moments longer ago than `startingDeadlineSeconds` are gone.

Called by `controller`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.api.batch_v1 import CronJob
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.rules.cron import IntervalSchedule, WallClockSchedule

#: More than so many missed: something is wrong with a clock, or with the deadline.
MANY: Final = 100


@dataclass(frozen=True, slots=True)
class Due:
    """`moment`: the last one that has come and not been dealt with, in seconds since 1970."""

    moment: int | None
    #: When the next one comes; None: never.
    next: int | None
    missed_many: bool = False


def due(
    cron: CronJob, schedule: WallClockSchedule | IntervalSchedule, now: int, *, not_before: int = 0
) -> Due:
    """`not_before`: moments until then do not count, since the schedule was another."""
    begin = max(counted_from(cron), not_before)
    after = begin
    if cron.spec.starting_deadline_seconds is not None:
        after = max(begin, now - cron.spec.starting_deadline_seconds)
        if isinstance(schedule, IntervalSchedule):
            # The distances are measured from the last start, whatever the deadline.
            after -= (after - begin) % schedule.seconds
    moment = schedule.latest(after, now)
    many = moment is not None and schedule.count(after, now, MANY + 1) > MANY
    return Due(moment, schedule.following(begin, now), many)


def counted_from(cron: CronJob) -> int:
    text = cron.status.last_schedule_time or cron.metadata.creation_timestamp
    return parse_rfc3339(text) // SECOND_NS if text else 0
