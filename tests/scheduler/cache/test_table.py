"""The table of nodes: what it counts never drifts, whatever comes in whatever order."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodeward.api.core_v1.node import Node
from nodeward.features.declared import FRAMEWORK, match_column
from nodeward.rules.pod_resources import pod_requests
from nodeward.rules.readiness import is_open
from nodeward.rules.taints import blocking_taint
from nodeward.scheduler.cache.amounts import MISSING, whole
from nodeward.scheduler.cache.images import IMAGES
from nodeward.scheduler.cache.labels import ABSENT
from nodeward.scheduler.cache.node_taints import NODE_TAINTS
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.node_declared_features import declared_column
from nodeward.scheduler.plugins.node_readiness_gates import OPEN
from nodeward.scheduler.plugins.node_unschedulable import CORDONED
from tests.scheduler.cache import objects
from tests.scheduler.cache.objects import GPU, new_table, node, pod

DECLARED = declared_column(FRAMEWORK.table)
NODES = st.sampled_from([f"n{number}" for number in range(20)])
UIDS = st.sampled_from([f"p{number}" for number in range(6)])


def placed(view: PodView, where: str) -> PodView:
    """The pod as the API shows it once it has a node."""
    spec = msgspec.structs.replace(view.pod.spec, node_name=where)
    return PodView(msgspec.structs.replace(view.pod, spec=spec))


class Drift(RuleBasedStateMachine):
    """A table beside the obvious: a dict of nodes, and a dict of pods with the node each is on."""

    def __init__(self) -> None:
        super().__init__()
        self.table = new_table()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[PodView, str]] = {}
        self.assumed: dict[str, float | None] = {}
        self.seen = (0, 0)
        self.picture: dict[int, Any] = {}

    @rule(data=st.data(), name=NODES)
    def node_comes_or_changes(self, data: st.DataObject, name: str) -> None:
        fresh = data.draw(objects.nodes(name))
        self.table.upsert_node(fresh)
        self.nodes[name] = fresh

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        assert self.table.remove_node(name) == (self.nodes.pop(name, None) is not None)

    @rule(data=st.data(), uid=UIDS, where=NODES)
    def pod_runs_or_changes(self, data: st.DataObject, uid: str, where: str) -> None:
        view = placed(data.draw(objects.pods(uid)), where)
        self.table.add_pod(view)
        self.pods[uid] = view, where
        self.assumed.pop(uid, None)

    @rule(uid=UIDS)
    def pod_is_told_again(self, uid: str) -> None:
        if uid in self.pods:
            view, where = self.pods[uid]
            self.table.update_pod(placed(view, where))
            self.assumed.pop(uid, None)

    @rule(uid=UIDS)
    def pod_goes(self, uid: str) -> None:
        assert self.table.remove_pod(uid) == (self.pods.pop(uid, None) is not None)
        self.assumed.pop(uid, None)

    @rule(data=st.data(), uid=UIDS, where=NODES)
    def pod_is_assumed(self, data: st.DataObject, uid: str, where: str) -> None:
        view = data.draw(objects.pods(uid))
        assert self.table.assume(view, where) == (uid not in self.pods)
        if uid not in self.pods:
            self.pods[uid] = view, where
            self.assumed[uid] = None

    @rule(uid=UIDS, deadline=st.integers(1, 9))
    def binding_is_finished(self, uid: str, deadline: int) -> None:
        self.table.finish_binding(uid, deadline)
        if uid in self.assumed:
            self.assumed[uid] = deadline

    @rule(uid=UIDS)
    def pod_is_forgotten(self, uid: str) -> None:
        assert self.table.forget(uid) == (uid in self.assumed)
        if uid in self.assumed:
            del self.pods[uid], self.assumed[uid]

    @rule(now=st.integers(0, 9))
    def time_passes(self, now: int) -> None:
        late = {uid for uid, deadline in self.assumed.items() if deadline is not None and deadline <= now}
        assert {view.uid for view in self.table.expire(now)} == late
        for uid in late:
            del self.pods[uid], self.assumed[uid]

    @invariant()
    def columns_are_the_sum_of_the_pods(self) -> None:
        table = self.table
        assert table.count == len(self.nodes) == len(table.rows())
        for name, here in self.nodes.items():
            row = table.row_of(name)
            assert row is not None
            assert table.name_of(row) == name
            assert table.node(row) is here
            mine = [view for view, where in self.pods.values() if where == name]
            assert {view.uid for view in table.pods_on(row)} == {view.uid for view in mine}
            wanted: dict[str, list[int]] = {"pods": [len(mine), len(mine)]}
            for view in mine:
                for index, amounts in enumerate(
                    (pod_requests(view.pod), pod_requests(view.pod, missing=MISSING))
                ):
                    for resource, amount in whole(amounts).items():
                        wanted.setdefault(resource, [0, 0])[index] += amount
            allocatable = whole(here.status.allocatable)
            for resource, line in table.resources.items():
                assert table.allocatable[line, row] == allocatable.get(resource, 0)
                requested, scored = wanted.get(resource, [0, 0])
                assert table.requested[line, row] == requested
                assert table.scored[line, row] == scored
            assert {key for key in wanted if any(wanted[key])} <= set(table.resources)
            assert table.ports_on(row) == table.view(row).ports
            assert table.column(CORDONED)[row] == here.spec.unschedulable
            assert table.column(OPEN)[row] == is_open(here)
            fits = table.node_index(NODE_TAINTS[True]).are_tolerated((), np.array([row]))[0]
            assert fits == (blocking_taint(here.spec.taints, (), numeric=True) is None)
            features = FRAMEWORK.feature_set(here.status.declared_features)
            assert tuple(table.column(DECLARED)[row].tolist()) == features.as_words()
            zone = int(table.labels.column("zone")[row])
            assert (
                table.labels.values("zone")[zone] if zone != ABSENT else None
            ) == here.metadata.labels.get("zone")

    @invariant()
    def images_are_those_of_the_nodes(self) -> None:
        for name in ("busybox:latest", "web:1", "reg.example:5000/big:2"):
            image = self.table.node_index(IMAGES).get(name)
            rows = {
                self.table.row_of(where)
                for where, here in self.nodes.items()
                if any(name in each.names for each in here.status.images)
            }
            assert (set(image.rows) if image is not None else set()) == rows

    @invariant()
    def rows_that_are_not_logged_did_not_change(self) -> None:
        table = self.table
        changed = table.changes.since(self.seen[0])
        nodes_changed = table.node_changes.since(self.seen[1])
        assert changed is not None
        assert nodes_changed is not None
        assert set(nodes_changed.tolist()) <= set(changed.tolist())
        now = {row: (table.node(row), table.requested[:4, row].tolist()) for row in range(len(table._names))}
        for row, before in self.picture.items():
            if row not in changed:
                assert now[row] == before
            if row not in nodes_changed:
                assert now[row][0] is before[0]
        self.picture = now
        self.seen = table.changes.version, table.node_changes.version


TestDrift = Drift.TestCase
TestDrift.settings = settings(max_examples=40, stateful_step_count=40)


def test_a_pod_that_shrinks_counts_with_what_it_still_holds() -> None:
    table = new_table()
    row = table.upsert_node(node("n"))
    table.add_pod(
        pod(
            "p",
            requests={"cpu": "1"},
            nodeName="n",
            status={
                "containerStatuses": [
                    {
                        "name": "main",
                        "allocatedResources": {"cpu": "1"},
                        "resources": {"requests": {"cpu": "3"}},
                    }
                ]
            },
        )
    )
    assert table.requested[table.resources["cpu"], row] == 3000
    table.update_pod(pod("p", requests={"cpu": "1"}, nodeName="n"))
    assert table.requested[table.resources["cpu"], row] == 1000


def test_the_confirmation_of_an_assumed_pod_is_no_change() -> None:
    table = new_table()
    table.upsert_node(node("n"))
    table.assume(pod("p", requests={"cpu": "1"}), "n")
    before = table.changes.version
    table.add_pod(pod("p", requests={"cpu": "1"}, nodeName="n"))
    assert table.changes.version == before
    assert not table.is_assumed("p")
    assert not table.forget("p")
    assert table.node_of("p") == "n"


def test_an_assumed_pod_that_is_bound_elsewhere_moves() -> None:
    table = new_table()
    one, other = table.upsert_node(node("one")), table.upsert_node(node("other"))
    table.assume(pod("p", requests={GPU: "2"}), "one")
    table.add_pod(pod("p", requests={GPU: "2"}, nodeName="other"))
    gpu = table.resources[GPU]
    assert table.requested[gpu, one] == 0
    assert table.requested[gpu, other] == 2


def test_pods_of_a_node_that_comes_back_still_count() -> None:
    table = new_table()
    table.upsert_node(node("n"))
    table.add_pod(pod("p", requests={"cpu": "1"}, nodeName="n"))
    table.remove_node("n")
    assert table.row_of("n") is None
    assert table.rows().tolist() == []
    row = table.upsert_node(node("n"))
    assert table.requested[table.resources["cpu"], row] == 1000


def test_a_row_is_used_again_once_its_last_pod_is_gone() -> None:
    table = new_table()
    first = table.upsert_node(node("old"))
    table.add_pod(pod("p", nodeName="old"))
    table.remove_node("old")
    assert table.upsert_node(node("young")) != first
    table.remove_pod("p")
    assert table.upsert_node(node("younger")) == first


def test_amounts_beyond_all_measure_do_not_overflow() -> None:
    table = new_table()
    row = table.upsert_node(node("n", allocatable={"memory": "8Ei", GPU: str(2**63 - 1), "pods": "10"}))
    table.add_pod(pod("p", requests={"memory": "7Ei"}, nodeName="n"))
    assert int(table.allocatable[table.resources[GPU], row]) * 100 < 2**63
    assert int(table.requested[table.resources["memory"], row]) * 100 < 2**63


def test_the_log_forgets_what_is_old_and_says_so() -> None:
    table = new_table()
    start = table.changes.version
    for _ in range(3000):
        table.upsert_node(node("n"))
    assert table.changes.since(start) is None
    recent = table.changes.since(table.changes.version - 5)
    assert recent is not None
    assert set(recent.tolist()) == {table.row_of("n")}


def test_feature_words_are_laid_out_for_matching() -> None:
    table = new_table()
    for number in range(40):
        declared = ["VolumeBindMountOptions"] if number % 2 else []
        table.upsert_node(node(f"n{number}", status={"declaredFeatures": declared}))
    assert table.column(DECLARED).flags.f_contiguous
    assert table.allocatable.flags.c_contiguous
    required = FRAMEWORK.feature_set(["VolumeBindMountOptions"]).as_words()
    assert match_column(required, table.column(DECLARED))[table.rows()].sum() == 20
