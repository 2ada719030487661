"""Trees merge in the order users know, and lose exactly the fields a set names."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.apply.field_set import FieldSet, from_paths, named
from nodeward.api.apply.path_element import key_element
from nodeward.api.apply.tree_merge import merge_trees, remove_fields, with_parents
from tests.api.apply.trees import POD


def finalizers(names: str) -> dict[str, Any]:
    return {"metadata": {"finalizers": list(names)}}


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ("abc", "ab", "abc"),
        ("ab", "abc", "abc"),
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("ab", "ba", "ba"),
        ("abc", "def", "abcdef"),
        ("abc", "cdef", "abcdef"),
        ("abcgf", "cdef", "abcgdef"),
        ("cdef", "ace", "acdef"),
        ("abcxyz", "defxyz", "abcdefxyz"),
        ("cagf", "cfag", "cfag"),
        ("abcd", "defa", "bcdefa"),
        ("cdefghij", "2h3e4kl", "cdfg2hij3e4kl"),
        ("abcdefghij", "1b2h3e4kl", "a1bcdfg2hij3e4kl"),
        ("abb", "c", "abbc"),
        ("abb", "b", "ab"),
        ("abb", "a", "abb"),
        ("abcdec", "1b2ed", "a1bc2ecd"),
        ("abcdec", "1b2ced", "a1b2ced"),
        ("aabb", "bcd", "aabcd"),
    ],
)
def test_sets_merge_in_the_applied_order(live: str, applied: str, expected: str) -> None:
    merged = merge_trees(finalizers(live), finalizers(applied), POD)
    assert "".join(merged["metadata"]["finalizers"]) == expected


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ({}, {"securityContext": {}}, {"securityContext": {}}),
        ({"securityContext": {}}, {"securityContext": None}, {"securityContext": None}),
        (
            {"securityContext": {"runAsUser": 1}},
            {"securityContext": None},
            {"securityContext": {"runAsUser": 1}},
        ),
        (
            {"securityContext": {"runAsUser": 1}},
            {"securityContext": {}},
            {"securityContext": {"runAsUser": 1}},
        ),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {}}, {"nodeSelector": {}}),
        ({"hostname": "x"}, {"hostname": None}, {"hostname": None}),
    ],
)
def test_empty_and_null_are_told_apart(live: Any, applied: Any, expected: Any) -> None:
    assert merge_trees({"spec": live}, {"spec": applied}, POD) == {"spec": expected}


A, B = key_element({"name": "a"}), key_element({"name": "b"})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (from_paths(named("spec", "hostname")), {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        (from_paths((*named("spec", "containers"), A)), {"containers": [{"name": "b"}], "hostname": "h"}),
        (
            from_paths((*named("spec", "containers"), A, "f:image")),
            {"containers": [{"name": "a"}, {"name": "b"}], "hostname": "h"},
        ),
        (
            from_paths((*named("spec", "containers"), A), (*named("spec", "containers"), B)),
            {"containers": None, "hostname": "h"},
        ),
        (from_paths(named("spec", "nothing")), None),
    ],
)
def test_named_fields_are_removed(fields: FieldSet, expected: Any) -> None:
    spec = {"containers": [{"name": "a", "image": "1"}, {"name": "b"}], "hostname": "h"}
    assert remove_fields({"spec": spec}, fields, POD) == {"spec": spec if expected is None else expected}


def test_parents_are_the_declared_fields_around_what_is_in_the_set() -> None:
    fields = from_paths(
        named("metadata", "labels", "a"),
        (*named("spec", "containers"), A, "f:resources", "f:limits", "f:cpu"),
    )
    parents = {
        "f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            ".": {},
            "f:containers": {
                ".": {},
                A: {"f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}},
            },
        },
    }
    assert with_parents(fields, POD) == parents
