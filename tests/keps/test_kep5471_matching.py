"""KEP-5471, the library: numeric tolerations against taints. The rules for any text are in tests/rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nodeward.api.core_v1.affinity import Affinity, NodeAffinity
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.references import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from nodeward.api.meta import ObjectMeta
from nodeward.api.resource_v1 import DeviceTaint, DeviceToleration
from nodeward.features import NEWEST, OLDEST, Gates
from nodeward.rules.affinity import fits_node
from nodeward.rules.taint_columns import TaintSets
from nodeward.rules.taints import blocking_taint, seconds_until_eviction
from nodeward.rules.tolerations import has_unreadable_value, tolerates
from tests.keps.effort import Digits, steps
from tests.keps.ledger import statement

GATE = "TaintTolerationComparisonOperators"
KEY = "node.example.com/sla"


def matches(operator: str, mine: str, theirs: str, *, numeric: bool = True) -> bool:
    taint = Taint(key=KEY, value=theirs, effect="NoSchedule")
    return tolerates(Toleration(key=KEY, operator=operator, value=mine), taint, numeric=numeric)


@statement("5471-T1", part="library")
@pytest.mark.parametrize("numeric", [True, False])
def test_the_old_operators_mean_the_same_with_and_without_the_gate(numeric: bool) -> None:
    assert matches("Equal", "950", "950", numeric=numeric)
    assert matches("", "950", "950", numeric=numeric)
    assert not matches("Equal", "950", "0950", numeric=numeric)
    assert matches("Exists", "", "anything", numeric=numeric)
    assert matches("Gt", "900", "950", numeric=numeric) is numeric


@statement("5471-T2")
@pytest.mark.parametrize(("taint", "answer"), [("749", False), ("750", False), ("751", True), ("800", True)])
def test_greater_than_tolerates_values_above_only(taint: str, answer: bool) -> None:
    assert matches("Gt", "750", taint) is answer


@statement("5471-T3")
@pytest.mark.parametrize(("taint", "answer"), [("5", True), ("9", True), ("10", False), ("15", False)])
def test_less_than_tolerates_values_below_only(taint: str, answer: bool) -> None:
    assert matches("Lt", "10", taint) is answer


@statement("5471-T4")
def test_equal_and_greater_together_mean_at_least() -> None:
    both = [Toleration(key=KEY, operator=each, value="900") for each in ("Equal", "Gt")]
    answers = [
        blocking_taint([Taint(key=KEY, value=value, effect="NoSchedule")], both, numeric=True) is None
        for value in ("899", "900", "901")
    ]
    assert answers == [False, True, True]


@statement("5471-T5")
@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule", "NoExecute"])
def test_numbers_work_with_every_effect_and_without_one_for_all(effect: str) -> None:
    taint = Taint(key=KEY, value="950", effect=effect)
    others = {"NoSchedule", "PreferNoSchedule", "NoExecute"} - {effect}
    assert tolerates(Toleration(key=KEY, operator="Gt", value="900", effect=effect), taint, numeric=True)
    assert tolerates(Toleration(key=KEY, operator="Gt", value="900"), taint, numeric=True)
    for other in sorted(others):
        assert not tolerates(
            Toleration(key=KEY, operator="Gt", value="900", effect=other), taint, numeric=True
        )


@statement("5471-T9", part="library")
def test_seconds_count_while_the_number_matches_and_not_when_it_does_not() -> None:
    above = Toleration(key=KEY, operator="Gt", value="950", effect="NoExecute", toleration_seconds=30)
    good, bad = (Taint(key=KEY, value=value, effect="NoExecute") for value in ("980", "940"))
    assert seconds_until_eviction([good], [above], numeric=True) == 30
    assert seconds_until_eviction([bad], [above], numeric=True) == 0


@statement("5471-T10", part="library")
def test_the_whole_range_of_64_bits_is_compared() -> None:
    least, most = str(-(2**63)), str(2**63 - 1)
    assert matches("Gt", least, most)
    assert matches("Lt", most, least)
    assert not matches("Gt", str(-(2**63) - 1), most)
    assert not matches("Lt", str(2**63), least)
    assert not matches("Lt", "100", "95.5")


@statement("5471-T11")
@pytest.mark.parametrize("value", ["", "high", "95.5", "0950", "+5", "-0", "9223372036854775808"])
def test_a_toleration_that_is_no_number_matches_nothing_and_raises_nothing(value: str) -> None:
    assert not matches("Gt", value, "5")
    assert not matches("Lt", value, "5")


@statement("5471-T12", part="library")
def test_a_taint_that_is_no_number_is_not_tolerated_and_can_be_told_to_administrators() -> None:
    taint = Taint(key=KEY, value="high", effect="NoSchedule")
    above = Toleration(key=KEY, operator="Gt", value="900")
    assert blocking_taint([taint], [above], numeric=True) is taint
    assert has_unreadable_value(taint, [above])
    good = Taint(key=KEY, value="950", effect="NoSchedule")
    assert blocking_taint([good], [above], numeric=True) is None
    assert not has_unreadable_value(good, [above])


LARGE = str(2**63 - 1)


@statement("5471-T17")
@pytest.mark.parametrize(("operator", "reads"), [("Equal", 0), ("", 0), ("Exists", 0), ("Lt", 2), ("Gt", 2)])
def test_numbers_are_read_for_the_new_operators_only(operator: str, reads: int) -> None:
    mine, theirs = Digits("900"), Digits("950")
    assert Digits.read_by(lambda: matches(operator, mine, theirs)) == reads
    assert Digits.read_by(lambda: matches(operator, mine, theirs, numeric=False)) == 0


@statement("5471-T17")
def test_the_old_operators_cost_the_same_with_the_gate_and_without_it_whatever_the_value() -> None:
    def cost(operator: str, value: str, numeric: bool) -> int:
        return steps(lambda: matches(operator, value, value, numeric=numeric))

    for operator in ("Equal", "", "Exists"):
        values = ("950", "high", "x" * 63)
        assert len({cost(operator, value, numeric) for value in values for numeric in (True, False)}) == 1


@statement("5471-T17")
@pytest.mark.parametrize("operator", ["Lt", "Gt"])
def test_a_comparison_costs_the_same_for_small_and_large_numbers(operator: str) -> None:
    near = steps(lambda: matches(operator, "1", "2"))
    assert steps(lambda: matches(operator, "1", LARGE)) == near
    assert steps(lambda: matches(operator, LARGE, "1")) == near
    assert near <= 3 * steps(lambda: matches("Equal", "1", "2"))


@statement("5471-T21", part="library")
def test_any_key_will_do_and_node_affinity_has_its_own_numbers() -> None:
    for key in ("a", "example.com/anything", "x" * 63):
        taint = Taint(key=key, value="2", effect="NoSchedule")
        assert tolerates(Toleration(key=key, operator="Gt", value="1"), taint, numeric=True)
    wish = NodeSelectorRequirement(key="cores", operator="Gt", values=["008"])
    selector = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[wish])])
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
    spec = PodSpec(affinity=Affinity(node_affinity=affinity))
    assert fits_node(spec, Node(metadata=ObjectMeta(labels={"cores": "09"})))


@statement("5471-T30", part="library")
def test_an_operator_nobody_knows_matches_nothing_and_breaks_nothing() -> None:
    assert not matches("Between", "900", "950")
    assert not matches("Gt", "900", "950", numeric=Gates.of("1.34").enabled(GATE))
    assert not matches("Gt", "900", "950", numeric=Gates.of("1.36").enabled(GATE))


@statement("5471-T36")
@pytest.mark.parametrize(
    ("operator", "mine", "theirs", "answer"),
    [
        ("Gt", "900", "950", True),
        ("Gt", "0900", "950", False),
        ("Gt", "900", "0950", False),
        ("Gt", "0900", "0950", False),
        ("Lt", "950", "900", True),
        ("Lt", "0950", "900", False),
        ("Lt", "950", "0900", False),
        ("Lt", "-0", "-1", False),
        ("Gt", "00", "1", False),
        ("Gt", "0", "1", True),
    ],
)
def test_leading_zeros_match_on_neither_side(operator: str, mine: str, theirs: str, answer: bool) -> None:
    assert matches(operator, mine, theirs) is answer


@statement("5471-T38", part="library")
@pytest.mark.parametrize("nodes", [50, 5000])
def test_a_set_of_taints_is_compared_once_however_many_nodes_have_it(nodes: int) -> None:
    sets = TaintSets(numeric=True)
    known = [sets.id_of([Taint(key=KEY, value=Digits(n), effect="NoSchedule")]) for n in range(50)]
    ids = np.array([known[node % 50] for node in range(nodes)], np.int32)

    def asked(operator: str) -> Callable[[], Any]:
        tolerations = [Toleration(key=KEY, operator=operator, value=Digits("25"))]
        return lambda: sets.are_tolerated(tolerations, ids)

    # One comparison per set, and none any more when pods with the same tolerations follow.
    assert Digits.read_by(asked("Gt")) == 2 * 50
    assert Digits.read_by(asked("Gt")) == 0
    assert Digits.read_by(asked("Equal")) == 0
    assert asked("Gt")().sum() == 24 * nodes // 50
    assert asked("Equal")().sum() == nodes // 50
    assert steps(asked("Gt")) == steps(asked("Equal")), "then a number costs what an equality costs"
    # A set that is new is the only one that is judged.
    sets.id_of([Taint(key=KEY, value=Digits("51"), effect="NoSchedule")])
    assert Digits.read_by(asked("Gt")) == 2


@statement("5471-T39", part="library")
def test_numbers_of_all_kinds_mixed_with_equality() -> None:
    taints = [
        Taint(key=KEY, value="0", effect="NoSchedule"),
        Taint(key="example.com/wear", value="9000000000000000000", effect="NoExecute"),
        Taint(key="example.com/pool", value="a", effect="NoSchedule"),
    ]
    tolerations = [
        Toleration(key=KEY, operator="Gt", value="-1"),
        Toleration(key="example.com/wear", operator="Lt", value="9000000000000000001"),
        Toleration(key="example.com/pool", operator="Equal", value="a"),
    ]
    assert blocking_taint(taints, tolerations, numeric=True) is None
    tolerations[0] = Toleration(key=KEY, operator="Gt", value="0")
    assert blocking_taint(taints, tolerations, numeric=True) is taints[0]


@statement("5471-T44")
def test_the_gate_is_alpha_and_off_from_its_first_version_on() -> None:
    for minor in range(OLDEST, NEWEST + 1):
        gates = Gates.of(f"1.{minor}")
        stages = {name: stage for name, stage, _ in gates}
        assert not gates.enabled(GATE)
        assert stages.get(GATE) == (None if minor < 35 else "ALPHA")


def test_devices_are_tolerated_by_numbers_too() -> None:
    taint = DeviceTaint(key="example.com/wear", value="80", effect="NoSchedule")
    assert tolerates(DeviceToleration(key="example.com/wear", operator="Lt", value="90"), taint, numeric=True)
