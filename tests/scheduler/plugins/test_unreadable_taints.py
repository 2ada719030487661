"""Taints that are no numbers are logged once per node and value, in bounded memory."""

from __future__ import annotations

import pytest

from nodeward.scheduler.plugins.unreadable_taints import UnreadableTaints
from tests.scheduler.cache.objects import new_table, node, pod

ABOVE = pod("p", tolerations=[{"key": "sla", "operator": "Gt", "value": "900"}])


def report(log: UnreadableTaints, caplog: pytest.LogCaptureFixture, **values: str) -> list[str]:
    """The nodes that are logged in a cluster of these, by the values of their taints."""
    table = new_table()
    for name, value in values.items():
        table.upsert_node(node(name, taints=[{"key": "sla", "value": value, "effect": "NoSchedule"}]))
    caplog.clear()
    log.report(ABOVE, table, table.rows())
    return [each.getMessage().split(":")[0] for each in caplog.records]


def test_memory_is_bounded_by_forgetting_nodes_that_are_gone(caplog: pytest.LogCaptureFixture) -> None:
    log = UnreadableTaints(most=2)
    assert report(log, caplog, a="high", b="low") == ["node a", "node b"]
    assert report(log, caplog, b="low", c="high") == ["node c"]
    assert len(log) == 2


def test_no_more_values_than_fit_are_logged_so_that_none_is_logged_again_and_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = UnreadableTaints(most=2)
    assert report(log, caplog, a="high", b="high", c="high") == ["node a", "node b"]
    assert report(log, caplog, a="high", b="high", c="high") == []
    assert len(log) == 2


def test_other_keys_and_numbers_are_nobodys_mistake(caplog: pytest.LogCaptureFixture) -> None:
    table = new_table()
    table.upsert_node(node("n", taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}]))
    table.upsert_node(node("m", taints=[{"key": "sla", "value": "100", "effect": "NoSchedule"}]))
    UnreadableTaints().report(ABOVE, table, table.rows())
    assert not caplog.records
