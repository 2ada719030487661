"""A tree claims the fields structured-merge-diff says it claims, and a comparison finds what changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from nodeward.api.apply.field_set import difference, intersection, paths, show
from nodeward.api.apply.ownership import NotIdentifiable, empty_tree
from nodeward.api.apply.walk import compare, fields_of
from nodeward.api.core_v1.pod import Pod
from tests.api.apply.trees import POD, pod_tree, trees


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"metadata": {"labels": {"a": "1"}}}, {"f:metadata": {"f:labels": {"f:a": {}}}}),
        ({"metadata": {"labels": {}}}, {"f:metadata": {"f:labels": {}}}),
        ({"metadata": {}}, {"f:metadata": {}}),
        ({"metadata": {"finalizers": ["b", "a"]}}, {"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}),
        ({"metadata": {"finalizers": []}}, {}),
        ({"metadata": {"finalizers": None}}, {"f:metadata": {"f:finalizers": {}}}),
        ({"spec": {"nodeSelector": {"a": "1"}}}, {"f:spec": {"f:nodeSelector": {}}}),
        ({"spec": {"tolerations": [{"key": "a"}]}}, {"f:spec": {"f:tolerations": {}}}),
        (
            {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}},
            {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"c"}': {".": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}
                    }
                }
            },
        ),
        ({"spec": {"imagePullSecrets": [{}]}}, {"f:spec": {"f:imagePullSecrets": {'k:{"name":""}': {}}}}),
        (
            {"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}]}},
            {"f:metadata": {"f:ownerReferences": {'k:{"uid":"1"}': {}}}},
        ),
    ],
)  # fmt: skip
def test_a_tree_claims_its_fields(tree: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fields_of(tree, POD) == expected


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({}, {"spec": {"hostname": "x"}}, [], [], [".spec", ".spec.hostname"]),
        ({"spec": {}}, {"spec": {"hostname": "x"}}, [], [], [".spec.hostname"]),
        ({"spec": {"hostname": "x"}}, {"spec": {"hostname": "y"}}, [], [".spec.hostname"], []),
        ({"spec": {"hostname": "x"}}, {"spec": {}}, [".spec.hostname"], [], []),
        ({"spec": None}, {"spec": {}}, [], [".spec"], []),
        (
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            ['.metadata.finalizers[="a"]'],
            [],
            ['.metadata.finalizers[="b"]'],
        ),
        (
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {}}},
            [],
            [".spec.nodeSelector"],
            [],
        ),
    ],
)
def test_a_comparison_finds_what_changed(
    old: dict[str, Any], new: dict[str, Any], removed: list[str], modified: list[str], added: list[str]
) -> None:
    found = compare(old, new, POD)
    assert [[show(path) for path in paths(part)] for part in found] == [removed, modified, added]


def test_items_that_cannot_be_told_apart_are_not_compared() -> None:
    with pytest.raises(NotIdentifiable, match="non-map elements"):
        compare({"spec": {}}, {"spec": {"containers": ["x"]}}, POD)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees(POD), trees(POD))
def test_a_comparison_read_backwards_is_the_comparison_of_the_other_way(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    forwards, backwards = compare(old, new, POD), compare(new, old, POD)
    assert forwards.added == backwards.removed
    assert forwards.removed == backwards.added
    assert forwards.modified == backwards.modified
    assert not intersection(forwards.modified, forwards.added)
    assert compare(old, old, POD).is_same


def test_what_a_tree_claims_is_among_what_it_adds() -> None:
    added = compare(empty_tree(Pod), pod_tree(), POD).changed
    claimed = fields_of(pod_tree(), POD)
    assert sorted(paths(difference(claimed, added))) == [("f:status",)], "an empty status is nothing new"
