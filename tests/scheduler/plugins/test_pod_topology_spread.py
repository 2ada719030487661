"""Pods spread over zones and hosts: both forms of the plugin, and an obvious reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api.apps_v1 import ReplicaSet, StatefulSet
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, ReplicationController
from nodeward.api.core_v1.service import Service
from nodeward.api.meta import KubeObject
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code
from nodeward.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.scheduler.cache.objects import new_table, node
from tests.scheduler.plugins import neighbours, profile
from tests.scheduler.plugins.neighbours import HOST, ZONE, cluster, filtered, judged, ranked, selects, web

MUST, MAY = "DoNotSchedule", "ScheduleAnyway"
WEB = {"matchLabels": {"app": "web"}}
UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
FITS = ""


def plugin(
    arguments: Mapping[str, Any] | None = None, listers: FixedListers | None = None
) -> PodTopologySpread:
    base = profile.context()
    found = FixedListers() if listers is None else listers
    return PodTopologySpread(PluginContext(base.gates, base.version, arguments or {}, listers=found))


def constraint(key: str, skew: int = 1, how: str = MUST, selector: Any = WEB, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": how, "labelSelector": selector, **more}


def spread(*constraints: Any, **more: Any) -> PodView:
    return web("p", topologySpreadConstraints=list(constraints), **more)


def webs(prefix: str, count: int) -> list[PodView]:
    return [web(f"{prefix}-{number}") for number in range(count)]


def said(view: PodView, table: NodeTable) -> dict[str, str]:
    return {name: status.message for name, status in judged(plugin(), view, table).items()}


# -- what must hold


def test_a_domain_may_have_so_many_more_than_the_emptiest() -> None:
    table = cluster({"a1": webs("a1", 2), "a2": webs("a2", 1), "b1": webs("b1", 2), "c1": webs("c1", 3)})
    zones = dict.fromkeys(("a1", "a2", "b1", "c1"), FITS)
    assert said(spread(constraint(ZONE)), table) == {**zones, "a1": UNEVEN, "a2": UNEVEN, "c1": UNEVEN}
    assert said(spread(constraint(ZONE, 2)), table) == zones
    assert said(spread(constraint(HOST)), table) == {"a1": UNEVEN, "a2": FITS, "b1": UNEVEN, "c1": UNEVEN}


def test_a_pod_that_is_not_one_of_those_spread_does_not_add_to_the_skew() -> None:
    table = cluster({"a1": webs("a1", 1), "b1": []})
    assert said(spread(constraint(ZONE)), table) == {"a1": UNEVEN, "b1": FITS}
    other = spread(constraint(ZONE), labels={"app": "db"})
    assert said(other, table) == {"a1": FITS, "b1": FITS}


def test_pods_of_other_namespaces_and_pods_being_deleted_do_not_count() -> None:
    gone = web("gone", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    table = cluster({"a1": [gone, web("far", namespace="other")], "b1": webs("b1", 1)})
    assert said(spread(constraint(ZONE)), table) == {"a1": FITS, "b1": UNEVEN}


def test_a_pod_that_is_deleted_stops_counting_while_it_is_still_there() -> None:
    table = cluster({"a1": [], "b1": []})
    table.add_pod(web("w", nodeName="a1"))
    assert said(spread(constraint(ZONE)), table) == {"a1": UNEVEN, "b1": FITS}
    table.update_pod(web("w", nodeName="a1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert said(spread(constraint(ZONE)), table) == {"a1": FITS, "b1": FITS}
    table.update_pod(web("w", nodeName="a1"))
    table.update_pod(web("w", nodeName="a1", labels={"app": "db"}))
    assert said(spread(constraint(ZONE)), table) == {"a1": FITS, "b1": FITS}


def test_nodes_without_a_label_neither_take_the_pod_nor_count() -> None:
    table = cluster({"a1": webs("a1", 1), "b1": webs("b1", 1), "c1": []}, c1={HOST: "c1"})
    answer = judged(plugin(), spread(constraint(ZONE)), table)
    assert {name: status.message for name, status in answer.items()} == {
        "a1": FITS,
        "b1": FITS,
        "c1": UNLABELLED,
    }
    assert answer["c1"].code is Code.UNRESOLVABLE
    # With both keys asked for, what is on c1 is not the emptiest host either.
    both = spread(constraint(HOST), constraint(ZONE))
    assert said(both, table) == {"a1": FITS, "b1": FITS, "c1": UNLABELLED}


def test_the_first_constraint_that_fails_explains() -> None:
    table = cluster({"a1": webs("a1", 1), "b1": [], "a2": []}, a2={ZONE: "a"})
    # The zone of a2 has too many, and its host is unknown.
    answer = judged(plugin(), spread(constraint(ZONE), constraint(HOST)), table)
    assert (answer["a2"].message, answer["a2"].code) == (UNEVEN, Code.UNSCHEDULABLE)
    assert said(spread(constraint(HOST), constraint(ZONE)), table)["a2"] == UNLABELLED


def test_with_fewer_domains_than_wanted_the_emptiest_is_taken_to_be_empty() -> None:
    table = cluster({"a1": webs("a1", 1), "b1": webs("b1", 1)})
    assert said(spread(constraint(ZONE, minDomains=2)), table) == {"a1": FITS, "b1": FITS}
    assert said(spread(constraint(ZONE, minDomains=3)), table) == {"a1": UNEVEN, "b1": UNEVEN}


def test_nodes_the_pod_cannot_go_to_count_only_if_the_policy_says_so() -> None:
    table = new_table()
    tainted = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    for name, labels, taints in (
        ("a1", {"disk": "ssd"}, []),
        ("b1", {}, []),
        ("c1", {"disk": "ssd"}, tainted),
    ):
        table.upsert_node(node(name, labels={ZONE: name[0], **labels}, taints=taints))
    for number, where in enumerate(("a1", "c1")):
        table.assume(web(f"w{number}"), where)
    wants = {"nodeSelector": {"disk": "ssd"}}
    # b1 is empty; it does not count for a pod that cannot go there, unless it is told to.
    assert said(spread(constraint(ZONE), **wants), table)["a1"] == FITS
    assert said(spread(constraint(ZONE, nodeAffinityPolicy="Ignore"), **wants), table)["a1"] == UNEVEN
    table.remove_pod("w1")
    # Now c1 is empty, and tainted.
    assert said(spread(constraint(ZONE), **wants), table)["a1"] == UNEVEN
    assert said(spread(constraint(ZONE, nodeTaintsPolicy="Honor"), **wants), table)["a1"] == FITS
    tolerant = {**wants, "tolerations": [{"key": "k", "operator": "Exists"}]}
    assert said(spread(constraint(ZONE, nodeTaintsPolicy="Honor"), **tolerant), table)["a1"] == UNEVEN


def test_match_label_keys_narrow_the_selector_to_the_pods_own_revision() -> None:
    old = web("old", labels={"app": "web", "hash": "1"})
    table = cluster({"a1": [old], "b1": []})
    new = {"app": "web", "hash": "2"}
    assert said(spread(constraint(ZONE), labels=new), table) == {"a1": UNEVEN, "b1": FITS}
    narrowed = spread(constraint(ZONE, matchLabelKeys=["hash", "absent"]), labels=new)
    assert said(narrowed, table) == {"a1": FITS, "b1": FITS}


def test_an_empty_selector_counts_no_pod_and_an_absent_one_not_even_the_own() -> None:
    table = cluster({"a1": webs("a1", 5), "b1": []})
    assert said(spread(constraint(ZONE, selector={})), table) == {"a1": FITS, "b1": FITS}
    assert said(spread(constraint(ZONE, selector=None)), table) == {"a1": FITS, "b1": FITS}


def test_pods_without_constraints_are_skipped() -> None:
    mine, table = plugin(), cluster({"a1": []})
    assert mine.pre_filter(CycleState(web("p")), web("p"), table).is_skip
    assert mine.pre_score(CycleState(web("p")), web("p"), table).is_skip
    assert not mine.concerns(web("p"))
    assert mine.concerns(spread(constraint(ZONE)))


# -- what ranks


def test_nodes_in_emptier_domains_are_better() -> None:
    table = cluster({"a1": webs("a1", 2), "b1": webs("b1", 1), "c1": []})
    scores = ranked(plugin(), spread(constraint(ZONE, how=MAY)), table)
    # Raw, with three zones: 3, 2 and 0 (a pod weighs log(5)).
    assert scores == {"a1": 0, "b1": 33, "c1": 100}
    assert ranked(plugin(), spread(constraint(ZONE, how=MAY)), cluster({"a1": [], "b1": []})) == {
        "a1": 100,
        "b1": 100,
    }


def test_a_tolerant_skew_waters_differences_down() -> None:
    table = cluster({"a1": webs("a1", 2), "b1": webs("b1", 1), "c1": []})
    assert ranked(plugin(), spread(constraint(ZONE, 5, MAY)), table) == {"a1": 57, "b1": 71, "c1": 100}


def test_nodes_without_a_label_get_nothing() -> None:
    table = cluster({"a1": webs("a1", 1), "b1": [], "c1": []}, c1={HOST: "c1"})
    assert ranked(plugin(), spread(constraint(ZONE, how=MAY)), table) == {"a1": 0, "b1": 100, "c1": 0}


def test_only_feasible_nodes_make_a_topology_larger() -> None:
    table = cluster({"a1": webs("a1", 3), "b1": webs("b1", 1), "c1": [], "d1": [], "e1": []})
    view = spread(constraint(ZONE, how=MAY), constraint(HOST, how=MAY))
    # log(2 + 2) each: 3 * 2 * 1.386 = 8.3 against 2.8
    assert ranked(plugin(), view, table, "a1", "b1") == {"a1": 37, "b1": 100}


# -- default constraints


def owned(kind: str, version: str) -> PodView:
    reference = {"apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": True}
    return web("p", metadata={"ownerReferences": [reference]})


def owner(kind: type[KubeObject], selector: Any) -> KubeObject:
    tree = {"metadata": {"name": "o", "namespace": "default"}, "spec": {"selector": selector}}
    return from_tree(tree, kind)


@pytest.mark.parametrize(
    ("view", "known"),
    [
        (web("p"), owner(Service, {"app": "web"})),
        (owned("ReplicationController", "v1"), owner(ReplicationController, {"app": "web"})),
        (owned("ReplicaSet", "apps/v1"), owner(ReplicaSet, WEB)),
        (owned("StatefulSet", "apps/v1"), owner(StatefulSet, WEB)),
    ],
)
def test_pods_something_selects_are_spread_by_default(view: PodView, known: KubeObject) -> None:
    table = cluster({"a1": webs("a1", 8), "b1": []})
    listers = FixedListers()
    mine = plugin(listers=listers)
    assert ranked(mine, view, table) is None
    assert not mine.concerns(view)
    listers.put(known)
    assert ranked(mine, view, table) == {"a1": 21, "b1": 100}
    assert mine.concerns(view)
    assert mine.pre_filter(CycleState(view), view, table).is_skip
    listers.remove(known)
    assert ranked(mine, view, table) is None


def test_nodes_without_a_zone_are_still_ranked_by_host_by_default() -> None:
    listers = FixedListers([owner(Service, {"app": "web"})])
    table = cluster({"a1": webs("a1", 8), "b1": []}, a1={HOST: "a1"}, b1={HOST: "b1"})
    assert ranked(plugin(listers=listers), web("p"), table) == {"a1": 15, "b1": 100}
    own = spread(constraint(HOST, 3, MAY), constraint(ZONE, 5, MAY))
    assert ranked(plugin(listers=listers), own, table) == {"a1": 0, "b1": 0}


def test_a_service_and_an_owner_select_together() -> None:
    narrow = {"matchLabels": {"tier": "x"}}
    listers = FixedListers([owner(Service, {"app": "web"}), owner(ReplicaSet, narrow)])
    table = cluster({"a1": webs("a1", 8), "b1": []})
    mine = {"labels": {"app": "web", "tier": "x"}}
    view = web("p", metadata={**mine, **owned_by("ReplicaSet")})
    assert ranked(plugin(listers=listers), view, table) == {"a1": 100, "b1": 100}


def owned_by(kind: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": True}
    return {"ownerReferences": [reference]}


def test_the_configuration_may_list_default_constraints() -> None:
    given_constraints = [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": MUST}]
    arguments = {"defaultingType": "List", "defaultConstraints": given_constraints}
    listers = FixedListers([owner(Service, {"app": "web"})])
    table = cluster({"a1": webs("a1", 1), "b1": []})
    answer = judged(plugin(arguments, listers), web("p"), table)
    assert {name: status.message for name, status in answer.items()} == {"a1": UNEVEN, "b1": FITS}
    # What a pod says itself replaces the list.
    assert set(said(spread(constraint(ZONE, 9)), table).values()) == {FITS}
    none = plugin({"defaultingType": "List"}, listers)
    assert none.pre_score(CycleState(web("p")), web("p"), table).is_skip


# -- against an obvious reference


def brute(
    view: PodView, constraints: Sequence[Any], table: NodeTable
) -> tuple[dict[str, str], dict[str, int]]:
    """Every node's answer, and the normalised score of all of them."""
    nodes = [table.view(row) for row in table.rows().tolist()]
    spec = view.pod.spec

    def counted(rule: Any, at: Any) -> bool:
        group = [each for each in constraints if each["whenUnsatisfiable"] == rule["whenUnsatisfiable"]]
        labels = at.node.metadata.labels
        if any(each["topologyKey"] not in labels for each in group):
            return False
        if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and any(
            labels.get(key) != value for key, value in spec.node_selector.items()
        ):
            return False
        is_kept_off = bool(at.node.spec.taints) and not spec.tolerations
        return rule.get("nodeTaintsPolicy", "Ignore") == "Ignore" or not is_kept_off

    def pods(rule: Any, at: Any) -> int:
        selector = rule["labelSelector"]
        return sum(
            bool(selector)
            and each.namespace == view.namespace
            and each.pod.metadata.deletion_timestamp is None
            and selects(selector, each.labels)
            for each in at.pods
        )

    def per_domain(rule: Any) -> dict[str, int]:
        sums: dict[str, int] = {}
        for at in nodes:
            if counted(rule, at):
                value = at.node.metadata.labels[rule["topologyKey"]]
                sums[value] = sums.get(value, 0) + pods(rule, at)
        return sums

    hard = [each for each in constraints if each["whenUnsatisfiable"] == MUST]
    soft = [each for each in constraints if each["whenUnsatisfiable"] == MAY]
    answers: dict[str, str] = {}
    raw: dict[str, float] = {}
    ranked_nodes = [
        at for at in nodes if all(each["topologyKey"] in at.node.metadata.labels for each in soft)
    ]
    for at in nodes:
        labels = at.node.metadata.labels
        answers[at.name] = FITS
        for rule in hard:
            if rule["topologyKey"] not in labels:
                answers[at.name] = UNLABELLED
                break
            sums = per_domain(rule)
            least = min(sums.values()) if len(sums) >= rule.get("minDomains", 1) else 0
            own = int(selects(rule["labelSelector"], view.labels))
            if sums.get(labels[rule["topologyKey"]], 0) + own - least > rule["maxSkew"]:
                answers[at.name] = UNEVEN
                break
        if at in ranked_nodes:
            total = 0.0
            for rule in soft:
                key = rule["topologyKey"]
                here = pods(rule, at) if key == HOST else per_domain(rule).get(labels[key], 0)
                values = {each.node.metadata.labels[key] for each in ranked_nodes}
                size = len(ranked_nodes) if key == HOST else len(values)
                total += here * math.log(size + 2) + rule["maxSkew"] - 1
            raw[at.name] = math.floor(total + 0.5)
    most, least_raw = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = {
        at.name: 0
        if at.name not in raw
        else 100
        if not most
        else int(100 * (most + least_raw - raw[at.name]) // most)
        for at in nodes
    }
    return answers, scores


CONSTRAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "topologyKey": st.sampled_from([HOST, ZONE]),
            "maxSkew": st.integers(1, 3),
            "whenUnsatisfiable": st.sampled_from([MUST, MAY]),
            "labelSelector": neighbours.SELECTORS,
        },
        optional={
            "minDomains": st.integers(1, 3),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        },
    ),
    min_size=1,
    max_size=3,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.just({"disk": "ssd"}),
        "tolerations": st.just([{"key": "k", "operator": "Exists"}]),
    },
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[NodeTable, PodView, list[Any]]:
    table = new_table()
    for number in range(draw(st.integers(1, 4))):
        name = f"n{number}"
        table.upsert_node(node(name, labels=draw(neighbours.NODE_LABELS), taints=draw(neighbours.TAINTS)))
        for index in range(draw(st.integers(0, 3))):
            deleted = draw(st.sampled_from([{}, {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}]))
            view = web(
                f"{name}-{index}",
                namespace=draw(neighbours.NAMESPACES),
                labels=draw(neighbours.APPS),
                metadata=deleted,
            )
            table.assume(view, name)
    constraints = draw(CONSTRAINTS)
    spec: dict[str, Any] = {"topologySpreadConstraints": constraints, **draw(SPECS)}
    view = web("new", labels=draw(neighbours.APPS), **spec)
    return table, view, constraints


