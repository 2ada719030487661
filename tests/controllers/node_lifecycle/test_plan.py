"""Which taints and labels a node should have, worked out from the node alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.node_lifecycle.condition_taints import KEYS, NOT_READY, OURS, UNREACHABLE
from nodeward.controllers.node_lifecycle.plan import plan
from tests.controllers.node_lifecycle.nodes import NOW, marks, node, taint


def taints_after(before: Node, *, may_add: bool = False, must_clear: bool = False) -> list[str]:
    found = plan(before, NOW, may_add=may_add, must_clear=must_clear)
    return marks(before.spec.taints if found is None else found.patch["spec"]["taints"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (node("True"), []),
        (node("False"), ["not-ready:NoSchedule"]),
        (node("Unknown"), ["unreachable:NoSchedule"]),
        (node(""), []),
        (node("True", ("MemoryPressure", "True")), ["memory-pressure:NoSchedule"]),
        (node("True", ("DiskPressure", "True")), ["disk-pressure:NoSchedule"]),
        (node("True", ("PIDPressure", "True")), ["pid-pressure:NoSchedule"]),
        (node("True", ("NetworkUnavailable", "True")), ["network-unavailable:NoSchedule"]),
        (node("True", ("NetworkUnavailable", "False"), ("MemoryPressure", "Unknown")), []),
        (node("True", unschedulable=True), ["unschedulable:NoSchedule"]),
        (node("True", taints=(taint(NOT_READY),)), []),
        (node("True", taints=(taint("node.kubernetes.io/unschedulable"),)), []),
        (node("Unknown", taints=(taint(NOT_READY),)), ["unreachable:NoSchedule"]),
        (node("", taints=(taint(NOT_READY),)), []),
    ],
    ids=lambda value: None,
)
def test_conditions_and_cordons_become_taints_that_keep_pods_away(before: Node, after: list[str]) -> None:
    assert taints_after(before) == after


def test_taints_of_others_stay_also_under_the_same_key_with_another_effect() -> None:
    theirs = (taint("example.com/mine"), taint(NOT_READY, "PreferNoSchedule"))
    assert taints_after(node("True", taints=(*theirs, taint(NOT_READY)))) == [
        "mine:NoSchedule",
        "not-ready:PreferNoSchedule",
    ]


def test_a_new_taint_says_since_when() -> None:
    found = plan(node("False"), NOW)
    assert found is not None
    assert [each.time_added for each in found.patch["spec"]["taints"]] == [NOW]


def test_a_patch_holds_only_for_the_node_it_was_made_for() -> None:
    found = plan(node("False"), NOW)
    assert found is not None
    assert found.patch["metadata"] == {"uid": "uid-n", "resourceVersion": "1"}


@pytest.mark.parametrize(
    ("status", "present", "may_add", "after"),
    [
        ("False", "", False, ""),
        ("False", "", True, NOT_READY),
        ("Unknown", "", True, UNREACHABLE),
        # One for the other needs no leave: the pods are leaving already.
        ("Unknown", NOT_READY, False, UNREACHABLE),
        ("False", UNREACHABLE, False, NOT_READY),
        ("False", NOT_READY, False, NOT_READY),
        ("True", UNREACHABLE, True, ""),
        ("True", NOT_READY, False, ""),
        ("", "", True, ""),
    ],
)
def test_the_taint_that_drives_pods_away(status: str, present: str, may_add: bool, after: str) -> None:
    before = node(status, taints=(taint(present, "NoExecute"),) if present else ())
    wanted = [f"{after.rpartition('/')[2]}:NoExecute"] if after else []
    found = [each for each in taints_after(before, may_add=may_add) if each.endswith("NoExecute")]
    assert found == wanted


def test_only_the_first_of_the_two_taints_counts_as_an_eviction() -> None:
    for before, evicts in (
        (node("Unknown"), True),
        (node("Unknown", taints=(taint(NOT_READY, "NoExecute"),)), False),
        (node("True", taints=(taint(NOT_READY),)), False),
    ):
        found = plan(before, NOW, may_add=True)
        assert found is not None
        assert found.evicts is evicts


def test_when_everything_is_lost_no_node_drives_pods_away() -> None:
    lost = node("Unknown", taints=(taint(UNREACHABLE, "NoExecute"), taint("mine", "NoExecute")))
    assert taints_after(lost, may_add=True, must_clear=True) == ["mine:NoExecute", "unreachable:NoSchedule"]


def test_labels_under_old_names_follow_those_that_rule() -> None:
    found = plan(node(labels={"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "plan9"}), NOW)
    assert found is not None
    assert found.patch["metadata"]["labels"] == {"beta.kubernetes.io/os": "linux"}
    assert plan(node(labels={"beta.kubernetes.io/os": "plan9"}), NOW) is None
    found = plan(node(labels={"kubernetes.io/arch": "amd64"}), NOW)
    assert found is not None
    assert found.patch["metadata"]["labels"] == {"beta.kubernetes.io/arch": "amd64"}


_KINDS = sorted({kind for kind, _ in KEYS} - {"Ready"})
_TAINTS = st.lists(
    st.builds(
        taint,
        st.sampled_from((*OURS, "example.com/a")),
        st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
    ),
    max_size=5,
    unique_by=lambda each: (each.key, each.effect),
)


@given(
    st.sampled_from(("True", "False", "Unknown", "")),
    st.lists(
        st.tuples(st.sampled_from(_KINDS), st.sampled_from(("True", "False", "Unknown"))),
        unique_by=lambda pair: pair[0],
    ),
    _TAINTS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_what_a_plan_leaves_needs_no_other_plan_and_keeps_what_is_not_ours(
    ready: str,
    conditions: list[tuple[str, str]],
    taints: list[Taint],
    unschedulable: bool,
    may_add: bool,
    must_clear: bool,
) -> None:
    before = node(ready, *conditions, taints=tuple(taints), unschedulable=unschedulable)
    found = plan(before, NOW, may_add=may_add, must_clear=must_clear)
    if found is None:
        return
    before.spec.taints = found.patch["spec"]["taints"]
    assert plan(before, NOW, may_add=may_add, must_clear=must_clear) is None
    theirs = [each for each in taints if each.key == "example.com/a" or each.effect == "PreferNoSchedule"]
    assert all(each in before.spec.taints for each in theirs)
    assert len({(each.key, each.effect) for each in before.spec.taints}) == len(before.spec.taints)
