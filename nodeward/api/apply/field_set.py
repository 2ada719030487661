"""Sets of fields, in the very shape managed fields have in JSON.

A set is a nested dict. Its keys are path elements (`nodeward.api.apply.path_element`), its values say what of the
field is in the set: `{}` the field itself; a dict with elements what is inside; with `"."` among them, the field
itself too. So the bytes of `fieldsV1` decode straight into a set, and a set encodes straight into them.

What stays true: siblings stand in canonical order, no field is listed with nothing of it in the set, and sets are
never written to once made: operations share what they can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from nodeward.api.apply.path_element import SELF, canonical, display, order

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

_MEMBER: FieldSet = {}


def decode(raw: bytes) -> FieldSet:
    """Decode a set from a `fieldsV1` that this server wrote."""
    if raw == b"{}":
        return {}
    return msgspec.json.decode(raw, type=dict[str, Any])


def decode_foreign(raw: bytes) -> FieldSet:
    """Decode a set from a client's `fieldsV1`, in canonical form; ValueError if it is none."""
    try:
        tree = msgspec.json.decode(raw)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    result = _canonical_node(tree)
    return {element: node for element, node in result.items() if element != SELF}


def _canonical_node(tree: Any) -> FieldSet:
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ValueError("a field set must be an object")
    result: FieldSet = {}
    is_member = False
    for name, inner in tree.items():
        if name == SELF:
            is_member = True
            continue
        element = canonical(name)
        if element is None:
            continue
        node = _canonical_node(inner)
        result[element] = _union_node(result[element], node) if element in result else node
    return _ordered(_noded(is_member, result))


def encode(fields: FieldSet) -> bytes:
    """Encode the set as `fieldsV1`."""
    return msgspec.json.encode(fields)


def _noded(is_member: bool, children: FieldSet) -> FieldSet:
    """Make a node from its two halves."""
    return {SELF: _MEMBER, **children} if is_member and children else children


def _is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def _ordered(node: FieldSet) -> FieldSet:
    return {element: node[element] for element in sorted(node, key=order)} if len(node) > 1 else node


def from_paths(*paths: Path) -> FieldSet:
    """Return the set of the fields at these paths."""
    result: FieldSet = {}
    for path in paths:
        single: FieldSet = _MEMBER
        for element in reversed(path):
            single = {element: single}
        result = union(result, single)
    return result


def named(*names: str) -> Path:
    """Return the path through fields of these names."""
    return tuple("f:" + name for name in names)


def union(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return what is in either set."""
    if not one:
        return two
    if not two:
        return one
    result = one.copy()
    is_grown = False
    for element, node in two.items():
        mine = result.get(element)
        if mine is None:
            is_grown = True
            result[element] = node
        elif mine is not node:
            result[element] = _union_node(mine, node)
    return _ordered(result) if is_grown else result


def _union_node(one: FieldSet, two: FieldSet) -> FieldSet:
    if not one or not two:
        # One of them is nothing but the field itself.
        rest = one or two
        return rest if _is_member(rest) else {SELF: _MEMBER, **rest}
    return union(one, two)


def intersection(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return what is in both sets."""
    result: FieldSet = {}
    for element, node in one.items():
        other = two.get(element)
        if other is None or element == SELF:
            continue
        children = intersection(node, other)
        is_member = _is_member(node) and _is_member(other)
        if children or is_member:
            result[element] = _noded(is_member, children)
    return result


def difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return what is in the first and not in the second; what is inside a removed field stays."""
    return _without(one, two, is_deep=False)


def recursive_difference(one: FieldSet, two: FieldSet) -> FieldSet:
    """Return what is in the first and neither in the second nor inside a field of the second."""
    return _without(one, two, is_deep=True)


def _without(one: FieldSet, two: FieldSet, is_deep: bool) -> FieldSet:
    result = one
    for element, other in two.items():
        node = one.get(element)
        if node is None or element == SELF:
            continue
        is_taken = _is_member(other)
        if is_deep and is_taken:
            left = None
        else:
            left = _left_over(node, other, is_taken, is_deep)
        if left is node:
            continue
        if result is one:
            result = one.copy()
        if left is None:
            del result[element]
        else:
            result[element] = left
    return result


def _left_over(node: FieldSet, other: FieldSet, is_taken: bool, is_deep: bool) -> FieldSet | None:
    """Return what remains of one field: the same node if all of it, None if nothing."""
    is_member = _is_member(node)
    inside = _without(node, other, is_deep) if node and other else node
    stays = is_member and not is_taken
    if inside is node and stays == is_member:
        return node
    children = {element: child for element, child in inside.items() if element != SELF}
    if not children and not stays:
        return None
    return _noded(stays, children)


def leaves(fields: FieldSet) -> FieldSet:
    """Return the fields that have no other field of the set inside."""
    return {element: leaves(node) for element, node in fields.items() if element != SELF}


def has(fields: FieldSet, path: Path) -> bool:
    """Tell whether the field at this path is in the set (not only something inside it)."""
    node = fields
    for element in path:
        inner = node.get(element)
        if inner is None:
            return False
        node = inner
    return bool(path) and _is_member(node)


def paths(fields: FieldSet) -> Iterator[Path]:
    """Iterate over all fields of the set: first those of one level, then what is inside them."""
    yield from _paths(fields, ())


def _paths(fields: FieldSet, prefix: Path) -> Iterator[Path]:
    for element, node in fields.items():
        if element != SELF and _is_member(node):
            yield (*prefix, element)
    for element, node in fields.items():
        if element != SELF and node:
            yield from _paths(node, (*prefix, element))


def show(path: Path) -> str:
    """Format a path for a message: `.spec.containers[name="c"].image`."""
    return "".join(map(display, path))


def included(fields: FieldSet, patterns: tuple[Path, ...]) -> FieldSet:
    """Return what lies at or below one of the patterns, in which `*` stands for any one element."""
    result: FieldSet = {}
    for element, node in fields.items():
        if element == SELF:
            continue
        matching = tuple(pattern[1:] for pattern in patterns if pattern[0] in ("*", element))
        if not matching:
            continue
        if () in matching:
            result[element] = node
            continue
        children = included(node, matching)
        if _is_member(node) or children:
            result[element] = _noded(_is_member(node), children)
    return result
