"""What is counted pod by pod is what counting all pods would give."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodeward.api.codec import from_tree
from nodeward.api.meta import LabelSelector
from nodeward.rules.pod_affinity import terms_of
from nodeward.rules.selectors import LabelRequirements, from_label_selector
from nodeward.scheduler.cache.columns import PodIndex
from nodeward.scheduler.cache.existing_terms import EXISTING_TERMS, FEW_ROWS, ExistingTerms, TermUse
from nodeward.scheduler.cache.pod_groups import LONGEST_LOG, POD_GROUPS, Group, PodGroups, Tally
from nodeward.scheduler.cache.signature_memo import SignatureMemo
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.pod import PodView
from tests.scheduler.cache.objects import new_table, node, pod

ZONE = "zone"
WEB = from_label_selector(from_tree({"matchLabels": {"app": "web"}}, LabelSelector))
EVERYTHING = LabelRequirements()
HERE = frozenset({"default"})
GROUPS = (
    Group(((HERE, WEB),)),
    Group(((HERE, WEB),), with_terminating=False),
    Group(((None, WEB),)),
    Group(((HERE, EVERYTHING), (None, WEB))),
    Group(((HERE, None),)),
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
AFFINITY = st.sampled_from(
    [
        None,
        {"podAntiAffinity": {REQUIRED: [TERM]}},
        {"podAffinity": {REQUIRED: [TERM], PREFERRED: [{"weight": 7, "podAffinityTerm": TERM}]}},
        {"podAntiAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": TERM}]}},
    ]
)
NODES = st.sampled_from([f"n{number}" for number in range(18)])


@st.composite
def views(draw: st.DrawFn, name: str) -> PodView:
    metadata: dict[str, Any] = {
        "namespace": draw(st.sampled_from(["default", "other"])),
        "labels": draw(st.sampled_from([{}, {"app": "web"}, {"app": "db"}])),
    }
    if draw(st.booleans()):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod(name, metadata=metadata, affinity=draw(AFFINITY), nodeName=draw(NODES))


class Counting(RuleBasedStateMachine):
    """Pods and nodes come, change and go; some groups are asked for early, some late, and memory is scarce."""

    @initialize()
    def start(self) -> None:
        self.table = new_table()
        self.groups = PodIndex(
            "few groups", lambda table: PodGroups(table, most_bytes=3 * 8 * table.capacity)
        )

    @rule(data=st.data(), number=st.integers(0, 20))
    def pod_comes_or_changes(self, data: st.DataObject, number: int) -> None:
        self.table.add_pod(data.draw(views(f"p{number}")))

    @rule(number=st.integers(0, 20))
    def pod_goes(self, number: int) -> None:
        self.table.remove_pod(f"p{number}")

    @rule(name=NODES, zone=st.sampled_from(["a", "b"]))
    def node_comes_or_changes(self, name: str, zone: str) -> None:
        self.table.upsert_node(node(name, labels={ZONE: zone}))

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        self.table.remove_node(name)

    @rule(group=st.sampled_from(GROUPS))
    def group_is_asked_for(self, group: Group) -> None:
        groups = self.table.pod_index(self.groups)
        found = groups.tally(group).column
        assert found.tolist() == counted(self.table, group)
        assert len(groups) <= 3

    @invariant()
    def terms_are_what_adding_up_gives(self) -> None:
        slots, size = self.table.labels.slots(ZONE)
        sums = {
            use: np.zeros(size) if not held else sum(each.by_slot(slots, size) for each in held)
            for use in TermUse
            for held in [[each for each in self.meaning() if each.use is use]]
        }
        again: dict[TermUse, list[float]] = {use: [0.0] * size for use in TermUse}
        for row, view in self.table.pods_by_row():
            terms = terms_of(view.pod)
            for use, amounts in (
                (TermUse.REPELS, [1 for _ in terms.apart]),
                (TermUse.NEEDS, [1 for _ in terms.near]),
                (TermUse.LIKES, [term.weight for term in terms.liked]),
            ):
                # Their own namespace is what all of them mean.
                again[use][int(slots[row])] += sum(amounts) if view.namespace == "default" else 0
        assert {use: list(found) for use, found in sums.items()} == again

    def meaning(self) -> Any:
        return self.table.pod_index(EXISTING_TERMS).meaning("default", {"app": "web"}, {})


def counted(table: NodeTable, group: Group) -> list[int]:
    found = [0] * table.capacity
    for row, view in table.pods_by_row():
        found[row] += group.holds_pod(view)
    return found


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=40, stateful_step_count=30)


def test_nothing_is_counted_before_a_group_is_asked_for() -> None:
    table = new_table()
    table.upsert_node(node("n"))
    table.assume(pod("p", metadata={"labels": {"app": "web"}}), "n")
    assert not table._declared.of_pods
    assert table.pod_index(POD_GROUPS).tally(GROUPS[0]).column.sum() == 1


def test_a_tally_says_what_changed_unless_that_is_too_long_ago() -> None:
    tally = Tally(4)
    seen = tally.version
    tally.add(2, 1)
    tally.add(3, -1)
    assert tally.since(seen) == [(2, 1), (3, -1)]
    assert tally.since(tally.version) == []
    for _ in range(LONGEST_LOG):
        tally.add(1, 1)
    assert tally.since(seen) is None
    assert tally.column.tolist() == [0, LONGEST_LOG, 1, -1]


def test_a_term_held_on_many_rows_sums_up_as_on_few() -> None:
    table = new_table()
    held = ExistingTerms(table)
    views = [pod(f"p{row}", affinity={"podAntiAffinity": {REQUIRED: [TERM]}}) for row in range(3 * FEW_ROWS)]
    for row, view in enumerate(views):
        # The table grows in between.
        table.capacity = 2 * FEW_ROWS if row < 2 * FEW_ROWS else 4 * FEW_ROWS
        held.put_on(view, row)
    slots = np.arange(4 * FEW_ROWS) % 3
    (term,) = held.meaning("default", {"app": "web"}, {})
    assert term.by_slot(slots, 4).tolist() == [FEW_ROWS, FEW_ROWS, FEW_ROWS, 0]
    version = held.version
    for row, view in enumerate(views):
        held.taken_off(view, row)
    assert (len(held), held.version) == (0, version + 1)
    assert not term.by_slot(slots, 4).any()


def test_what_was_not_asked_for_lately_is_forgotten() -> None:
    kept = SignatureMemo(2)
    kept.put("plugin", b"one", 1)
    kept.put("plugin", b"two", 2)
    assert kept.get("plugin", b"one") == 1
    kept.put("plugin", b"three", 3)
    assert (kept.get("plugin", b"one"), kept.get("plugin", b"two"), len(kept)) == (1, None, 2)
    assert kept.get("other", b"one") is None