@settings(max_examples=400)
@given(made=clusters())
def test_filter_and_score_are_what_counting_every_pod_gives(
    made: tuple[NodeTable, PodView, list[Any]],
) -> None:
    table, view, constraints = made
    answers, scores = brute(view, constraints, table)
    assert said(view, table) == answers
    found = ranked(plugin(), view, table)
    has_soft = any(each["whenUnsatisfiable"] == MAY for each in constraints)
    assert found == (scores if has_soft else None)


@settings(max_examples=200)
@given(made=clusters(), data=st.data())
def test_sums_that_follow_placements_are_what_new_ones_would_be(
    made: tuple[NodeTable, PodView, list[Any]], data: st.DataObject
) -> None:
    table, view, constraints = made
    mine = plugin()
    for number in range(data.draw(st.integers(1, 4))):
        names = [table.name_of(row) for row in table.rows().tolist()]
        where = data.draw(st.sampled_from(names))
        match data.draw(st.sampled_from(["comes", "goes", "relabelled"])):
            case "comes":
                table.assume(web(f"more{number}", labels=data.draw(neighbours.APPS)), where)
            case "goes":
                table.remove_pod(data.draw(st.sampled_from(sorted(f"{name}-0" for name in names))))
            case _:
                table.upsert_node(node(where, labels=data.draw(neighbours.NODE_LABELS)))
        answer = {name: status.message for name, status in judged(mine, view, table).items()}
        assert answer == brute(view, constraints, table)[0]
        if any(each["whenUnsatisfiable"] == MAY for each in constraints):
            assert ranked(mine, view, table) == brute(view, constraints, table)[1]


