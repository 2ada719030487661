"""Pods that want to be near other pods, or apart from them: both forms of the plugin, and an obvious reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code
from nodeward.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.scheduler.cache.objects import node
from tests.scheduler.plugins import neighbours, profile
from tests.scheduler.plugins.neighbours import HOST, ZONE, cluster, filtered, judged, ranked, selects, web

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB, DB = {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
FITS = ""


def namespace(name: str, **labels: str) -> Namespace:
    return from_tree({"metadata": {"name": name, "labels": labels}}, Namespace)


LISTERS = FixedListers([namespace("default", team="x"), namespace("other", team="y")])


def plugin(arguments: Mapping[str, Any] | None = None) -> InterPodAffinity:
    base = profile.context()
    return InterPodAffinity(PluginContext(base.gates, base.version, arguments or {}, listers=LISTERS))


def term(key: str, selector: Any = WEB, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector, **more}


def near(*terms: Any) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def likes(weight: int, wish: Any) -> dict[str, Any]:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": wish}]}}


def dislikes(weight: int, wish: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": wish}]}}


def db(name: str, **more: Any) -> PodView:
    return web(name, labels={"app": "db"}, **more)


def said(view: PodView, table: NodeTable) -> dict[str, str]:
    return {name: status.message for name, status in judged(plugin(), view, table).items()}


# -- what must hold


def test_required_affinity_keeps_a_pod_to_domains_of_pods_it_wants() -> None:
    table = cluster({"a1": [web("w")], "a2": [], "b1": []})
    assert said(db("p", affinity=near(term(ZONE))), table) == {"a1": FITS, "a2": FITS, "b1": NEAR}
    assert said(db("p", affinity=near(term(HOST))), table) == {"a1": FITS, "a2": NEAR, "b1": NEAR}


def test_one_pod_must_satisfy_all_affinity_terms() -> None:
    both = {"app": "web", "tier": "x"}
    wish = near(term(ZONE), term(HOST, {"matchLabels": {"tier": "x"}}))
    table = cluster({"a1": [web("w")], "a2": [db("x", metadata={"labels": {"tier": "x"}})], "b1": []})
    assert set(said(db("p", affinity=wish), table).values()) == {NEAR}
    table.assume(web("both", labels=both), "b1")
    assert said(db("p", affinity=wish), table) == {"a1": NEAR, "a2": NEAR, "b1": FITS}


def test_the_first_of_pods_that_want_each_other_may_go_wherever_the_labels_are() -> None:
    table = cluster({"a1": [], "b1": [], "c1": []}, c1={"disk": "ssd"})
    mine = web("p", affinity=near(term(ZONE)))
    assert said(mine, table) == {"a1": FITS, "b1": FITS, "c1": NEAR}
    table.assume(web("w"), "b1")
    assert said(mine, table) == {"a1": NEAR, "b1": FITS, "c1": NEAR}


def test_a_pod_that_wants_others_is_not_helped_by_wanting() -> None:
    table = cluster({"a1": []})
    assert said(db("p", affinity=near(term(ZONE))), table) == {"a1": NEAR}


def test_required_anti_affinity_keeps_a_pod_off_the_domains_of_pods_it_does_not_want() -> None:
    table = cluster({"a1": [web("w")], "a2": [], "b1": [], "c1": []}, c1={})
    assert said(db("p", affinity=apart(term(ZONE))), table) == {
        "a1": APART,
        "a2": APART,
        "b1": FITS,
        "c1": FITS,
    }
    assert said(db("p", affinity=apart(term(HOST))), table) == {
        "a1": APART,
        "a2": FITS,
        "b1": FITS,
        "c1": FITS,
    }


def test_pods_that_are_there_keep_away_pods_they_do_not_want() -> None:
    table = cluster({"a1": [db("old", affinity=apart(term(ZONE)))], "a2": [], "b1": []})
    assert said(web("p"), table) == {"a1": REPELLED, "a2": REPELLED, "b1": FITS}
    assert said(db("p"), table) == {"a1": FITS, "a2": FITS, "b1": FITS}


def test_affinity_explains_before_anti_affinity_and_that_before_what_others_want() -> None:
    table = cluster({"a1": [db("d"), web("w", affinity=apart(term(HOST, DB)))], "a2": [], "b1": []})
    mine = db("p", affinity={**near(term(HOST)), **apart(term(ZONE, DB))})
    assert said(mine, table) == {"a1": APART, "a2": NEAR, "b1": NEAR}
    answer = judged(plugin(), mine, table)
    assert answer["a2"].code is Code.UNRESOLVABLE
    assert answer["a1"].code is Code.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["default"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}, "namespaces": ["other"]}, True),
    ],
)
def test_a_term_means_pods_of_the_namespaces_it_names_or_selects(more: dict[str, Any], fits: bool) -> None:
    table = cluster({"a1": [web("w", namespace="other")]})
    assert said(db("p", affinity=near(term(ZONE, **more))), table) == {"a1": FITS if fits else NEAR}
    table = cluster({"a1": [db("old", affinity=apart(term(ZONE, **more)))]})
    assert said(web("p", namespace="other"), table) == {"a1": REPELLED if fits else FITS}


def test_a_namespace_that_is_labelled_later_is_seen() -> None:
    listers = FixedListers([namespace("other")])
    base = profile.context()
    mine = InterPodAffinity(PluginContext(base.gates, base.version, {}, listers=listers))
    wish = near(term(ZONE, namespaceSelector={"matchLabels": {"team": "y"}}))
    table = cluster({"a1": [web("w", namespace="other")]})
    assert judged(mine, db("p", affinity=wish), table)["a1"].message == NEAR
    listers.put(namespace("other", team="y"))
    assert judged(mine, db("p", affinity=wish), table)["a1"].is_success


def test_a_pod_nobody_cares_about_and_that_cares_about_nobody_is_skipped() -> None:
    table = cluster({"a1": [web("w", affinity=apart(term(HOST)))]})
    mine = plugin()
    assert mine.pre_filter(CycleState(db("p")), db("p"), table).is_skip
    assert mine.pre_score(CycleState(db("p")), db("p"), table).is_skip
    assert not mine.concerns(db("p"), table)
    assert mine.concerns(web("p"), table)
    table.remove_pod("w")
    assert not mine.concerns(web("p"), table)
    assert mine.concerns(db("p", affinity=near(term(HOST))), table)


def test_a_selector_nobody_understands_rejects_the_pod() -> None:
    wish = near(term(ZONE, {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}))
    status = plugin().pre_filter(
        CycleState(db("p", affinity=wish)), db("p", affinity=wish), cluster({"a1": []})
    )
    assert status.code is Code.UNRESOLVABLE
    assert status.message == 'parsing pod: "Near" is not a valid label selector operator'


# -- what ranks


def test_preferred_terms_of_the_pod_rank_nodes() -> None:
    table = cluster({"a1": [web("w1"), web("w2")], "b1": [web("w3")], "c1": []})
    assert ranked(plugin(), db("p", affinity=likes(10, term(ZONE))), table) == {"a1": 100, "b1": 50, "c1": 0}
    assert ranked(plugin(), db("p", affinity=dislikes(10, term(ZONE))), table) == {
        "a1": 0,
        "b1": 50,
        "c1": 100,
    }


def test_what_pods_that_are_there_would_like_ranks_nodes() -> None:
    table = cluster({"a1": [db("d1", affinity=likes(4, term(ZONE)))], "b1": [], "c1": []})
    assert ranked(plugin(), web("p"), table) == {"a1": 100, "b1": 0, "c1": 0}
    table.assume(db("d2", affinity=dislikes(4, term(ZONE))), "b1")
    assert ranked(plugin(), web("p"), table) == {"a1": 100, "b1": 0, "c1": 50}
    assert ranked(plugin(), db("p"), table) is None


def test_required_affinity_of_pods_that_are_there_counts_as_the_configuration_says() -> None:
    table = cluster(
        {"a1": [db("d1", affinity=near(term(ZONE)))], "b1": [db("d2", affinity=likes(4, term(ZONE)))]}
    )
    assert ranked(plugin(), web("p"), table) == {"a1": 0, "b1": 100}
    assert ranked(plugin({"hardPodAffinityWeight": 9}), web("p"), table) == {"a1": 100, "b1": 0}
    only = cluster({"a1": [db("d1", affinity=near(term(ZONE)))], "b1": []})
    assert ranked(plugin({"hardPodAffinityWeight": 0}), web("p"), only) is None


def test_preferences_of_others_may_be_ignored_for_pods_without_any() -> None:
    table = cluster({"a1": [db("d1", affinity=likes(4, term(ZONE)))], "b1": [web("w")]})
    mine = plugin({"ignorePreferredTermsOfExistingPods": True})
    assert ranked(mine, web("p"), table) is None
    assert ranked(mine, web("p", affinity=likes(1, term(ZONE))), table) == {"a1": 100, "b1": 0}


# -- what if


def test_supposing_a_pod_is_there_or_not_is_what_counting_it_would_be() -> None:
    table = cluster({"a1": [web("w", affinity=apart(term(HOST, DB)))], "b1": []})
    mine, old = plugin(), table.pod("w")
    assert old is not None
    view = db("p", affinity=apart(term(ZONE)))
    cycle = CycleState(view)
    mine.pre_filter(cycle, view, table)
    supposed = cycle.copy()
    mine.remove_pod(supposed, view, old, node("a1", labels={HOST: "a1", ZONE: "a"}))
    mine.add_pod(supposed, view, web("new"), node("b1", labels={HOST: "b1", ZONE: "b"}))
    assert {name: s.message for name, s in filtered(mine, supposed, table).items()} == {
        "a1": FITS,
        "b1": APART,
    }
    assert {name: s.message for name, s in filtered(mine, cycle, table).items()} == {"a1": APART, "b1": FITS}


# -- against an obvious reference


def meant(wish: Mapping[str, Any], owner: PodView, other: PodView) -> bool:
    if not selects(wish["labelSelector"], other.labels):
        return False
    names, chosen = wish.get("namespaces", []), wish.get("namespaceSelector")
    if not names and chosen is None:
        return other.namespace == owner.namespace
    team = {"default": "x", "other": "y"}[other.namespace]
    is_chosen = chosen is not None and all(team == value for value in chosen.get("matchLabels", {}).values())
    return other.namespace in names or is_chosen


Trees = dict[str, dict[str, Any]]


def brute(view: PodView, wishes: Trees, table: NodeTable) -> tuple[dict[str, str], dict[str, int]]:
    """Every node's answer and raw score, from every pod on every node."""
    mine = wishes.get(view.uid, {})
    nodes = {row: table.view(row) for row in table.rows().tolist()}
    placed = [(other, at.node.metadata.labels) for at in nodes.values() for other in at.pods]
    answers: dict[str, str] = {}
    scores: dict[str, int] = {}

    def together(wish: Mapping[str, Any], here: Mapping[str, str], there: Mapping[str, str]) -> bool:
        key = wish["topologyKey"]
        return key in here and here[key] == there.get(key)

    def of(who: Mapping[str, Any], kind: str, how: str) -> list[Any]:
        return list(who.get(kind, {}).get(how, []))

    wanted = of(mine, "podAffinity", REQUIRED)
    company = [(p, at) for p, at in placed if all(meant(wish, view, p) for wish in wanted)]
    has_any = any(wish["topologyKey"] in at for wish in wanted for _, at in company)
    is_own = all(meant(wish, view, view) for wish in wanted)
    for at in nodes.values():
        here = at.node.metadata.labels
        is_near = all(
            wish["topologyKey"] in here
            and (any(together(wish, here, there) for _, there in company) or (not has_any and is_own))
            for wish in wanted
        )
        unwanted = any(
            meant(wish, view, p) and together(wish, here, there)
            for wish in of(mine, "podAntiAffinity", REQUIRED)
            for p, there in placed
        )
        repelled = any(
            meant(wish, p, view) and together(wish, here, there)
            for p, there in placed
            for wish in of(wishes.get(p.uid, {}), "podAntiAffinity", REQUIRED)
        )
        answers[at.name] = NEAR if not is_near else APART if unwanted else REPELLED if repelled else FITS
        score = 0
        for p, there in placed:
            theirs = wishes.get(p.uid, {})
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for each in of(mine, kind, PREFERRED):
                    wish = each["podAffinityTerm"]
                    score += sign * each["weight"] * (meant(wish, view, p) and together(wish, here, there))
                for each in of(theirs, kind, PREFERRED):
                    wish = each["podAffinityTerm"]
                    score += sign * each["weight"] * (meant(wish, p, view) and together(wish, here, there))
            score += sum(
                meant(wish, p, view) and together(wish, here, there)
                for wish in of(theirs, "podAffinity", REQUIRED)
            )
        scores[at.name] = score
    return answers, scores


