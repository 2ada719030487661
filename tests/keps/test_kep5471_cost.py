"""What numeric tolerations cost the scheduler, counted instead of timed (KEP-5471); `make bench` measures the same.

Counted is how often a text is read as a number, and how many bytecode instructions a decision takes: a loop over nodes,
or a comparison per node instead of one per set of taints, changes these numbers, and the load of the machine does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.features import Gates, Version
from nodeward.machinery.clock import VirtualClock
from nodeward.scheduler.cache.node_taints import NODE_TAINTS, SPARE_TAINT_SETS
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.engine_factory import alone
from nodeward.scheduler.framework.pod import PodView
from tests.keps.effort import Digits, steps
from tests.keps.ledger import statement
from tests.scheduler.running import node, pod

ON = "TaintTolerationComparisonOperators=true"
OFF = "TaintTolerationComparisonOperators=false"
SLA = "example.com/sla"
EFFECTS = ("NoSchedule", "PreferNoSchedule")


def engine_with(nodes: int, effect: str, values: Sequence[int], gates: str = ON) -> Engine:
    """A scheduler without an API whose nodes take turns with these values."""
    engine = alone(Gates.of("1.37", gates), Version.parse("1.37"), VirtualClock())
    for number in range(nodes):
        value = str(values[number % len(values)])
        made: Node = node(f"n{number}", taints=[{"key": SLA, "value": value, "effect": effect}])
        made.spec.taints[0].value = Digits(value)
        engine.table.upsert_node(made)
    return engine


def decide(engine: Engine, operator: str, value: str, effect: str) -> Callable[[], bool]:
    """One more pod, to be decided about: whether it got a node."""
    made: Pod = pod("p", tolerations=[{"key": SLA, "operator": operator, "value": value, "effect": effect}])
    made.metadata.uid = f"pod-{engine.table.sizes()['assumed_pods']}"
    made.metadata.name = made.metadata.uid
    made.spec.scheduler_name = "default-scheduler"
    engine.queue.add(PodView(made), engine.clock.monotonic_ns())

    def work() -> bool:
        attempt = engine.next()
        return attempt is not None and attempt.failure is None

    return work


@statement("5471-T38", part="scheduler")
@pytest.mark.parametrize("effect", EFFECTS)
def test_numbers_are_read_once_per_value_and_not_per_node_or_pod(effect: str) -> None:
    values = range(900, 910)
    first = {}
    for nodes in (50, 1000):
        engine = engine_with(nodes, effect, values)
        first[nodes] = Digits.read_by(decide(engine, "Gt", "905", effect))
        assert Digits.read_by(decide(engine, "Gt", "905", effect)) == 0, "the second pod asks nothing new"
        assert Digits.read_by(decide(engine, "Equal", "905", effect)) == 0
    assert first[1000] == first[50] == len(values)


@statement("5471-T38", part="scheduler")
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_number_costs_what_equality_costs_and_an_unused_gate_nothing(effect: str) -> None:
    def cost(operator: str, value: str, gates: str = ON, nodes: int = 500) -> int:
        engine = engine_with(nodes, effect, [950], gates)
        for _ in range(3):
            assert decide(engine, operator, value, effect)()
        return steps(decide(engine, operator, value, effect))

    equal = cost("Equal", "950")
    assert cost("Gt", "900") == equal
    assert cost("Lt", "1000") == equal
    assert cost("Equal", "950", OFF) == equal
    assert cost("Gt", "900", nodes=5000) <= equal * 1.02, "nor does it grow with the nodes"


@statement("5471-T38", part="scheduler")
def test_a_pod_that_fits_nowhere_is_told_so_without_a_comparison_per_node() -> None:
    reads = []
    for nodes in (50, 1000):
        work = decide(engine_with(nodes, "NoSchedule", range(100, 110)), "Gt", "900", "NoSchedule")
        reads.append(Digits.read_by(lambda work=work: _refused(work)))  # type: ignore[misc]
    assert reads[0] == reads[1] <= 20


def _refused(work: Callable[[], bool]) -> None:
    assert not work()


@statement("5471-T38", part="scheduler")
def test_values_that_change_all_the_time_are_not_kept() -> None:
    engine = engine_with(3, "NoSchedule", [1, 2, 3])
    taints = engine.table.node_index(NODE_TAINTS[True])
    for value in range(4, 6000):
        decided = node("n0", taints=[{"key": SLA, "value": str(value), "effect": "NoSchedule"}])
        engine.table.upsert_node(decided)
    assert len(taints.sets) < 2 * engine.table.capacity + SPARE_TAINT_SETS + 1
    assert decide(engine, "Gt", "5000", "NoSchedule")(), "the value it has now is known"
    assert decide(engine, "Equal", "2", "NoSchedule")(), "and so are those of the others"
    assert not decide(engine, "Gt", "6000", "NoSchedule")()