@settings(max_examples=150)
@given(made=clusters(), data=st.data())
def test_supposing_is_what_doing_would_be(
    made: tuple[NodeTable, PodView, list[Any]], data: st.DataObject
) -> None:
    table, view, _ = made
    mine, cycle = plugin(), CycleState(view)
    if not mine.pre_filter(cycle, view, table).is_success:
        return
    supposed, before = cycle.copy(), filtered(mine, cycle, table)
    row = data.draw(st.sampled_from(table.rows().tolist()))
    home = table.node(row)
    assert home is not None
    gone = next(table.pods_on(row), None)
    more = web("more", labels=data.draw(neighbours.APPS))
    if gone is not None:
        mine.remove_pod(supposed, view, gone, home)
        table.remove_pod(gone.uid)
    mine.add_pod(supposed, view, more, home)
    table.assume(more, home.metadata.name)
    assert filtered(mine, supposed, table) == judged(mine, view, table)
    assert filtered(mine, cycle, table) == before


# -- hints


def woken(resource: Resource, action: Action, view: PodView, old: Any, new: Any) -> bool:
    for each in plugin().events_to_register():
        if each.event.covers(ClusterEvent(resource, action)):
            assert each.hint is not None
            return each.hint(view, old, new) is QueueingHint.QUEUE
    return False