TERMS = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from([HOST, ZONE]), "labelSelector": neighbours.SELECTORS},
    optional={
        "namespaces": st.sampled_from([[], ["other"]]),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "y"}}]),
    },
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        kind: st.fixed_dictionaries(
            {},
            optional={
                REQUIRED: st.lists(TERMS, max_size=2),
                PREFERRED: st.lists(
                    st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": TERMS}),
                    max_size=2,
                ),
            },
        )
        for kind in ("podAffinity", "podAntiAffinity")
    },
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[NodeTable, PodView, Trees]:
    wishes: Trees = {}

    def some(name: str) -> PodView:
        wishes[name] = draw(WISHES)
        return web(
            name, namespace=draw(neighbours.NAMESPACES), labels=draw(neighbours.APPS), affinity=wishes[name]
        )

    count = draw(st.integers(1, 4))
    names = [f"n{number}" for number in range(count)]
    labels = {name: draw(neighbours.NODE_LABELS) for name in names}
    table = cluster(
        {name: [some(f"{name}-{i}") for i in range(draw(st.integers(0, 2)))] for name in names}, **labels
    )
    return table, some("new"), wishes


@settings(max_examples=400)
@given(made=clusters())
def test_filter_and_score_are_what_looking_at_every_pod_gives(made: tuple[NodeTable, PodView, Trees]) -> None:
    table, view, wishes = made
    answers, raw = brute(view, wishes, table)
    assert said(view, table) == answers
    scores = ranked(plugin(), view, table)
    least, most = min(raw.values()), max(raw.values())
    if scores is None:
        assert least == most
    else:
        spread = most - least
        assert scores == {
            name: int(100 * ((score - least) / spread)) if spread else 0 for name, score in raw.items()
        }


