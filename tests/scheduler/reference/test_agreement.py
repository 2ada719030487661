"""Again and again a random pod in a random cluster: the scheduler and the reference say the same.

The tables are changed between the questions, as a cluster changes, and the same kinds of pods are asked for again and
again, so that what is brought up to date row by row is compared with what is worked out from nothing.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.service import Service
from nodeward.features.declared import Version
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.fit_error import fit_error_message
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins import REGISTRY
from tests.rounds import rounds, seed_of, soak
from tests.scheduler.plugins.profile import GATES, Plain
from tests.scheduler.reference.cluster import Cluster
from tests.scheduler.reference.filters import FILTERS
from tests.scheduler.reference.random_objects import GPU, ZONE, Maker
from tests.scheduler.reference.scheduler import Judged, Reference, Rejection
from tests.scheduler.reference.scores import SCORES

Tree = dict[str, Any]

PAIRS = rounds(800, 10_000)
QUESTIONS = 40
BATCHES = 4
#: Plugins that judge nodes as objects of the storage or the resource API decide; they have tests of their own.
ELSEWHERE = frozenset(
    {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources"}
)
WEIGHTS = {each.name: each.default_weight for each in REGISTRY}
JUDGES = [each for each in REGISTRY if each.name in FILTERS or each.name in SCORES]

NAMESPACES = {"default": {"team": "x"}, "other": {}}
SERVICE: Tree = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "a"}}}

RESOURCES = [
    {"name": "cpu", "weight": 2},
    {"name": "ephemeral-storage", "weight": 1},
    {"name": "memory", "weight": 3},
    {"name": GPU, "weight": 5},
]
SHAPE = [
    {"utilization": 10, "score": 3},
    {"utilization": 40, "score": 10},
    {"utilization": 90, "score": 1},
]
ADDED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["12"]}]}]
    },
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 7, "preference": {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}}
    ],
}
ARGUMENTS: list[dict[str, Tree]] = [
    {},
    {
        "NodeResourcesFit": {
            "scoringStrategy": {"type": "MostAllocated", "resources": RESOURCES},
            "ignoredResourceGroups": ["example.com"],
        },
        "NodeResourcesBalancedAllocation": {"resources": [{"name": each["name"]} for each in RESOURCES]},
        "NodeAffinity": {"addedAffinity": ADDED},
        "InterPodAffinity": {"hardPodAffinityWeight": 40},
    },
    {
        "NodeResourcesFit": {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": RESOURCES,
                "requestedToCapacityRatio": {"shape": SHAPE},
            }
        },
        "InterPodAffinity": {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
    },
]


class World:
    """One cluster twice: as the scheduler's table and as plain JSON. Both are told the same."""

    def __init__(self, make: Maker, arguments: dict[str, Tree]) -> None:
        self.make = make
        self.plain = Cluster(namespaces=NAMESPACES, services=[SERVICE])
        self.table = NodeTable()
        listers = FixedListers([from_tree(SERVICE, Service)])
        for name, labels in NAMESPACES.items():
            listers.put(from_tree({"metadata": {"name": name, "labels": labels}}, Namespace))
        self.plugins: list[Plugin] = [
            each(PluginContext(GATES, Version.parse("1.37"), arguments.get(each.name, {}), listers=listers))
            for each in JUDGES
        ]
        self.classes = PodClasses(self.table, self.plugins, WEIGHTS)
        self.reference = Reference([(each.name, each.default_weight) for each in JUDGES], arguments)
        self._made = 0

    # -- what happens

    def add_node(self, name: str) -> None:
        node = self.make.node(name)
        self.plain.nodes[name] = node
        self.table.upsert_node(from_tree(node, Node))

    def remove_node(self, name: str) -> None:
        del self.plain.nodes[name]
        self.table.remove_node(name)

    def place(self, pod: Tree, node: str, *, assume: bool) -> None:
        tree = self.make.placed(pod, node)
        if assume:
            # Assumed pods have no node in their spec, and no status that says anything.
            self.plain.put({**pod, "spec": tree["spec"]})
            assert self.table.assume(PodView(from_tree(pod, Pod)), node)
        else:
            self.plain.put(tree)
            self.table.add_pod(PodView(from_tree(tree, Pod)))

    def remove_pod(self, uid: str) -> None:
        self.plain.remove(uid)
        assert self.table.remove_pod(uid)

    def again(self, template: Tree) -> Tree:
        """Another pod of the same kind."""
        self._made += 1
        uid = f"p{self._made}"
        return {**template, "metadata": {**template["metadata"], "name": uid, "uid": uid}}

    def change(self, templates: list[Tree]) -> None:
        """Something happens in the cluster."""
        make, names = self.make, sorted(self.plain.nodes)
        happens = make.one("place", "place", "place", "remove", "node", "node", "nothing", "leave")
        if happens == "place" and names:
            self.place(self.again(make.one(*templates)), make.one(*names), assume=make.maybe(0.5))
        elif happens == "remove" and self.plain.pods:
            self.remove_pod(make.one(*sorted(self.plain.pods)))
        elif happens == "node":
            self.add_node(f"n{make.below(len(names) + 2)}")
        elif happens == "leave" and len(names) > 1 and make.maybe(0.3):
            self.remove_node(make.one(*names))

    # -- what is compared

    def ask(self, pod: Tree, offset: int) -> None:
        view = PodView(from_tree(pod, Pod))
        wanted = self.reference.judge(pod, self.plain)
        assert sorted([*wanted.rejected, *wanted.scores]) == sorted(self.plain.nodes), "each node once"
        self._compare_columns(view, wanted, offset)
        if offset % 2:
            # The plain form takes as long as all the rest: it is asked every other time.
            rejected, scores = Plain(self.plugins).judge(view, self.table)
            assert _told(rejected) == wanted.rejected
            assert scores == wanted.scores

    def _compare_columns(self, view: PodView, wanted: Judged, offset: int) -> None:
        table, classes = self.table, self.classes
        why = classes.explain(view)
        assert _told(why.rejected) == wanted.rejected
        assert sorted(why.fitting) == sorted(wanted.scores)
        assert sorted(table.name_of(row) for row in classes.fitting(view).tolist()) == sorted(wanted.scores)
        picked = classes.pick(view, offset)
        if not wanted.scores:
            assert picked.row is None
            self._compare_counts(view, wanted)
            return
        assert picked.row is not None
        best = max(wanted.scores.values())
        assert wanted.scores[table.name_of(picked.row)] == best
        if picked.found.stateful:
            rows, totals, _ = classes._with_stateful(view, picked.found)
        else:
            rows = np.flatnonzero(picked.found.fits)
            totals = picked.found.total[rows]
        # What is the same for all nodes is left out of the columns.
        shift = best - int(totals.max())
        found = {
            table.name_of(row): int(n) + shift for row, n in zip(rows.tolist(), totals.tolist(), strict=True)
        }
        assert found == wanted.scores

    def _compare_counts(self, view: PodView, wanted: Judged) -> None:
        """What the event says adds up to the number of nodes, if each node has one reason."""
        said = self.classes.diagnose(view)
        counts: dict[str, int] = {}
        for each in wanted.rejected.values():
            for reason in each.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        assert (said.nodes, dict(said.counts)) == (len(wanted.rejected), counts)
        several = sum(len(each.reasons) - 1 for each in wanted.rejected.values())
        assert sum(said.counts.values()) == said.nodes + several
        message = fit_error_message(said.nodes, said.counts)
        assert message.startswith(f"0/{said.nodes} nodes are available")


