"""Pauses after failed pods: 10 s, 20 s, 40 s, ... up to 10 minutes, until one succeeds.

What must stay true: a failure is noted only once the status that counts it is stored, so that a look that has to be
taken again does not make the pause longer.

Called by `controller` and `sizing`; calls `pod_facts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.controllers.job.pod_facts import finished_ns, ignored_index_failures, index_failures
from nodeward.machinery.backoff import Curve

CURVE: Final = Curve(initial=10.0, cap=600.0)


@dataclass(frozen=True, slots=True)
class BackoffRecord:
    """Failures since the last success, and when the last was."""

    failures: int = 0
    last_ns: int = 0

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> BackoffRecord:
        """Return the record with these pods, which have ended since, taken into account."""
        if not succeeded:
            if not failed:
                return self
            return BackoffRecord(self.failures + len(failed), max(map(finished_ns, failed)))
        success_ns = max(map(finished_ns, succeeded))
        later = [ended for ended in map(finished_ns, failed) if ended > success_ns]
        return BackoffRecord(len(later), max(later)) if later else BackoffRecord()

    def seconds_left(self, now_ns: int) -> float:
        """Return how long not to make pods yet."""
        return _seconds_left(self.failures, self.last_ns, now_ns)


def seconds_left_of_index(last_failed: Pod | None, now_ns: int) -> float:
    """Return how long not to make a pod for an index yet, whose last pod this was."""
    if last_failed is None:
        return 0.0
    failures = index_failures(last_failed) + ignored_index_failures(last_failed) + 1
    return _seconds_left(failures, finished_ns(last_failed), now_ns)


def _seconds_left(failures: int, last_ns: int, now_ns: int) -> float:
    if not failures:
        return 0.0
    return max(0.0, CURVE.wait(failures - 1) - (now_ns - last_ns) / SECOND_NS)