@settings(max_examples=150)
@given(made=clusters(), data=st.data())
def test_supposing_is_what_doing_would_be(
    made: tuple[NodeTable, PodView, Trees], data: st.DataObject
) -> None:
    table, view, _ = made
    mine, cycle = plugin(), CycleState(view)
    if not mine.pre_filter(cycle, view, table).is_success:
        return
    uid = data.draw(st.sampled_from(sorted(each.uid for _, each in table.pods_by_row()) or [""]))
    gone = table.pod(uid)
    if gone is not None:
        where = table.node_of(uid)
        at = table.row_of(where or "")
        assert at is not None
        home = table.node(at)
        assert home is not None
        mine.remove_pod(cycle, view, gone, home)
        table.remove_pod(uid)
    supposed = filtered(mine, cycle, table)
    assert supposed == judged(mine, view, table)


# -- hints


def woken(resource: Resource, action: Action, view: PodView, old: Any, new: Any) -> bool:
    for each in plugin().events_to_register():
        if each.event.covers(ClusterEvent(resource, action)):
            assert each.hint is not None
            return each.hint(view, old, new) is QueueingHint.QUEUE
    return False


def placed_pod(labels: Mapping[str, str], namespace: str = "default", **spec: Any) -> Pod:
    return web("other", labels=labels, namespace=namespace, nodeName="n", **spec).pod


