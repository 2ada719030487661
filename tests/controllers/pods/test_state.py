"""Ready, available, over: what a status means."""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.pod_status import PodCondition, PodStatus
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.pods.state import (
    is_active,
    is_available,
    is_ready,
    is_terminating,
    next_available_seconds,
)
from nodeward.machinery.clock import VIRTUAL_START_NS as NOW


def ready(seconds_ago: int) -> Pod:
    since = rfc3339(NOW - seconds_ago * SECOND_NS)
    return Pod(
        status=PodStatus(
            phase="Running",
            conditions=[PodCondition(type="Ready", status="True", last_transition_time=since)],
        )
    )


def of(phase: str, *, deleted: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(deletion_timestamp=rfc3339(NOW) if deleted else None),
        status=PodStatus(phase=phase),
    )


def test_a_pod_counts_until_it_is_deleted_or_over() -> None:
    assert is_active(of("Pending"))
    assert is_active(of("Running"))
    assert not is_active(of("Running", deleted=True))
    assert not is_active(of("Succeeded"))
    assert is_terminal(of("Failed"))


def test_a_pod_terminates_from_its_deletion_until_it_is_over() -> None:
    assert is_terminating(of("Running", deleted=True))
    assert not is_terminating(of("Running"))
    assert not is_terminating(of("Failed", deleted=True))


def test_a_pod_without_the_condition_is_not_ready() -> None:
    assert not is_ready(of("Running"))
    assert is_ready(ready(0))


def test_a_ready_pod_is_available_once_it_has_been_ready_for_long_enough() -> None:
    assert is_available(ready(0), 0, NOW)
    assert not is_available(ready(9), 10, NOW)
    assert is_available(ready(10), 10, NOW)
    assert not is_available(of("Running"), 0, NOW)


def test_the_next_to_become_available_is_the_one_that_waits_least() -> None:
    pods = [ready(3), ready(7), ready(20), of("Running")]
    assert next_available_seconds(pods, 10, NOW) == 3.0
    assert next_available_seconds(pods, 0, NOW) is None
    assert next_available_seconds([ready(20)], 10, NOW) is None
