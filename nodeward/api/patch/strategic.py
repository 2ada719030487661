"""Strategic merge patches: a merge patch that knows which lists are keyed, and takes directives.

In come a JSON tree, a decoded patch and the schema of the document; out goes the changed tree, sharing everything the
patch did not name. The schema says which lists merge and by what key; other lists are replaced. Directives:
`$patch: replace|delete` in a map or a list item, `$retainKeys`, `$setElementOrder/<list>`,
`$deleteFromPrimitiveList/<list>`. Null removes.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.errors import bad_request
from nodeward.api.patch.ordering import (
    arranged,
    as_list,
    check_order,
    element_type,
    go_text,
    identity,
    no_merge_key,
)
from nodeward.api.schema import Schema, Shape

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"


def apply_strategic_merge_patch(document: dict[str, Any], patch: object, schema: Schema) -> dict[str, Any]:
    """Return the document with the patch merged into it as the schema says."""
    if patch is None:
        return document
    if not isinstance(patch, dict):
        words = {list: "array", str: "string", bool: "bool"}
        word = words.get(type(patch), "number")
        raise bad_request(
            f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}",
        )
    return _merge_map(document, patch, schema)


def _merge_map(original: dict[str, Any], patch: dict[str, Any], schema: Schema | None) -> dict[str, Any]:
    result = original.copy()
    if any(name.startswith("$") for name in patch):
        if _PATCH in patch:
            return _replaced_map(patch)
        patch = patch.copy()
        if _RETAIN in patch:
            result = _retained(result, patch, patch.pop(_RETAIN))
        _merge_ordered(result, patch, schema)
        _delete_plain_values(result, patch)

    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        before = result.get(name)
        if isinstance(value, dict):
            inside = _inside(schema, name)
            if isinstance(before, dict) and not (inside is not None and inside.is_replaced):
                result[name] = _merge_map(before, value, inside)
                continue
        elif not isinstance(value, list):
            result[name] = value
            continue
        elif isinstance(before, list):
            result[name] = _merge_list(before, value, _inside(schema, name))
            continue
        cleaned, is_kept = _cleaned(value)
        if is_kept:
            result[name] = cleaned
        else:
            result.pop(name, None)
    return result


def _inside(schema: Schema | None, name: str) -> Schema | None:
    """Return the schema of a member, if it is known."""
    if schema is None:
        return None
    if schema.shape is Shape.STRUCT:
        return schema.fields.get(name)
    return schema.item if schema.shape is Shape.MAP else None


def _replaced_map(patch: dict[str, Any]) -> dict[str, Any]:
    match patch[_PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _PATCH}
        case "delete":
            return {}
        case other:
            raise bad_request(f"unknown patch type: {go_text(other)} in map: {go_text(patch)}")


def _retained(original: dict[str, Any], patch: dict[str, Any], kept: Any) -> dict[str, Any]:
    malformed = "invalid patch format of retainKeys"
    if not isinstance(kept, list):
        raise bad_request(malformed)
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in kept:
            raise bad_request(malformed)
    return {name: value for name, value in original.items() if name in kept}


def _directed(name: str, prefix: str, malformed: str) -> str:
    """Return the list a directive is about."""
    head, slash, field = name.partition("/")
    if head != prefix or not slash:
        raise bad_request(malformed)
    return field


def _merge_ordered(result: dict[str, Any], patch: dict[str, Any], schema: Schema | None) -> None:
    """Merge the lists the patch gives an order for into `result`, and remove them from `patch`."""
    for directive in [name for name in patch if name.startswith(_ORDER)]:
        order = as_list(patch.pop(directive))
        name = _directed(directive, _ORDER, "invalid patch format of setElementOrder list")
        before = as_list(result[name]) if name in result else None
        patched = as_list(patch[name]) if name in patch else None
        if before is None and patched is None:
            continue
        inner = _inside(schema, name)
        key = inner.merge_key if inner is not None else None
        if key is None:
            raise bad_request("invalid patch format of setElementOrder list")
        check_order(patched or [], order, key)
        if patched is None:
            merged = before or []
        elif before is None:
            merged = _cleaned_list(patched)
        else:
            merged = _merge_list(before, patched, inner)
        result[name] = arranged(merged, order, before or [], key)
        patch.pop(name, None)


def _delete_plain_values(result: dict[str, Any], patch: dict[str, Any]) -> None:
    """Carry out the deletions the patch asks for, and remove them from `patch`."""
    for directive in [name for name in patch if name.startswith(_DELETE)]:
        value = patch.pop(directive)
        name = _directed(directive, _DELETE, "invalid patch format of primitive list")
        before = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(before, list) and isinstance(value, list) and (before or value):
            if element_type(before, value) is dict:
                raise bad_request("invalid patch format of primitive list")
            result[name] = [item for item in before if item not in value]


def _merge_list(original: list[Any], patch: list[Any], schema: Schema | None) -> list[Any]:
    key = schema.merge_key if schema is not None else None
    if key is None or schema is None:
        return patch
    if not original and not patch:
        return original
    if element_type(original, patch) is not dict:
        return arranged(list(dict.fromkeys([*original, *patch])), patch, original, "")
    if not key:
        raise bad_request("cannot merge lists without merge key")
    original, patch = _without_special_items(original, patch, key)
    merged = list(original)
    places = {identity(item, key): index for index, item in reversed(list(enumerate(original)))}
    for item in patch:
        known = identity(item, key)
        if known in places:
            merged[places[known]] = _merge_map(merged[places[known]], item, schema.item)
        else:
            places[known] = len(merged)
            merged.append(item)
    return arranged(merged, patch, original, key)


def _without_special_items(
    original: list[dict[str, Any]], patch: list[dict[str, Any]], key: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Carry out `$patch` items; what is left of both lists is merged as usual."""
    if not any(_PATCH in item for item in patch):
        return original, patch
    plain: list[dict[str, Any]] = []
    is_replaced = False
    for item in patch:
        if _PATCH not in item:
            plain.append(item)
            continue
        match item[_PATCH]:
            case "delete":
                if key not in item:
                    raise no_merge_key(item, key)
                original = [old for old in original if key not in old or old[key] != item[key]]
            case "replace":
                is_replaced = True
            case "merge":
                raise bad_request("merging lists cannot yet be specified in the patch")
            case other:
                raise bad_request(f"unknown patch type: {go_text(other)} in map: {go_text(item)}")
    return (plain, []) if is_replaced else (original, plain)


def _cleaned(value: Any) -> tuple[Any, bool]:
    """Return a value as it is added, without nulls and directives; and whether to add it at all."""
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        result = {}
        for name, inner in value.items():
            if inner is not None:
                cleaned, is_kept = _cleaned(inner)
                if is_kept:
                    result[name] = cleaned
        return result, True
    if isinstance(value, list):
        return _cleaned_list(value), True
    return value, True


def _cleaned_list(items: list[Any]) -> list[Any]:
    return [cleaned for cleaned, is_kept in map(_cleaned, items) if is_kept]