WAITS_FOR = db("p", affinity=near(term(ZONE)))
AVOIDS = db("p", affinity=apart(term(ZONE)))


@pytest.mark.parametrize(
    ("view", "action", "old", "new", "is_woken"),
    [
        (WAITS_FOR, Action.ADD, None, placed_pod({"app": "web"}), True),
        (WAITS_FOR, Action.ADD, None, placed_pod({"app": "db"}), False),
        (WAITS_FOR, Action.ADD, None, placed_pod({"app": "web"}, "other"), False),
        (WAITS_FOR, Action.ADD, None, web("unplaced").pod, False),
        (WAITS_FOR, Action.DELETE, placed_pod({"app": "web"}), None, False),
        (WAITS_FOR, Action.UPDATE_POD_LABEL, placed_pod({"app": "db"}), placed_pod({"app": "web"}), True),
        (WAITS_FOR, Action.UPDATE_POD_LABEL, placed_pod({"app": "web"}), placed_pod({"app": "db"}), False),
        (AVOIDS, Action.ADD, None, placed_pod({"app": "web"}), False),
        (AVOIDS, Action.DELETE, placed_pod({"app": "web"}), None, True),
        (AVOIDS, Action.DELETE, placed_pod({"app": "db"}), None, False),
        (AVOIDS, Action.UPDATE_POD_LABEL, placed_pod({"app": "web"}), placed_pod({"app": "db"}), True),
        (AVOIDS, Action.UPDATE_POD_LABEL, placed_pod({"app": "db"}), placed_pod({"app": "web"}), False),
        (web("p"), Action.DELETE, placed_pod({"app": "db"}, affinity=apart(term(HOST))), None, True),
        (db("p"), Action.DELETE, placed_pod({"app": "db"}, affinity=apart(term(HOST))), None, False),
        (
            db("p", affinity=near(term(ZONE, namespaceSelector={"matchLabels": {"team": "y"}}))),
            Action.ADD,
            None,
            placed_pod({"app": "web"}, "other"),
            True,
        ),
    ],
)
def test_a_change_of_a_placed_pod_wakes_those_it_helps(
    view: PodView, action: Action, old: Pod | None, new: Pod | None, is_woken: bool
) -> None:
    assert woken(Resource.ASSIGNED_POD, action, view, old, new) is is_woken


