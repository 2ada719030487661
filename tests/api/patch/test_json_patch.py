"""JSON patches change documents the way a Kubernetes API server does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.errors import ApiError
from nodeward.api.patch.json_patch import MAX_OPERATIONS, apply_json_patch

TABLE: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ({"a": 1}, [{"op": "add", "path": "/b"}], {"a": 1, "b": None}),
    ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
    ({"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
    ({"a": {"b/c": 1}}, [{"op": "remove", "path": "/a/b~1c"}], {"a": {}}),
    ({"a": {"b~c": 1}}, [{"op": "replace", "path": "/a/b~0c", "value": 2}], {"a": {"b~c": 2}}),
    ({"a": {"~1": 1}}, [{"op": "remove", "path": "/a/~01"}], {"a": {}}),
    ({"a": 1}, [{"op": "replace", "path": "/new", "value": 2}], {"a": 1, "new": 2}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    ({"a": {"x": 1}}, [{"op": "move", "from": "/a/x", "path": "/y"}], {"a": {}, "y": 1}),
    ({"a": {"x": [1]}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": [1]}, "b": {"x": [1]}}),
    ({"a": 1}, [{"op": "copy", "from": "/none", "path": "/b"}], {"a": 1, "b": None}),
    (
        {"a": [1, {"b": None}]},
        [{"op": "test", "path": "/a", "value": [1, {"b": None}]}],
        {"a": [1, {"b": None}]},
    ),
    ({"a": 1}, [{"op": "test", "path": "/none", "value": None}], {"a": 1}),
    ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}], {"a": 1}),
    (
        {"a": {}},
        [
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/b/x", "value": 1},
        ],
        {"a": {}, "b": {"x": 1}},
    ),
]


@pytest.mark.parametrize(("document", "patch", "expected"), TABLE)
def test_steps_change_the_document_and_nothing_else(document: Any, patch: list[Any], expected: Any) -> None:
    before, patch_before = copy.deepcopy(document), copy.deepcopy(patch)
    assert apply_json_patch(document, patch) == expected
    assert (document, patch) == (before, patch_before)


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": 1.0},
        {"op": "test", "path": "/a", "value": True},
        {"op": "remove", "path": "/none"},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "/l/2", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "replace", "path": "/l/1", "value": 1},
        {"op": "remove", "path": "/l/-"},
        {"op": "remove", "path": "/l/-2"},
        {"op": "move", "from": "/none", "path": "/b"},
        {"op": "add", "value": 1},
        {"op": "jump", "path": "/a"},
        {"path": "/a"},
        {"op": "replace", "path": "", "value": 3},
        {"op": "remove", "path": "/l/" + "9" * 5000},
    ],
)
def test_a_step_that_does_not_fit_is_refused_without_details(step: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": 1, "l": [1]}, [step])
    assert caught.value.code == 422
    assert caught.value.status.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (["x"], "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ],
)
def test_what_is_no_patch_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch({}, patch)
    assert caught.value.code == 400
    assert caught.value.status.message == f"error decoding patch: json: {message}"


def test_too_many_steps_are_too_large() -> None:
    step = {"op": "test", "path": "/a", "value": 1}
    assert apply_json_patch({"a": 1}, [step] * MAX_OPERATIONS) == {"a": 1}
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": 1}, [step] * (MAX_OPERATIONS + 1))
    assert caught.value.code == 413


def test_copies_cannot_fill_the_memory() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": ["x" * 1000]}, doubling)
    assert caught.value.code == 422


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 5) | st.text("ab~/", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text("ab~/", min_size=1, max_size=2), _JSON, max_size=3),
    _JSON,
    st.text("ab~/", min_size=1),
)
def test_adding_a_member_and_removing_it_again_changes_nothing(
    document: dict[str, Any], value: Any, name: str
) -> None:
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    document.pop(name, None)
    steps = [
        {"op": "add", "path": path, "value": value},
        {"op": "test", "path": path, "value": value},
        {"op": "remove", "path": path},
    ]
    assert apply_json_patch(document, steps) == document
