"""Sets of fields behave as sets, and are written as managed fields are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.apply.field_set import (
    FieldSet,
    Path,
    decode,
    decode_foreign,
    difference,
    encode,
    from_paths,
    has,
    included,
    intersection,
    leaves,
    named,
    paths,
    recursive_difference,
    show,
    union,
)
from nodeward.api.apply.path_element import key_element, value_element

_ELEMENTS = st.sampled_from(
    ["f:a", "f:b", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":443}', 'v:"z"', "i:3"]
)
_PATHS = st.lists(_ELEMENTS, min_size=1, max_size=3).map(tuple)
_SETS = st.lists(_PATHS, max_size=6)


def members(fields: FieldSet) -> set[Path]:
    return set(paths(fields))


@given(_SETS, _SETS)
def test_operations_are_those_of_sets(one: list[Path], two: list[Path]) -> None:
    left, right = from_paths(*one), from_paths(*two)
    assert members(left) == set(one)
    assert members(union(left, right)) == set(one) | set(two)
    assert members(intersection(left, right)) == set(one) & set(two)
    assert members(difference(left, right)) == set(one) - set(two)
    below = {path for path in one if any(path[: len(other)] == other for other in two)}
    assert members(recursive_difference(left, right)) == set(one) - below
    inner = {path for path in one if any(other[: len(path)] == path and other != path for other in one)}
    assert members(leaves(left)) == set(one) - inner


@given(_SETS, _SETS)
def test_a_set_has_one_spelling(one: list[Path], two: list[Path]) -> None:
    forwards = union(from_paths(*one), from_paths(*two))
    backwards = union(from_paths(*reversed(two)), from_paths(*reversed(one)))
    assert encode(forwards) == encode(backwards)
    assert decode(encode(forwards)) == forwards
    assert decode_foreign(encode(forwards)) == forwards
    assert encode(
        difference(union(forwards, from_paths(("f:a", "f:q"))), from_paths(("f:a", "f:q")))
    ) == encode(forwards)


@given(_SETS, _PATHS)
def test_a_path_is_in_the_set_it_was_put_into(one: list[Path], path: Path) -> None:
    fields = from_paths(*one)
    assert has(fields, path) == (path in one)
    assert has(union(fields, from_paths(path)), path)


def test_items_sort_by_the_value_of_their_keys() -> None:
    fields = from_paths(('k:{"port":443}',), ('k:{"port":80}',), ('k:{"port":9000}',))
    assert list(fields) == ['k:{"port":80}', 'k:{"port":443}', 'k:{"port":9000}']


def test_a_parent_that_is_owned_itself_is_marked() -> None:
    fields = from_paths(named("labels"), named("labels", "app"), named("empty"))
    assert encode(fields) == b'{"f:empty":{},"f:labels":{".":{},"f:app":{}}}'


@pytest.mark.parametrize(
    ("foreign", "own"),
    [
        (b'{"k:{\\"b\\": 1, \\"a\\":\\"<\\"}":{}}', {'k:{"a":"\\u003c","b":1}': {}}),
        (b'{"f:b":{},"f:a":{"x:future":{}}}', {"f:a": {}, "f:b": {}}),
        (b'{".":{},"f:a":{".":{}}}', {"f:a": {}}),
        (b'{"v: \\"x\\"":{}}', {'v:"x"': {}}),
    ],
)
def test_what_others_wrote_is_brought_into_our_spelling(foreign: bytes, own: FieldSet) -> None:
    assert encode(decode_foreign(foreign)) == encode(own)


@pytest.mark.parametrize(
    "text", [b"[]", b'{"":{}}', b'{"fa":{}}', b'{"k:x":{}}', b'{"i:x":{}}', b'{"f:a":[]}', b"{"]
)
def test_what_is_no_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_foreign(text)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("f:spec", "f:containers", 'k:{"name":"c"}', "f:image"), '.spec.containers[name="c"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
        (("f:x", "i:3"), ".x[3]"),
    ],
)
def test_paths_are_shown_as_users_know_them(path: Path, shown: str) -> None:
    assert show(path) == shown


def test_elements_are_written_compactly_with_sorted_keys() -> None:
    assert key_element({"protocol": "TCP", "containerPort": 80}) == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert value_element("a&b") == 'v:"a\\u0026b"'


@given(_SETS)
def test_an_inclusion_keeps_what_matches_and_its_parents(one: list[Path]) -> None:
    kept = members(included(from_paths(*one), (("f:a", "*", "f:b"),)))
    pattern = ("f:a", "*", "f:b")
    assert kept == {path for path in one if all(p in ("*", e) for p, e in zip(pattern, path, strict=False))}


def test_the_bytes_are_plain_json() -> None:
    fields: Any = msgspec.json.decode(encode(from_paths(named("a", "b"))))
    assert fields == {"f:a": {"f:b": {}}}
