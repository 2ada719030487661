"""Fields that a server of some version has never heard of: it drops them from what clients send, and says so.

One process emulates several versions of Kubernetes with one set of types. A field is born with the gate that brought
it; before that it is an unknown field like any other: ignored, with a warning (or an error, if the client is
strict), and not seen in what a newer server stored, and gone when such an object is written again. Which fields
these are is a table; a server of today finds it empty and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from nodeward.api.codec import decoder, to_stored
from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node
from nodeward.api.meta import KubeObject
from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.api.scheme import Kind, Scheme

_Path: TypeAlias = tuple[str, ...]
Reader: TypeAlias = Callable[[bytes], bytes]

#: kind -> (the field, as the struct names it; the gate it was born with)
BIRTHS: Final[Mapping[type[KubeObject], tuple[tuple[_Path, str], ...]]] = {
    Node: (
        (("spec", "readiness_gates"), "NodeReadinessGates"),
        (("status", "declared_features"), "NodeDeclaredFeatures"),
    ),
    ResourceSlice: ((("spec", "skip_node_operations"), "DRAOptionalNodePreparation"),),
    ResourceClaim: (
        (
            ("status", "allocation", "devices", "results", "skip_node_operations"),
            "DRAOptionalNodePreparation",
        ),
    ),
}


def readers(scheme: Scheme, ctx: Context) -> dict[Kind, Reader]:
    """For the kinds that have such fields: what makes stored bytes look as a server of this version reads them."""
    found: dict[Kind, Reader] = {}
    for type_ in BIRTHS:
        paths = unborn(type_, ctx)
        if paths:
            found[scheme.by_type(type_)] = _reader(type_, paths)
    return found


def _reader(type_: type[KubeObject], paths: tuple[_Path, ...]) -> Reader:
    # Most objects have none of these fields: the bytes are searched before anything is decoded.
    marks = [f'"{path[-1].split("_")[0]}'.encode() for path in paths]

    def read(value: bytes) -> bytes:
        if not any(mark in value for mark in marks):
            return value
        obj = decoder(type_).decode(value)
        return to_stored(obj) if forget(obj, paths) else value

    return read


def unborn(kind: type[KubeObject], ctx: Context) -> tuple[_Path, ...]:
    """The fields of a kind that a server of this version does not know."""
    return tuple(path for path, gate in BIRTHS.get(kind, ()) if not ctx.knows(gate))


def forget(obj: Any, paths: tuple[_Path, ...]) -> list[str]:
    """Empty these fields, in place; gives the paths that were set, as JSON names them."""
    return [name for path in paths for name in _forget(obj, path, "")]


def _forget(holder: Any, path: _Path, at: str) -> Iterator[str]:
    if holder is None:
        return
    if isinstance(holder, list):
        for position, item in enumerate(holder):
            yield from _forget(item, path, f"{at}[{position}]")
        return
    first, *rest = path
    info = next(each for each in msgspec.structs.fields(holder) if each.name == first)
    name = f"{at}.{info.encode_name}" if at else info.encode_name
    value = getattr(holder, first)
    if rest:
        yield from _forget(value, tuple(rest), name)
    else:
        blank = info.default if info.default is not msgspec.NODEFAULT else info.default_factory()
        if value != blank:
            setattr(holder, first, blank)
            yield name
