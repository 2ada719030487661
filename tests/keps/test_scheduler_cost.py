"""What declared features and numeric tolerations cost the scheduler, counted in calls: no load changes those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.features import Gates, Version
from nodeward.machinery.clock import VirtualClock
from nodeward.scheduler.building import alone
from nodeward.scheduler.framework.pod import PodView
from tests.keps.ledger import statement
from tests.keps.test_kep5328_scheduler import FEATURE, declaring, needy
from tests.keps.test_kep5471_matching import calls
from tests.scheduler.running import node, pod

NUMERIC = "TaintTolerationComparisonOperators=true"


def decision(count: int, make: Callable[[str], Pod], gates: str = NUMERIC, **parts: Any) -> list[str]:
    """The functions that run to place one more pod on one of `count` nodes, the second of its kind."""
    clock = VirtualClock()
    engine = alone(Gates.of("1.37", gates), Version.parse("1.37"), clock)
    for number in range(count):
        engine.table.upsert_node(node(f"n{number}", **parts))
    for name in ("first", "second"):
        made = make(name)
        made.metadata.uid = name
        made.spec.scheduler_name = "default-scheduler"
        engine.queue.add(PodView(made), clock.monotonic_ns())
    assert engine.next() is not None
    seen = calls(lambda: engine.next())
    assert engine.table.sizes()["assumed_pods"] == 2
    return seen


@statement("5328-D32", part="scheduler")
def test_ten_times_the_nodes_cost_no_more_calls() -> None:
    features = declaring(*sorted({FEATURE, *(f"Feature{number:02}" for number in range(99))}))
    few = decision(500, needy, status=features)
    many = decision(5000, needy, status=features)
    assert len(many) <= len(few) * 1.1
    assert len(many) <= len(decision(5000, pod, status=features)) + 10, "nor does needing a feature"


@statement("5471-T38", part="scheduler")
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_number_costs_what_equality_costs_and_an_unused_gate_nothing(effect: str) -> None:
    taints = [{"key": "example.com/sla", "value": "950", "effect": effect}]

    def tolerating(operator: str, value: str) -> Callable[[str], Pod]:
        toleration = {"key": "example.com/sla", "operator": operator, "value": value, "effect": effect}
        return lambda name: pod(name, tolerations=[toleration])

    equal = decision(1000, tolerating("Equal", "950"), taints=taints)
    greater = decision(1000, tolerating("Gt", "900"), taints=taints)
    assert greater == equal
    off = decision(
        1000, tolerating("Equal", "950"), "TaintTolerationComparisonOperators=false", taints=taints
    )
    assert off == equal
