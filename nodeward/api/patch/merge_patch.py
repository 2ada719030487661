"""RFC 7386: a patch that looks like the document; null removes, lists are replaced whole.

In come a JSON tree and a decoded patch; out goes the changed tree, sharing what the patch did not name. Nulls never
reach the result from inside an added value, nor from objects inside a list that replaces another.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.errors import bad_request


def apply_merge_patch(document: dict[str, Any], patch: object) -> dict[str, Any]:
    """Return the document with the patch merged into it."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        words = {list: "array", str: "string", bool: "bool"}
        word = words.get(type(patch), "number")
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"
        )
    return _merged(document, patch)


def create_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest patch that turns `old` into `new`, which must have no nulls in its objects."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name not in old:
            patch[name] = value
            continue
        before = old[name]
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := create_merge_patch(before, value):
                patch[name] = inner
        elif before != value or type(before) is not type(value):
            patch[name] = value
    return patch


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = document.copy()
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        before = result.get(name)
        if not isinstance(before, dict):
            result[name] = _without_nulls(value)
        elif isinstance(value, dict):
            result[name] = _merged(before, value)
        else:
            result[name] = value
    return result


def _without_nulls(value: Any) -> Any:
    """Return a value as it is added: its objects lose their nulls, its lists keep theirs."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
