"""kubectl's last-applied annotation of client-side apply, and how server-side apply keeps it up to date.

When kubectl applies through the server for the first time, fields that its annotation lists, and that are unchanged
since, become its own: it may change them without a conflict. As long as the annotation exists it is updated with what
kubectl applies, so that returning to client-side apply works.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nodeward.api.apply.configuration import complaints
from nodeward.api.apply.field_set import FieldSet, difference
from nodeward.api.apply.walk import compare, fields_of
from nodeward.api.schema import Schema

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
#: The only manager this is done for; another name opts out.
KUBECTL = "kubectl"
_MAX_ANNOTATIONS = 256 * 1024


def annotation_of(tree: dict[str, Any]) -> str:
    """Return the annotation of an object; "" if it has none."""
    annotations = (tree.get("metadata") or {}).get("annotations") or {}
    value = annotations.get(ANNOTATION, "")
    return value if isinstance(value, str) else ""


def fields_of_kubectl(live: dict[str, Any], schema: Schema, api_version: str) -> FieldSet:
    """Return the fields the annotation lists and that are unchanged since; none if it cannot be read."""
    text = annotation_of(live)
    if not text or complaints(live, schema):
        return {}
    try:
        last = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or complaints(last, schema):
        return {}
    comparison = compare(last, live, schema)
    fields = fields_of(last, schema)
    for changed in (comparison.modified, comparison.added, comparison.removed):
        fields = difference(fields, changed)
    return fields


def with_annotation(merged: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """Return the merged object with its annotation updated; without it when it would be too large."""
    metadata = dict(applied.get("metadata") or {})
    if metadata.get("annotations") is not None:
        metadata["annotations"] = {
            name: value for name, value in metadata["annotations"].items() if name != ANNOTATION
        }
    written = msgspec.json.encode(applied | {"metadata": metadata}, order="sorted").decode() + "\n"
    annotations = merged["metadata"]["annotations"] | {ANNOTATION: written}
    if (
        sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
        > _MAX_ANNOTATIONS
    ):
        del annotations[ANNOTATION]
    return merged | {"metadata": merged["metadata"] | {"annotations": annotations}}
