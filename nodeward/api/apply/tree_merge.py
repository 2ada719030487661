"""Merging of an applied tree into a live one, and removal of fields from a tree.

`merge_trees` keeps everything of the live tree and lets the applied one decide where both have a value; `remove_fields`
removes what a set names. Both follow structured-merge-diff: leaves are replaced whole, list items are matched by their
element, and a list in the applied tree decides the order. Trees are never changed.

A removal may leave a null; `without_nulls` removes those at the end.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.apply.field_set import FieldSet
from nodeward.api.apply.ownership import (
    field_schema,
    is_declared,
    is_divided_by_field,
    is_leaf,
    is_whole,
    item_element,
)
from nodeward.api.apply.path_element import SELF
from nodeward.api.schema import Schema

_NOTHING = object()


def merge_trees(live: dict[str, Any], applied: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the live tree with everything the applied one sets."""
    result: dict[str, Any] = _merged(live, applied, schema)
    return result


def _merged(live: Any, applied: Any, schema: Schema | None) -> Any:
    if applied is _NOTHING:
        return live
    if live is _NOTHING or schema is None or is_whole(schema, live, applied) or (not live and not applied):
        return applied
    if is_divided_by_field(schema):
        return _merged_fields(live or {}, applied or {}, schema)
    return _merged_items(live or [], applied or [], schema)


def _merged_fields(live: dict[str, Any], applied: dict[str, Any], schema: Schema) -> dict[str, Any]:
    result = live.copy()
    for name, value in applied.items():
        result[name] = _merged(live.get(name, _NOTHING), value, field_schema(schema, name))
    return result


def _merged_items(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    live_elements = [item_element(schema, item) for item in live]
    wanted = {item_element(schema, item): item for item in applied}
    found: dict[str, Any] = {}
    for element, item in zip(live_elements, live, strict=True):
        # Repeated items are not merged into: it would be chance which one is meant.
        found[element] = _NOTHING if element in found else item
    shared = iter([element for element in wanted if element in found])
    next_shared = next(shared, None)

    order = list(wanted)
    result: list[Any] = []
    done: set[str] = set()
    left = right = 0

    def take_applied(element: str) -> None:
        done.add(element)
        result.append(_merged(found.get(element, _NOTHING), wanted[element], schema.item))

    while left < len(live) or right < len(order):
        if left < len(live) and right < len(order):
            element = live_elements[left]
            if element == order[right]:
                take_applied(element)
                left += 1
                right += 1
                next_shared = next(shared, None)
                continue
            if element in wanted and next_shared is not None and next_shared != element:
                left += 1
                continue
        if left < len(live):
            element = live_elements[left]
            if element not in wanted:
                result.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(order):
            element = order[right]
            take_applied(element)
            right += 1
            if next_shared == element:
                next_shared = next(shared, None)
    return result


def remove_fields(tree: dict[str, Any], fields: FieldSet, schema: Schema) -> dict[str, Any]:
    """Return the tree without the fields of the set."""
    return _removed(tree, fields, schema) or {}


def _removed(value: Any, fields: FieldSet, schema: Schema | None) -> Any:
    """Return what is left of a value after the removal."""
    if schema is None:
        return value
    if is_divided_by_field(schema):
        if not isinstance(value, dict):
            return None
        return _removed_fields(value, fields, schema) or None
    if is_leaf(schema):
        return None if isinstance(value, dict | list) else value
    if not isinstance(value, list):
        return None
    kept = []
    for item in value:
        node = fields.get(item_element(schema, item))
        if node is None:
            kept.append(item)
        elif node and SELF not in node:
            kept.append(_removed(item, node, schema.item))
    return kept or None


def _removed_fields(value: dict[str, Any], fields: FieldSet, schema: Schema) -> dict[str, Any]:
    result = {}
    for name, content in value.items():
        node = fields.get("f:" + name)
        if node is None:
            result[name] = content
        elif node and SELF not in node:
            result[name] = _removed(content, node, field_schema(schema, name))
    return result


def with_parents(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """Return the set with every declared field that has a field of the set inside.

    Such a parent is never owned for itself, but is removed when nothing is left inside.
    """
    result: FieldSet = {}
    for element, node in fields.items():
        inner: Schema | None = None
        is_parent = False
        if schema is not None and element.startswith("f:") and not schema.is_keyed:
            name = element[2:]
            is_parent = bool(node) and is_declared(schema, name)
            inner = field_schema(schema, name)
        elif schema is not None and element.startswith("k:"):
            inner = schema.item
        inside = with_parents(node, inner) if node else node
        result[element] = {SELF: {}, **inside} if is_parent and SELF not in inside else inside
    return result


def without_nulls(value: Any, schema: Schema | None) -> Any:
    """Return the tree without nulls in its objects: a null field is an absent one."""
    if schema is None or is_whole(schema, value) or not value:
        return value
    if is_divided_by_field(schema):
        return {
            name: without_nulls(content, field_schema(schema, name))
            for name, content in value.items()
            if content is not None
        }
    return [without_nulls(item, schema.item) for item in value]
