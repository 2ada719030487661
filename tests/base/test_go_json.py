"""Bytes as Go writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.go_json import go_json, with_float_integers

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_what_could_end_a_script_is_escaped() -> None:
    tree = {"b": "<a href='x'>&\u2028\u2029</a>", "a": ["é漢😀", '"\\/', "\n\r\t\b\f\x00\x7f"]}
    assert go_json(tree).decode() == (
        '{"b":"\\u003ca href=\'x\'\\u003e\\u0026\\u2028\\u2029\\u003c/a\\u003e",'
        '"a":["é漢😀","\\"\\\\/","\\n\\r\\t\\b\\f\\u0000\x7f"]}'
    )


def test_keys_are_sorted_by_their_bytes_only_if_asked() -> None:
    tree = {"b": 1, "B": 2, "é": 3, "a": {"z": 1, "$": 2}}
    assert go_json(tree, is_sorted=True).decode() == '{"B":2,"a":{"$":2,"z":1},"b":1,"é":3}'
    assert go_json(tree).decode() == '{"b":1,"B":2,"é":3,"a":{"z":1,"$":2}}'


@given(TREES)
def test_what_is_read_and_written_again_gives_the_same_bytes(tree: Any) -> None:
    data = go_json(tree)
    assert json.loads(data) == tree
    assert go_json(json.loads(data)) == data


@pytest.mark.parametrize(
    ("number", "becomes"),
    [
        (30, 30),
        (2**53, 2**53),
        (2**53 + 1, 2**53),
        (-(2**53) - 1, -(2**53)),
        (1234567890123456789, 1234567890123456800),
        (2**63 - 1, 2**63 - 1),
        (True, True),
    ],
)
def test_integers_lose_what_a_float_cannot_hold(number: int, becomes: int) -> None:
    assert with_float_integers({"a": [number, "x"]}) == {"a": [becomes, "x"]}
