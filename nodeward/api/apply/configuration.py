"""Checks the form of an applied configuration: known fields, right types, list items with distinct keys.

Takes a tree and its schema; returns complaints with paths, in structured-merge-diff's words. Values are checked by
validation, after the merge.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.apply.ownership import NotIdentifiable, field_schema, item_element
from nodeward.api.apply.path_element import display
from nodeward.api.schema import Schema, Shape
from nodeward.base.fielderror import quote
from nodeward.base.quantity import Quantity


def complaints(tree: Any, schema: Schema) -> list[str]:
    """Return what is wrong with the tree; nothing, if it can be applied."""
    found: list[str] = []
    _check(tree, schema, "", found)
    return found


def as_message(found: list[str]) -> str:
    return found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])


def _check(value: Any, schema: Schema, path: str, found: list[str]) -> None:
    if value is None:
        return
    match schema.shape:
        case Shape.STRUCT | Shape.MAP:
            if isinstance(value, dict):
                _check_fields(value, schema, path, found)
            else:
                found.append(_at(path, f"expected map, got {_shown(value)}"))
        case Shape.LIST:
            if schema.is_bool_too and isinstance(value, bool):
                return
            if isinstance(value, list):
                _check_items(value, schema, path, found)
            else:
                found.append(_at(path, f"expected list, got {_shown(value)}"))
        case Shape.SCALAR:
            if problem := _scalar_problem(value, schema):
                found.append(_at(path, problem))
        case Shape.ANY:
            pass


def _check_fields(value: dict[str, Any], schema: Schema, path: str, found: list[str]) -> None:
    for name, content in value.items():
        inner = field_schema(schema, name)
        if inner is None:
            found.append(_at(f"{path}.{name}", "field not declared in schema"))
            return
        _check(content, inner, f"{path}.{name}", found)


def _check_items(value: list[Any], schema: Schema, path: str, found: list[str]) -> None:
    is_divided = schema.is_keyed or schema.is_set
    seen: set[str] = set()
    for index, item in enumerate(value):
        shown = f"[{index}]"
        if is_divided:
            try:
                element = item_element(schema, item)
            except NotIdentifiable as error:
                found.append(_at(path, f"element {index}: {error}"))
                return
            shown = display(element)
            if element in seen:
                found.append(_at(path, f"duplicate entries for key {shown}"))
            seen.add(element)
        if schema.item is not None:
            _check(item, schema.item, path + shown, found)


def _scalar_problem(value: Any, schema: Schema) -> str:
    wanted = schema.python_type
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted in (Quantity, object):
        return f"expected any scalar, got {_shown(value)}" if isinstance(value, dict | list) else ""
    if wanted in (int, float):
        return "" if is_number else f"expected numeric (int or float), got {_go_type(value)}"
    if wanted is bool:
        return "" if isinstance(value, bool) else f"expected boolean, got {_shown(value)}"
    return "" if isinstance(value, str) else f"expected string, got {_shown(value)}"


def _at(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _shown(value: Any) -> str:
    """Format a value for a complaint; Go's own format for numbers and maps helps nobody."""
    match value:
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case list():
            return "[" + ",".join(map(_shown, value)) + "]"
        case dict():
            return "".join(f"{name}={_shown(value[name])}" for name in sorted(value))
        case None:
            return "null"
        case _:
            return str(value)
