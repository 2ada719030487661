"""The order of merged lists in strategic merge patches, and error texts for lists and maps that cannot be merged.

A merged list takes the order of the patch for items the patch names and the order of the document for the rest; where
both are in the document already, the document decides. Items are identified by their merge key, or, when the key is "",
by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodeward.api.errors import ApiError, bad_request, unprocessable


def go_text(value: Any) -> str:
    """Format a value as Go does in messages users know: `map[name:web]`, `[a b]`, `<nil>`."""
    match value:
        case dict():
            return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(go_text, value)) + "]"
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def go_type(value: Any) -> str:
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case _:
            return "%!s(<nil>)"


def wrong_type(wanted: Any, got: Any) -> ApiError:
    return bad_request(f"expected a {go_type(wanted)}, but received a {go_type(got)}")


def no_merge_key(item: dict[str, Any], key: str) -> ApiError:
    return bad_request(f"map: {go_text(item)} does not contain declared merge key: {key}")


def as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type([], value)
    return value


def element_type(*lists: list[Any]) -> type:
    """Return the one type all items have; lists of lists cannot be merged."""
    found: type | None = None
    for items in lists:
        for item in items:
            if found is None:
                found = type(item)
                if found is list:
                    raise unprocessable()
            elif type(item) is not found:
                raise bad_request(f"list element types are not identical: {go_text(list(lists))}")
    if found is None:
        raise bad_request("no elements in any of the given slices")
    return found


def identity(item: Any, key: str) -> Any:
    """Return what identifies an item in its list."""
    if not key:
        value = item
    else:
        if not isinstance(item, dict):
            raise wrong_type({}, item)
        if key not in item:
            raise no_merge_key(item, key)
        value = item[key]
    if isinstance(value, dict | list):
        raise bad_request(f"a merge key cannot be a {go_type(value)}")
    return value


def positions(items: Iterable[Any], key: str) -> dict[Any, int]:
    """Return the position of each item's first occurrence."""
    places: dict[Any, int] = {}
    for index, item in enumerate(items):
        places.setdefault(identity(item, key), index)
    return places


def arranged(merged: list[Any], patch_order: list[Any], live_order: list[Any], key: str) -> list[Any]:
    """Return the items of `merged` in an order that fits both sides."""
    in_patch = positions(patch_order, key)
    in_live = positions(live_order, key)
    named = [item for item in merged if identity(item, key) in in_patch]
    others = [item for item in merged if identity(item, key) not in in_patch]
    named.sort(key=lambda item: in_patch[identity(item, key)])
    others.sort(key=lambda item: in_live.get(identity(item, key), -1))

    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(named):
        one = in_live.get(identity(others[left], key))
        two = in_live.get(identity(named[right], key))
        if one is not None and two is not None and one < two:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return result + others[left:] + named[right:]


def check_order(patch_list: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of the patch are in the order its `$setElementOrder` asks for."""
    if not order or not patch_list:
        return
    wanted = [item for item in patch_list if not (key and isinstance(item, dict) and "$patch" in item)]
    at = 0
    for place in order:
        if at == len(wanted):
            return
        if identity(wanted[at], key) == identity(place, key):
            at += 1
    if at < len(wanted):
        raise bad_request(
            f"The order in patch list:\n{go_text(patch_list)}\n"
            f" doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )
