"""When a node counts as heard of, and what is written when it does not."""

from __future__ import annotations

from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.node_lifecycle.health import MonitorPeriods, NodeHealth, unknown_conditions
from tests.controllers.node_lifecycle.nodes import CREATED, NOW, node

PERIODS = MonitorPeriods()
WALL = parse_rfc3339(NOW)


def health(ready: str = "True") -> NodeHealth:
    return NodeHealth(node(ready), 0, WALL)


def test_a_node_may_be_silent_for_the_grace_period_and_not_longer() -> None:
    known = health()
    assert not known.is_silent(50 * SECOND_NS, PERIODS)
    assert known.is_silent(50 * SECOND_NS + 1, PERIODS)


def test_a_renewed_lease_is_a_sign_of_life_and_an_old_one_is_not() -> None:
    known = health()
    known.on_lease_renewed("2026-01-01T00:00:10.000000Z", 40 * SECOND_NS)
    assert not known.is_silent(90 * SECOND_NS, PERIODS)
    known.on_lease_renewed("2026-01-01T00:00:10.000000Z", 80 * SECOND_NS)
    known.on_lease_renewed("2026-01-01T00:00:09.000000Z", 85 * SECOND_NS)
    assert known.is_silent(91 * SECOND_NS, PERIODS)


def test_a_moved_heartbeat_is_a_sign_of_life_and_any_other_change_is_not() -> None:
    known, changed = health(), node("True", ("MemoryPressure", "True"), labels={"a": "b"})
    known.on_node_changed(changed, 40 * SECOND_NS)
    assert known.is_silent(51 * SECOND_NS, PERIODS)
    changed.status.conditions[0].last_heartbeat_time = "2026-01-01T00:00:40Z"
    known.on_node_changed(changed, 40 * SECOND_NS)
    assert not known.is_silent(90 * SECOND_NS, PERIODS)


def test_a_node_that_never_reported_has_the_startup_period_from_its_creation() -> None:
    young = node("")
    young.metadata.creation_timestamp = NOW
    known = NodeHealth(young, 100 * SECOND_NS, WALL + 30 * SECOND_NS)
    assert not known.is_silent(130 * SECOND_NS, PERIODS)
    assert known.is_silent(130 * SECOND_NS + 1, PERIODS)


def test_what_this_controller_writes_itself_is_no_sign_of_life() -> None:
    known = health("")
    written = node("Unknown")
    written.status.conditions[0].last_heartbeat_time = CREATED
    known.on_node_changed(written, 500 * SECOND_NS)
    assert known.heard_ns < 0


def test_a_silent_node_loses_what_only_its_kubelet_knows_and_keeps_the_rest() -> None:
    silent = node(
        "True", ("MemoryPressure", "Unknown"), ("NetworkUnavailable", "False"), ("example.com/GPU", "True")
    )
    stopped = {
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": NOW,
    }
    never = {
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": CREATED,
        "lastTransitionTime": NOW,
    }
    assert unknown_conditions(silent, NOW) == [
        {"type": "Ready", **stopped},
        {"type": "DiskPressure", **never},
        {"type": "PIDPressure", **never},
    ]
    assert unknown_conditions(node("Unknown"), NOW) == []
