"""Find and empty fields named by their path: `("status", "allocation", "devices", "results", "share_id")`.

A path names fields as the structs do and goes through lists and maps, into every item. `blank` empties what it
names, in place, and says what was set; `is_set` only looks. Fields behind gates (`nodeward.api.defaults.gated_fields`)
and fields an older server does not know (`nodeward.apiserver.resources.unknown_fields`) are tables of such paths.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

Path: TypeAlias = tuple[str, ...]


def blank(obj: Any, paths: Iterable[Path]) -> list[str]:
    """Empty these fields, in place; return the paths that were set, as JSON names them."""
    found: list[str] = []
    for path in paths:
        for holder, info, name in list(_set_fields(obj, path, "")):
            setattr(holder, info.name, _empty(info))
            found.append(name)
    return found


def is_set(obj: Any, paths: Iterable[Path]) -> bool:
    """Tell whether any of these fields has a value other than its empty one."""
    return any(True for path in paths for _ in _set_fields(obj, path, ""))


@functools.cache
def _field(struct: type[msgspec.Struct], name: str) -> msgspec.structs.FieldInfo:
    """Asked for every write of a kind: msgspec works it out anew each time."""
    return next(each for each in msgspec.structs.fields(struct) if each.name == name)


def _empty(info: msgspec.structs.FieldInfo) -> Any:
    return info.default if info.default is not msgspec.NODEFAULT else info.default_factory()


def _set_fields(holder: Any, path: Path, at: str) -> Iterator[tuple[Any, msgspec.structs.FieldInfo, str]]:
    if holder is None:
        return
    if isinstance(holder, list):
        for position, item in enumerate(holder):
            yield from _set_fields(item, path, f"{at}[{position}]")
        return
    if isinstance(holder, dict):
        for key, item in holder.items():
            yield from _set_fields(item, path, f"{at}.{key}")
        return
    first, *rest = path
    struct: type[msgspec.Struct] = type(holder)
    info = _field(struct, first)
    name = f"{at}.{info.encode_name}" if at else info.encode_name
    value = getattr(holder, first)
    if rest:
        yield from _set_fields(value, tuple(rest), name)
    elif value != _empty(info):
        yield holder, info, name
