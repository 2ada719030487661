"""The parts of a request to the API: path, query and body, made from kinds, names and objects.

What must stay true: a name stays one segment of the path whatever it contains, and a body says its kind.

Called by `kubelet.node_manager` and `client`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from nodeward.api import codec
from nodeward.api.fields import KubeTop
from nodeward.api.meta import DeleteOptions, Preconditions
from nodeward.api.scheme import Kind
from nodeward.base.invariant import invariant

_PLAIN_SEGMENT: Final = re.compile(r"[A-Za-z0-9\-._~:]+")


def path_of(kind: Kind, namespace: str, name: str | None = None, subresource: str = "") -> str:
    """`name` None: the collection. Whatever is not plain is escaped."""
    if name is None:
        return kind.path(_segment(namespace))
    invariant(name != "", f"a name is needed to address one of {kind.qualified_resource}")
    invariant(
        namespace != "" or not kind.is_namespaced, f"{kind.qualified_resource} {name!r} needs a namespace"
    )
    return kind.path(_segment(namespace), _segment(name), subresource)


def _segment(text: str) -> str:
    if not text or (_PLAIN_SEGMENT.fullmatch(text) and text not in (".", "..")):
        return text
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def query_of(**parameters: str) -> str:
    given = {name: value for name, value in parameters.items() if value}
    return urlencode(given, quote_via=quote, safe="=,!()") if given else ""


def identity_of(obj: object) -> tuple[str, str]:
    if isinstance(obj, dict):
        metadata = obj.get("metadata") or {}
        return metadata.get("namespace", ""), metadata.get("name", "")
    metadata = getattr(obj, "metadata", None)
    return getattr(metadata, "namespace", ""), getattr(metadata, "name", "")


def encode_object(obj: object, kind: Kind) -> bytes:
    if isinstance(obj, KubeTop) and not obj.kind:
        obj = msgspec.structs.replace(obj, kind=kind.name, api_version=kind.api_version)
    return codec.encode(obj)


def delete_options(
    grace_period: int | None, propagation: str, uid: str, resource_version: str, dry_run: bool
) -> bytes:
    if grace_period is None and not (propagation or uid or resource_version or dry_run):
        return b""
    preconditions = None
    if uid or resource_version:
        preconditions = Preconditions(uid=uid or None, resource_version=resource_version or None)
    return codec.encode(
        DeleteOptions(
            kind="DeleteOptions",
            api_version="v1",
            grace_period_seconds=grace_period,
            propagation_policy=propagation or None,
            preconditions=preconditions,
            dry_run=["All"] if dry_run else [],
        )
    )
