"""Strategic merge patches merge lists by key, obey directives, and share what they do not name."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.patch.strategic import apply_strategic_merge_patch
from nodeward.api.schema import schema_of

POD = schema_of(Pod)


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


def finalizers(*names: str) -> dict[str, Any]:
    return {"metadata": {"finalizers": list(names)}}


TABLE: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "maps merge, null removes",
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"a": None, "c": "3"}}},
        {"metadata": {"labels": {"b": "2", "c": "3"}}},
    ),
    (
        "keyed lists merge item by item, in the order of the patch for what it names",
        containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"}),
        containers({"name": "b", "image": "2"}, {"name": "c"}),
        containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}),
    ),
    (
        "an item is deleted by its key",
        containers({"name": "a"}, {"name": "b"}),
        containers({"name": "a", "$patch": "delete"}),
        containers({"name": "b"}),
    ),
    (
        "a list is replaced on request",
        containers({"name": "a"}, {"name": "b"}),
        containers({"$patch": "replace"}, {"name": "c"}),
        containers({"name": "c"}),
    ),
    (
        "a map is replaced on request",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    (
        "a map is emptied on request",
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}},
    ),
    ("plain values merge without repeats", finalizers("a", "b"), finalizers("b", "c"), finalizers("a", "b", "c")),
    (
        "plain values are deleted by their own list",
        finalizers("a", "b", "c"),
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}},
        finalizers("b", "c"),
    ),
    (
        "the order of plain values can be asked for",
        finalizers("a", "b", "c"),
        {"metadata": {"$setElementOrder/finalizers": ["c", "d", "a"], "finalizers": ["d"]}},
        finalizers("b", "c", "d", "a"),
    ),
    (
        "the order of items can be asked for without changing them",
        containers({"name": "a", "image": "1"}, {"name": "b"}),
        {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
        containers({"name": "b"}, {"name": "a", "image": "1"}),
    ),
    (
        "order and change together, as kubectl apply sends them",
        containers({"name": "a", "image": "1"}, {"name": "b"}),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "c"}, {"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}],
            }
        },
        containers({"name": "c"}, {"name": "a", "image": "2"}),
    ),
    (
        "only the kept members of a union survive",
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/"}}]}},
        {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
    ),
    (
        "lists without a key are replaced",
        containers({"name": "a", "args": ["1", "2"]}),
        containers({"name": "a", "args": ["3"]}),
        containers({"name": "a", "args": ["3"]}),
    ),
    (
        "tolerations are replaced",
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    (
        "nulls and directives do not survive in added values",
        {},
        {"spec": {"a": None, "b": {"c": None, "d": 1}, "e": {"$patch": "delete"}, "f": [{"$patch": "replace"}, 1]}},
        {"spec": {"b": {"d": 1}, "f": [1]}},
    ),
    (
        "ports merge by their number though they are owned by number and protocol",
        containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        containers({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}),
        containers({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]}),
    ),
    (
        "conditions merge by type",
        {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}]}},
    ),
    ("a value of another form is taken as it is", {"metadata": {"name": "x"}}, {"metadata": {"name": ["y"]}},
     {"metadata": {"name": ["y"]}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "patch", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_patch_merges(document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before, patch_before = copy.deepcopy(document), copy.deepcopy(patch)
    result = apply_strategic_merge_patch(document, patch, POD)
    assert result == expected
    assert (document, patch) == (before, patch_before)


@pytest.mark.parametrize(
    ("document", "patch", "message"),
    [
        (
            containers({"name": "a"}),
            containers({"image": "x", "command": ["y", "z"]}),
            "map: map[command:[y z] image:x] does not contain declared merge key: name",
        ),
        (
            containers({"name": "a"}),
            containers({"$patch": "delete"}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            containers({"name": "a"}),
            containers({"name": "a", "$patch": "merge"}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"metadata": {"labels": {}}},
            {"metadata": {"labels": {"$patch": "x"}}},
            "unknown patch type: x in map: map[$patch:x]",
        ),
        (finalizers("a"), finalizers() | {"metadata": {"finalizers": [1]}},
         "list element types are not identical: [[a] [1]]"),
        ({"spec": {}}, {"spec": {"$retainKeys": "x"}}, "invalid patch format of retainKeys"),
        ({"spec": {}}, {"spec": {"$retainKeys": ["x"], "y": 1}}, "invalid patch format of retainKeys"),
        ({"spec": {}}, {"spec": {"$setElementOrder": ["x"]}}, "invalid patch format of setElementOrder list"),
        ({"metadata": {}}, {"metadata": {"$deleteFromPrimitiveListX": []}}, "invalid patch format of primitive list"),
        (finalizers("a"), {"metadata": {"$setElementOrder/finalizers": {}}},
         "expected a []interface {}, but received a map[string]interface {}"),
        (
            finalizers(),
            {"metadata": {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}},
            "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
        ),
    ],
)  # fmt: skip
def test_a_patch_that_makes_no_sense_is_a_bad_request(
    document: dict[str, Any], patch: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        apply_strategic_merge_patch(document, patch, POD)
    assert (caught.value.code, caught.value.status.message) == (400, message)


def test_lists_of_lists_cannot_be_merged() -> None:
    with pytest.raises(ApiError) as caught:
        apply_strategic_merge_patch(
            {"metadata": {"finalizers": [["a"]]}}, {"metadata": {"finalizers": [["b"]]}}, POD
        )
    assert caught.value.code == 422


def test_what_the_patch_does_not_name_is_shared_not_copied() -> None:
    document = containers({"name": "a"}) | {"metadata": {"labels": {"a": "1"}, "annotations": {"x": "y"}}}
    result = apply_strategic_merge_patch(document, {"metadata": {"labels": {"b": "2"}}}, POD)
    assert result["spec"] is document["spec"]
    assert result["metadata"]["annotations"] is document["metadata"]["annotations"]


def test_lists_deep_inside_a_template_know_their_keys() -> None:
    document = {"spec": {"template": containers({"name": "a", "env": [{"name": "X", "value": "1"}]})}}
    patch = {"spec": {"template": containers({"name": "a", "env": [{"name": "Y", "value": "2"}]})}}
    result = apply_strategic_merge_patch(document, patch, schema_of(Deployment))
    [container] = result["spec"]["template"]["spec"]["containers"]
    assert {variable["name"] for variable in container["env"]} == {"X", "Y"}


_CONTAINERS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), max_size=4).map(
    lambda images: containers(*({"name": name, "image": image} for name, image in images.items()))
)


@given(_CONTAINERS, _CONTAINERS)
def test_a_patch_applied_twice_is_a_patch_applied_once(
    document: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = apply_strategic_merge_patch(document, patch, POD)
    assert apply_strategic_merge_patch(once, patch, POD) == once
    merged = {c["name"]: c["image"] for c in document["spec"]["containers"] + patch["spec"]["containers"]}
    assert {c["name"]: c["image"] for c in once["spec"]["containers"]} == merged
    assert len(once["spec"]["containers"]) == len(merged)
