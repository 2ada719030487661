"""What declared features cost the scheduler, counted in calls: no load changes those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.features import FRAMEWORK, Framework, Gates, PodInfo, Version
from nodeward.machinery.clock import VirtualClock
from nodeward.scheduler.engine_factory import alone
from nodeward.scheduler.framework.pod import PodView
from tests.features.declared.objects import feature
from tests.keps.effort import calls
from tests.keps.ledger import statement
from tests.keps.test_kep5328_scheduler import declaring
from tests.scheduler.running import node, pod

NUMERIC = "TaintTolerationComparisonOperators=true"


def decision(
    count: int,
    make: Callable[[str], Pod],
    gates: str = NUMERIC,
    features: Framework = FRAMEWORK,
    **parts: Any,
) -> list[str]:
    """The functions that run to place one more pod on one of `count` nodes, the second of its kind."""
    clock = VirtualClock()
    engine = alone(Gates.of("1.37", gates), Version.parse("1.37"), clock, features=features)
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
    """With a hundred registered features, which take two words a node, all declared and a few of them needed."""
    names = [f"Feature{number:02}" for number in range(100)]
    library = Framework([feature(name, scheduling_rule=_is_needed(name)) for name in names])
    assert library.table.words == 2
    every = declaring(*names)
    few = decision(500, needing, features=library, status=every)
    many = decision(5000, needing, features=library, status=every)
    assert len(many) <= len(few) * 1.1
    plain = decision(5000, pod, features=library, status=every)
    assert len(many) <= len(plain) + 10, "nor does needing a feature"


def _is_needed(name: str) -> Callable[[PodInfo], bool]:
    """Every tenth feature, from the third on, is needed by pods on their node's network."""
    return lambda info: info.spec.host_network and name.endswith("3")


def needing(name: str) -> Pod:
    return pod(name, hostNetwork=True)


@statement("5328-D32", part="scheduler")
def test_a_node_that_lacks_one_of_a_hundred_registered_features_is_filtered_whichever_it_is() -> None:
    names = [f"Feature{number:02}" for number in range(100)]
    library = Framework([feature(name, scheduling_rule=_is_needed(name)) for name in names])
    clock = VirtualClock()
    for lacking in ("Feature03", "Feature63", "Feature93"):
        engine = alone(Gates.of("1.37"), Version.parse("1.37"), clock, features=library)
        for number in range(50):
            there = [name for name in names if name != lacking or number == 42]
            engine.table.upsert_node(node(f"n{number}", status=declaring(*there)))
        fitting = engine.profiles["default-scheduler"].classes.fitting(PodView(needing("p")))
        assert [engine.table.name_of(row) for row in fitting.tolist()] == ["n42"]