def placed_pod(labels: Mapping[str, str], namespace: str = "default") -> Pod:
    return web("other", labels=labels, namespace=namespace, nodeName="n").pod


IS, IS_NOT = placed_pod({"app": "web"}), placed_pod({"app": "db"})


@pytest.mark.parametrize(
    ("action", "old", "new", "is_woken"),
    [
        (Action.ADD, None, IS, True),
        (Action.ADD, None, IS_NOT, False),
        (Action.ADD, None, placed_pod({"app": "web"}, "other"), False),
        (Action.ADD, None, web("unplaced").pod, False),
        (Action.DELETE, IS, None, True),
        (Action.DELETE, IS_NOT, None, False),
        (Action.UPDATE_POD_LABEL, IS, IS_NOT, True),
        (Action.UPDATE_POD_LABEL, IS_NOT, IS, True),
        (Action.UPDATE_POD_LABEL, IS, placed_pod({"app": "web", "tier": "x"}), False),
        (Action.UPDATE_POD_SCALE_DOWN, IS, IS_NOT, False),
    ],
)
def test_a_change_of_a_placed_pod_wakes_those_it_helps(
    action: Action, old: Pod | None, new: Pod | None, is_woken: bool
) -> None:
    assert woken(Resource.ASSIGNED_POD, action, spread(constraint(ZONE)), old, new) is is_woken


