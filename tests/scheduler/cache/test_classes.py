"""What is remembered for pods that are alike is what working it out anew would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodeward.scheduler.cache.classes import MOST_BYTES, PodClasses
from nodeward.scheduler.framework.plugin import (
    ColumnFilterPlugin,
    ColumnScorePlugin,
    CycleState,
    FilterPlugin,
    RejectedRows,
    ScorePlugin,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, unschedulable
from tests.scheduler.cache import objects
from tests.scheduler.cache.objects import new_table, node, pod
from tests.scheduler.plugins import profile

NODES = st.sampled_from([f"n{number}" for number in range(18)])


class Remembering(RuleBasedStateMachine):
    """A few kinds of pods, asked about after every change; beside them the obvious scheduler."""

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.table = new_table()
        self.plugins = profile.plugins()
        self.classes = PodClasses(self.table, self.plugins, profile.WEIGHTS)
        self.plain = profile.Plain(self.plugins)
        self.kinds = [data.draw(objects.pods(f"kind{number}")) for number in range(2)]
        self.kinds.append(pod("simple", requests={"cpu": "1", "memory": "1Gi"}))
        self.placed = 0
        for number in range(3):
            self.table.upsert_node(data.draw(objects.nodes(f"n{number}")))

    @rule(data=st.data(), name=NODES)
    def node_comes_or_changes(self, data: st.DataObject, name: str) -> None:
        self.table.upsert_node(data.draw(objects.nodes(name)))

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        self.table.remove_node(name)

    @rule(kind=st.integers(0, 2))
    def pod_is_placed(self, kind: int) -> None:
        row = self.classes.choose(self.kinds[kind])
        if row is not None:
            self.place(self.kinds[kind], self.table.name_of(row))

    @rule(data=st.data(), where=NODES)
    def pod_appears(self, data: st.DataObject, where: str) -> None:
        self.place(data.draw(objects.pods("some")), where)

    def place(self, kind: PodView, where: str) -> None:
        """Another pod of a kind, under a uid of its own."""
        view = PodView(kind.pod)
        object.__setattr__(view, "uid", f"p{self.placed}")
        self.placed += 1
        self.table.assume(view, where)

    @rule(number=st.integers(0, 30))
    def pod_goes(self, number: int) -> None:
        self.table.remove_pod(f"p{number}")

    @invariant()
    def remembered_is_what_it_would_be_anew(self) -> None:
        for kind in self.kinds:
            rejected, scores = self.plain.judge(kind, self.table)
            said = self.classes.explain(kind)
            assert said.rejected == rejected
            assert set(said.fitting) == set(scores)
            assert len(said.fitting) + len(said.rejected) == self.table.count
            row = self.classes.choose(kind)
            if not scores:
                assert row is None
                continue
            best = {
                self.table.row_of(name) for name, score in scores.items() if score == max(scores.values())
            }
            assert row == min(each for each in best if each is not None)
            anew = PodClasses(self.table, self.plugins, profile.WEIGHTS)
            for offset in (0, 3, 17):
                assert self.classes.choose(kind, offset) == anew.choose(kind, offset)
                assert self.classes.choose(kind, offset) in best


TestRemembering = Remembering.TestCase
TestRemembering.settings = settings(max_examples=40, stateful_step_count=25)


def classes_of(*nodes: Any, more: Sequence[Any] = (), most_bytes: int = MOST_BYTES) -> PodClasses:
    table = new_table()
    for each in nodes:
        table.upsert_node(each)
    weights = {**profile.WEIGHTS, **{each.name: 1 for each in more}}
    return PodClasses(table, [*profile.plugins(), *more], weights, most_bytes=most_bytes)


def test_equal_nodes_are_used_in_turn() -> None:
    classes = classes_of(node("a"), node("b"), node("c"))
    assert [classes.choose(pod("p"), offset) for offset in (0, 1, 2, 3, 16, 18)] == [0, 1, 2, 0, 0, 2]


def test_without_nodes_nothing_fits_and_nothing_is_explained() -> None:
    classes = classes_of()
    assert classes.choose(pod("p")) is None
    assert classes.explain(pod("p")).rejected == {}


def test_reasons_are_counted_by_node_and_a_node_may_have_several() -> None:
    small = {"cpu": "1", "memory": "1Gi", "pods": "0"}
    classes = classes_of(node("a", allocatable=small), node("b", unschedulable=True), node("c"))
    said = classes.explain(pod("p", requests={"cpu": "2", "memory": "16Gi"}))
    assert said.fitting == ()
    assert said.counts == {
        "Too many pods": 1,
        "Insufficient cpu": 1,
        "Insufficient memory": 2,
        "node(s) were unschedulable": 1,
    }
    assert said.plugins == ("NodeResourcesFit", "NodeUnschedulable")


def test_when_the_least_liked_node_leaves_the_others_are_normalised_anew() -> None:
    """A node with two unwelcome taints makes one with one taint look half as bad, and only as long as it is there."""
    table = new_table()
    taints = [{"key": key, "effect": "PreferNoSchedule"} for key in ("a", "b")]
    # As many nodes that the rows which change are brought up to date one by one.
    for number in range(20):
        table.upsert_node(node(f"n{number}"))
    table.upsert_node(node("one", taints=taints[:1]))
    table.upsert_node(node("two", taints=taints))
    old = PodClasses(table, profile.plugins(), profile.WEIGHTS)
    old.choose(pod("a"))
    table.remove_node("two")
    new = PodClasses(table, profile.plugins(), profile.WEIGHTS)
    rows = table.rows()
    assert old.pick(pod("b")).found.total[rows].tolist() == new.pick(pod("b")).found.total[rows].tolist()


def test_classes_that_were_not_asked_for_long_are_dropped() -> None:
    classes = classes_of(node("a"), most_bytes=3000)
    for number in range(20):
        classes.choose(pod("p", requests={"cpu": f"{number}m"}))
    assert 0 < len(classes) < 10
    assert classes.choose(pod("p", requests={"cpu": "0"})) == 0


class OneEach(ColumnFilterPlugin, ColumnScorePlugin, StatefulPlugin):
    """At most one pod with the same name's first letter per node: it looks at other pods, in plain form."""

    name: ClassVar[str] = "OneEach"
    pod_fields = ()

    def __init__(self) -> None:
        self.asked = 0

    def concerns(self, pod: PodView, table: Any = None) -> bool:
        return bool(pod.labels.get("alone"))

    def filter_rows(self, cycle: CycleState, table: Any, rows: Any) -> RejectedRows | None:
        self.asked += 1
        taken = [
            any(other.name[0] == cycle.pod.name[0] for other in table.pods_on(row)) for row in rows.tolist()
        ]
        return RejectedRows(np.where(taken, 0, -1), (unschedulable("one is there"),)) if any(taken) else None

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        raise AssertionError("many nodes are asked about at once")

    def score_rows(self, cycle: CycleState, table: Any, rows: Any) -> Any:
        return rows * 10

    def score(self, cycle: CycleState, pod: PodView, node: Any) -> int:
        raise AssertionError("many nodes are asked about at once")


