"""Merge patches follow RFC 7386, with a Kubernetes API server's habits about nulls."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.errors import ApiError
from nodeward.api.patch.merge_patch import apply_merge_patch, create_merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": [1]}, {"a": [{"x": None}, None]}, {"a": [{}, None]}),
        ({"a": {"b": 1}}, {"a": [{"x": None}]}, {"a": [{"x": None}]}),
    ],
)
def test_a_merge_patch_changes_what_it_names(
    document: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    before, patch_before = copy.deepcopy(document), copy.deepcopy(patch)
    assert apply_merge_patch(document, patch) == expected
    assert (document, patch) == (before, patch_before)


@pytest.mark.parametrize("patch", [None, [], "x", 3, True])
def test_what_is_no_object_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(ApiError) as caught:
        apply_merge_patch({}, patch)
    assert caught.value.code == 400


_JSON = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3)
    ),
    max_leaves=10,
)
_DOCUMENTS = st.dictionaries(st.text("abc", max_size=1), _JSON, max_size=3)


@given(_DOCUMENTS, _DOCUMENTS)
def test_a_created_patch_leads_from_the_old_to_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply_merge_patch(old, create_merge_patch(old, new)) == new


@given(_DOCUMENTS)
def test_equal_documents_need_no_patch(document: dict[str, Any]) -> None:
    assert create_merge_patch(document, copy.deepcopy(document)) == {}
