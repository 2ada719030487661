"""Fields that the emulated Kubernetes version does not know: dropped from what clients send, and reported.

One process emulates several versions with one set of types. A field exists from the version that introduced its gate;
before that it is an unknown field like any other: dropped with a warning (or an error, if the client is strict), not
shown in what a newer server stored, and gone when such an object is written again. Called by `writing.py` for requests
and by the watch caches for stored objects. A server of the newest version has no such fields and does nothing.
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

#: kind -> (the field, as the struct names it; the gate that introduced it)
INTRODUCED_BY: Final[Mapping[type[KubeObject], tuple[tuple[Path, str], ...]]] = {
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


def stored_readers(scheme: Scheme, ctx: Context) -> dict[Kind, Reader]:
    """Return, for kinds that have such fields, the conversion from stored bytes to what this version shows."""
    found: dict[Kind, Reader] = {}
    for type_ in INTRODUCED_BY:
        paths = unknown_fields(type_, ctx)
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


def unknown_fields(kind: type[KubeObject], ctx: Context) -> tuple[Path, ...]:
    """List the fields of a kind that a server of this version does not know."""
    return tuple(path for path, gate in INTRODUCED_BY.get(kind, ()) if not ctx.knows(gate))