A, B, BARE = node("n", labels={ZONE: "a"}), node("n", labels={ZONE: "b"}), node("n")


@pytest.mark.parametrize(
    ("view", "action", "old", "new", "is_woken"),
    [
        (WAITS_FOR, Action.ADD, None, A, True),
        (WAITS_FOR, Action.ADD, None, BARE, False),
        (WAITS_FOR, Action.UPDATE_NODE_LABEL, BARE, A, True),
        (WAITS_FOR, Action.UPDATE_NODE_LABEL, A, B, True),
        (WAITS_FOR, Action.UPDATE_NODE_LABEL, A, BARE, False),
        (WAITS_FOR, Action.UPDATE_NODE_LABEL, A, A, False),
        (WAITS_FOR, Action.UPDATE_NODE_TAINT, BARE, A, False),
        (AVOIDS, Action.ADD, None, BARE, True),
        (AVOIDS, Action.UPDATE_NODE_LABEL, A, BARE, True),
        (AVOIDS, Action.UPDATE_NODE_LABEL, A, B, True),
        (AVOIDS, Action.UPDATE_NODE_LABEL, BARE, A, False),
        (web("p"), Action.ADD, None, A, False),
    ],
)
def test_a_change_of_a_node_wakes_those_it_helps(
    view: PodView, action: Action, old: Node | None, new: Node, is_woken: bool
) -> None:
    assert woken(Resource.NODE, action, view, old, new) is is_woken


def test_other_labels_of_its_own_wake_a_pod() -> None:
    assert woken(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL, web("p"), web("p").pod, db("p").pod)
    assert not woken(
        Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION, web("p"), web("p").pod, db("p").pod
    )
