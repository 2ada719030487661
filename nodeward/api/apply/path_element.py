"""One step of a field path, as it is written in managed fields.

An element is a string: `f:name` a field, `k:{"name":"c"}` the list item with that key, `v:"x"` the member of a set,
`i:0` an index. Two elements are the same step exactly when their strings are equal, so whatever comes from outside is
brought into the one canonical spelling first: keys sorted, JSON compact, `<`, `>` and `&` escaped.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from nodeward.base.fielderror import quote

#: The entry in a node of a field set that says: the thing itself is owned, not only what is inside.
SELF = "."
#: How many elements are remembered together with what had to be computed of them.
_REMEMBERED = 4096


def scalar_text(value: Any) -> str:
    """Return a value as it is spelled inside an element."""
    text = msgspec.json.encode(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def key_element(fields: dict[str, Any]) -> str:
    """Return the element for the list item with these key fields."""
    if len(fields) == 1:
        [(name, value)] = fields.items()
        if isinstance(value, str):
            return _single_key(name, value)
    written = ",".join(f"{scalar_text(name)}:{scalar_text(fields[name])}" for name in sorted(fields))
    return "k:{" + written + "}"


@functools.lru_cache(_REMEMBERED)
def _single_key(name: str, value: str) -> str:
    return "k:{" + f"{scalar_text(name)}:{scalar_text(value)}" + "}"


def value_element(value: Any) -> str:
    """Return the element for a member of a set."""
    return "v:" + scalar_text(value)


def key_fields(element: str) -> dict[str, Any]:
    """Return the key fields a `k:` element was made of."""
    return msgspec.json.decode(element[2:], type=dict[str, Any])


def canonical(element: str) -> str | None:
    """Return the canonical spelling; None for an unknown kind of element. ValueError when it is malformed."""
    if len(element) < 2:
        raise ValueError("key must be 2 characters long:")
    if element[1] != ":":
        raise ValueError(f"missing colon: {element}")
    kind, body = element[0], element[2:]
    try:
        match kind:
            case "f":
                return element
            case "k":
                return key_element(key_fields(element))
            case "v":
                return value_element(msgspec.json.decode(body))
            case "i":
                return f"i:{int(body)}"
            case _:
                return None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def scalar_order(value: Any) -> tuple[int, Any]:
    """Return the sort key of key values: numbers, then strings, then booleans, then null."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, 0) if value is None else (4, str(value))


@functools.lru_cache(_REMEMBERED)
def order(element: str) -> tuple[int, Any]:
    """Return the sort key of sibling elements: self, fields by name, items by key, members by value, indices."""
    match element[0]:
        case "f":
            return (1, element)
        case "k":
            return (2, tuple((name, scalar_order(value)) for name, value in key_fields(element).items()))
        case "v":
            return (3, scalar_order(msgspec.json.decode(element[2:])))
        case "i":
            return (4, int(element[2:]))
        case _:
            return (0, "")


def display(element: str) -> str:
    """Format the element for a message: `.name`, `[name="c"]`, `[="x"]`, `[0]`."""
    match element[0]:
        case "f":
            return "." + element[2:]
        case "k":
            shown = ",".join(f"{name}={_shown(value)}" for name, value in key_fields(element).items())
            return f"[{shown}]"
        case "v":
            return f"[={_shown(msgspec.json.decode(element[2:]))}]"
        case _:
            return f"[{element[2:]}]"


def _shown(value: Any) -> str:
    return quote(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
