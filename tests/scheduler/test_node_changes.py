"""Which updates of a node mean something, and to whom."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.events import Action
from nodeward.scheduler.node_changes import node_changes
from tests.scheduler.cache.objects import new_table, node, pod
from tests.scheduler.plugins import profile

READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}


def shipped_table() -> NodeTable:
    """A table of which the shipped plugins have asked for all they need."""
    table = new_table()
    table.upsert_node(node("other"))
    PodClasses(table, profile.plugins(), profile.WEIGHTS).choose(pod("p"))
    return table


@pytest.mark.parametrize(
    ("change", "action"),
    [
        ({"labels": {"zone": "a"}}, Action.UPDATE_NODE_LABEL),
        ({"allocatable": {"cpu": "9"}}, Action.UPDATE_NODE_ALLOCATABLE),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, Action.UPDATE_NODE_TAINT),
        ({"readinessGates": [{"conditionType": "net"}]}, Action.UPDATE_NODE_READINESS_GATE),
        ({"status": {"conditions": [READY | {"status": "False"}]}}, Action.UPDATE_NODE_CONDITION),
        ({"status": {"conditions": [READY | {"reason": "Other"}]}}, Action.UPDATE_NODE_CONDITION),
        ({"status": {"conditions": [READY], "declaredFeatures": ["F"]}}, Action.UPDATE_NODE_DECLARED_FEATURE),
    ],
    ids=str,
)
def test_each_part_of_a_node_has_its_own_event(change: dict[str, Any], action: Action) -> None:
    old = node("n", status={"conditions": [READY]})
    new = node("n", **{"status": {"conditions": [READY]}, **change})
    assert [event.action for event in node_changes(old, new)] == [action]


def test_a_heartbeat_means_nothing() -> None:
    old = node("n", status={"conditions": [READY]})
    new = node("n", status={"conditions": [READY | {"lastHeartbeatTime": "2026-01-01T00:00:10Z"}]})
    assert node_changes(old, new) == []
    assert not shipped_table().have_changed(old, new)


def test_closing_a_node_wakes_nobody_but_changes_its_row_and_opening_it_wakes() -> None:
    opened, closed = node("n"), node("n", unschedulable=True)
    assert node_changes(opened, closed) == []
    assert shipped_table().have_changed(opened, closed)
    assert [event.action for event in node_changes(closed, opened)] == [Action.UPDATE_NODE_TAINT]


def test_an_image_that_was_pulled_changes_the_row_only() -> None:
    old, new = node("n"), node("n", status={"images": [{"names": ["web:1"], "sizeBytes": 5}]})
    assert node_changes(old, new) == []
    assert shipped_table().have_changed(old, new)