class PlainOnly(FilterPlugin, ScorePlugin):
    """A plugin as somebody would first write it."""

    name: ClassVar[str] = "PlainOnly"
    pod_fields = ()

    def __init__(self) -> None:
        pass

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return unschedulable("too many neighbours") if len(node.pods) > 1 else SUCCESS

    def score(self, cycle: CycleState, pod: PodView, node: Any) -> int:
        return 50 if node.name == "b" else 0


def test_a_pod_that_comes_to_repel_others_repels_those_whose_kind_was_asked_about_before() -> None:
    table = new_table()
    table.upsert_node(node("n", labels={"kubernetes.io/hostname": "n"}))
    classes = PodClasses(table, profile.plugins(), profile.WEIGHTS)
    web = {"labels": {"app": "web"}}
    assert len(classes.fitting(pod("a", metadata=web))) == 1
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    table.assume(pod("lonely", affinity=apart), "n")
    assert len(classes.fitting(pod("b", metadata=web))) == 0
    table.remove_pod("lonely")
    assert len(classes.fitting(pod("c", metadata=web))) == 1


def test_stateful_plugins_are_asked_for_every_pod() -> None:
    plugin = OneEach()
    classes = classes_of(node("a"), node("b", unschedulable=True), node("c"), more=[plugin])
    table = classes._table
    alone = {"labels": {"alone": "yes"}}
    for name, row in (("x1", 2), ("y1", 2), ("x2", 0), ("x3", None)):
        view = pod(name, metadata=alone)
        assert classes.choose(view) == row
        if row is not None:
            table.assume(view, table.name_of(row))
    assert plugin.asked == 4
    said = classes.explain(pod("x3", metadata=alone))
    assert said.counts == {"one is there": 2, "node(s) were unschedulable": 1}
    assert classes.fitting(pod("y9", metadata=alone)).tolist() == [0]


def test_a_plugin_in_plain_form_works_like_any_other() -> None:
    classes = classes_of(node("a"), node("b"), more=[PlainOnly()])
    table = classes._table
    rows = []
    for number in range(5):
        row = classes.choose(pod(f"p{number}"))
        rows.append(row)
        if row is not None:
            table.assume(pod(f"p{number}"), table.name_of(row))
    assert rows == [1, 1, 0, 0, None]
    assert classes.explain(pod("q")).counts == {"too many neighbours": 2}
