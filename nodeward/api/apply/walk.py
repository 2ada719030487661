"""Field sets of trees: the fields a tree sets, and the fields that differ between two trees.

`fields_of` is what an applied configuration owns. `compare` is what a write did: fields added, modified, removed. Both
follow structured-merge-diff, down to when a parent counts as a field of its own: in a comparison whenever it was added
or removed with its content; in a configuration only for list items, map entries, empty objects and nulls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nodeward.api.apply.field_set import FieldSet, included, recursive_difference, union
from nodeward.api.apply.ownership import (
    field_schema,
    is_declared,
    is_divided_by_field,
    is_whole,
    items_by_element,
)
from nodeward.api.apply.path_element import SELF, order
from nodeward.api.schema import Schema

#: A field that is not there; no value in JSON equals it.
_MISSING = object()


class Comparison(NamedTuple):
    """What differs between an old and a new tree."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.modified or self.added)

    @property
    def changed(self) -> FieldSet:
        """Fields of the new tree that the old one did not have, or had with another value."""
        return union(self.modified, self.added)

    def without(self, fields: FieldSet) -> Comparison:
        """Return the comparison without these fields and what is inside them."""
        return Comparison(*[recursive_difference(part, fields) if part and fields else part for part in self])

    def only(self, patterns: tuple[tuple[str, ...], ...]) -> Comparison:
        """Return the comparison of what lies below these patterns only."""
        if not patterns:
            return self
        return Comparison(*[included(part, patterns) for part in self])


def fields_of(tree: dict[str, Any], schema: Schema) -> FieldSet:
    """Return every field an applied tree sets."""
    return _claimed(tree, schema)[1]


def _claimed(value: Any, schema: Schema) -> tuple[bool, FieldSet]:
    """Return whether the value is a field of its own, and the fields inside it."""
    if is_whole(schema, value):
        return True, {}
    if value is None:
        return False, {}
    found: FieldSet = {}
    if is_divided_by_field(schema):
        for name in sorted(value):
            inner = field_schema(schema, name)
            if inner is None:
                continue
            content = value[name]
            is_field, inside = _claimed(content, inner)
            if content is None or content == {} or not is_declared(schema, name):
                is_field = True
            if is_field or inside:
                found["f:" + name] = _node(is_field, inside)
        return False, found
    by_element = items_by_element(schema, value)
    for element in sorted(by_element, key=order):
        items = by_element[element]
        found[element] = _node(True, _inside_item(items[0], schema)) if len(items) == 1 else {}
    return False, found


def _inside_item(item: Any, schema: Schema) -> FieldSet:
    return _claimed(item, schema.item)[1] if schema.item is not None else {}


def _node(is_field: bool, inside: FieldSet) -> FieldSet:
    return {SELF: {}, **inside} if is_field and inside else inside


def whole(value: Any, schema: Schema | None) -> FieldSet:
    """Return the node of a value that was added or removed with everything in it."""
    if schema is None or not value or is_whole(schema, value):
        return {}
    found: FieldSet = {SELF: {}}
    if is_divided_by_field(schema):
        for name in sorted(value):
            inner = field_schema(schema, name)
            if inner is not None:
                found["f:" + name] = whole(value[name], inner)
    else:
        by_element = items_by_element(schema, value)
        for element in sorted(by_element, key=order):
            items = by_element[element]
            found[element] = whole(items[0], schema.item) if len(items) == 1 else {}
    return found if len(found) > 1 else {}


def compare(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> Comparison:
    """Compare two trees. Fields the schema does not know are ignored."""
    result = Comparison({}, {}, {})
    if old != new:
        _compare_fields(old, new, schema, result)
    return result


def _compare_fields(old: dict[str, Any], new: dict[str, Any], schema: Schema, into: Comparison) -> None:
    # Most of two trees is the same, often the very same object: look closer only at what is not.
    differing = [
        name
        for name, value in new.items()
        if (before := old.get(name, _MISSING)) is not value and before != value
    ]
    differing.extend([name for name in old if name not in new])
    differing.sort()
    for name in differing:
        inner = field_schema(schema, name)
        if inner is None:
            continue
        element = "f:" + name
        if name not in old:
            into.added[element] = whole(new[name], inner)
        elif name not in new:
            into.removed[element] = whole(old[name], inner)
        else:
            _compare_values(element, old[name], new[name], inner, into)


def _compare_values(element: str, old: Any, new: Any, schema: Schema, into: Comparison) -> None:
    """Compare a value that both sides have and that differs."""
    if schema.is_bool_too and isinstance(old, bool) is not isinstance(new, bool):
        # Another form: what the items of the list were to somebody is over.
        into.removed[element], into.added[element] = whole(old, schema), whole(new, schema)
        return
    if is_whole(schema, old, new) or (not old and not new):
        into.modified[element] = {}
        return
    inside = Comparison({}, {}, {})
    if is_divided_by_field(schema):
        _compare_fields(old or {}, new or {}, schema, inside)
    else:
        _compare_items(old, new, schema, inside)
    for part, found in zip(into, inside, strict=True):
        if found:
            part[element] = found


def _compare_items(old: list[Any] | None, new: list[Any] | None, schema: Schema, into: Comparison) -> None:
    before, after = items_by_element(schema, old), items_by_element(schema, new)
    for element in sorted({**before, **after}, key=order):
        was, is_now = before.get(element, []), after.get(element, [])
        if was == is_now:
            continue
        if len(was) <= 1 and len(is_now) <= 1:
            if not was:
                into.added[element] = whole(is_now[0], schema.item)
            elif not is_now:
                into.removed[element] = whole(was[0], schema.item)
            elif schema.item is not None:
                _compare_values(element, was[0], is_now[0], schema.item, into)
        elif len(was) > 1 and len(is_now) > 1:
            into.modified[element] = {}
        elif len(was) > 1:
            # Repeats are owned as one; what is left of them is new.
            into.removed[element] = {}
            if is_now:
                into.added[element] = whole(is_now[0], schema.item)
        else:
            into.added[element] = {}
            if was:
                into.removed[element] = whole(was[0], schema.item)
