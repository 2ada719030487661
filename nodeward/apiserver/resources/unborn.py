"""Fields that a server of some version has never heard of: it drops them from what clients send, and says so.

One process emulates several versions of Kubernetes with one set of types. A field is born with the gate that brought
it; before that it is an unknown field like any other: ignored, with a warning (or an error, if the client is
strict), and not seen in what a newer server stored, and gone when such an object is written again. Which fields
these are is a table; a server of today finds it empty and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from nodeward.api.blanking import Path, blank
from nodeward.api.codec import decoder, to_stored
from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node
from nodeward.api.meta import KubeObject
from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.api.scheme import Kind, Scheme

Reader: TypeAlias = Callable[[bytes], bytes]

#: kind -> (the field, as the struct names it; the gate it was born with)
BIRTHS: Final[Mapping[type[KubeObject], tuple[tuple[Path, str], ...]]] = {
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


def _reader(type_: type[KubeObject], paths: tuple[Path, ...]) -> Reader:
    # Most objects have none of these fields: the bytes are searched before anything is decoded.
    marks = [f'"{path[-1].split("_")[0]}'.encode() for path in paths]

    def read(value: bytes) -> bytes:
        if not any(mark in value for mark in marks):
            return value
        obj = decoder(type_).decode(value)
        return to_stored(obj) if blank(obj, paths) else value

    return read


def unborn(kind: type[KubeObject], ctx: Context) -> tuple[Path, ...]:
    """The fields of a kind that a server of this version does not know."""
    return tuple(path for path, gate in BIRTHS.get(kind, ()) if not ctx.knows(gate))