A, B, BARE = node("n", labels={ZONE: "a"}), node("n", labels={ZONE: "b"}), node("n")
TAINTED = node("n", labels={ZONE: "a"}, taints=[{"key": "k", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("action", "old", "new", "is_woken"),
    [
        (Action.ADD, None, A, True),
        (Action.ADD, None, BARE, False),
        (Action.DELETE, A, None, True),
        (Action.DELETE, BARE, None, False),
        (Action.UPDATE_NODE_LABEL, A, B, True),
        (Action.UPDATE_NODE_LABEL, A, BARE, True),
        (Action.UPDATE_NODE_LABEL, BARE, A, True),
        (Action.UPDATE_NODE_LABEL, A, node("n", labels={ZONE: "a", "disk": "ssd"}), False),
        (Action.UPDATE_NODE_TAINT, TAINTED, A, True),
        (Action.UPDATE_NODE_CONDITION, BARE, A, False),
    ],
)
def test_a_change_of_a_node_wakes_those_it_helps(
    action: Action, old: Node | None, new: Node | None, is_woken: bool
) -> None:
    assert woken(Resource.NODE, action, spread(constraint(ZONE)), old, new) is is_woken


def test_a_toleration_wakes_a_pod_that_honors_taints_and_labels_one_that_is_counted() -> None:
    honoring = spread(constraint(ZONE, nodeTaintsPolicy="Honor"))
    tolerant = web("p", tolerations=[{"key": "k", "operator": "Exists"}]).pod
    own = Resource.UNSCHEDULED_POD
    assert woken(own, Action.UPDATE_POD_TOLERATION, honoring, web("p").pod, tolerant)
    assert not woken(own, Action.UPDATE_POD_TOLERATION, spread(constraint(ZONE)), web("p").pod, tolerant)
    changed = web("p", labels={"app": "db"}).pod
    assert woken(own, Action.UPDATE_POD_LABEL, spread(constraint(ZONE)), web("p").pod, changed)
    assert not woken(own, Action.UPDATE_POD_LABEL, spread(constraint(ZONE)), web("p").pod, web("p").pod)