def _told(rejected: Any) -> dict[str, Rejection]:
    def one(status: Status) -> Rejection:
        return Rejection(status.plugin, tuple(sorted(status.reasons)), status.code is Code.UNSCHEDULABLE)

    return {name: one(status) for name, status in rejected.items()}


def live(
    make: Maker, arguments: dict[str, Tree], questions: int, *, most_nodes: int = 30, kinds: int = 6
) -> int:
    """One cluster from its first node on; how many questions were asked of it."""
    world = World(make, arguments)
    for number in range(1 + min(make.below(most_nodes) for _ in range(3))):
        world.add_node(f"n{number}")
    templates = [make.pod(f"template{number}") for number in range(kinds)]
    for _ in range(make.below(2 * len(world.plain.nodes) + 1)):
        world.change(templates)
    for _ in range(questions):
        world.change(templates)
        world.ask(world.again(make.one(*templates)), make.below(50))
    return questions


@soak
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_scheduler_and_the_reference_agree(batch: int) -> None:
    asked = 0
    while asked < PAIRS // BATCHES:
        seed = seed_of(f"agreement-{batch}-{asked}")
        arguments = ARGUMENTS[asked // QUESTIONS % len(ARGUMENTS)]
        try:
            asked += live(Maker(Random(seed)), arguments, QUESTIONS)
        except AssertionError as error:
            error.add_note(f"live(Maker(Random({seed!r})), {arguments}, {QUESTIONS})")
            raise


@settings(max_examples=60, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), which=st.integers(0, len(ARGUMENTS) - 1))
def test_they_agree_in_small_clusters_that_shrink(random: Random, which: int) -> None:
    live(Maker(random), ARGUMENTS[which], questions=3, most_nodes=4, kinds=2)


def test_every_shipped_plugin_that_filters_or_scores_is_in_the_reference() -> None:
    for each in REGISTRY:
        plugin = each(PluginContext(GATES, Version.parse("1.37")))
        if each.name in ELSEWHERE:
            continue
        if hasattr(plugin, "filter_rows") or hasattr(plugin, "filter"):
            assert each.name in FILTERS
        if each.default_weight:
            assert each.name in SCORES


def test_the_generator_makes_pods_that_fit_and_pods_that_do_not() -> None:
    reasons: set[str] = set()
    fitted = 0
    for seed in range(150):
        make = Maker(Random(seed))
        world = World(make, ARGUMENTS[1])
        templates = [make.pod(f"t{number}") for number in range(8)]
        for number in range(8):
            world.add_node(f"n{number}")
        for _ in range(20):
            world.change(templates)
        judged = world.reference.judge(make.pod("new"), world.plain)
        fitted += bool(judged.scores)
        reasons.update(each.plugin for each in judged.rejected.values())
    assert 20 < fitted < 130
    assert reasons == {each.name for each in JUDGES if each.name in FILTERS} - {"NodeName"} | (
        reasons & {"NodeName"}
    )
