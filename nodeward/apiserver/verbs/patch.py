"""PATCH: JSON patch, merge patch, strategic merge patch, and server-side apply.

The rules are in `nodeward/api/patch` and `nodeward/api/apply`; the result goes through the write path (`writing.py`).
Lease renewals take a fast path (`lease_renewals.py`).
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from nodeward.api.apply.managers import equal_but_for_times
from nodeward.api.apply.merge import check_configuration
from nodeward.api.codec import (
    check_kind,
    decode,
    encode,
    has_stray_fields,
    may_have_duplicates,
    parse_tree,
    stand_alone,
)
from nodeward.api.errors import ApiError, bad_request, invalid, unsupported_media_type
from nodeward.api.meta import KubeObject
from nodeward.api.patch.json_patch import apply_json_patch
from nodeward.api.patch.merge_patch import apply_merge_patch
from nodeward.api.patch.ordering import go_text
from nodeward.api.patch.strategic import apply_strategic_merge_patch
from nodeward.api.schema import schema_of
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import accepted
from nodeward.apiserver.presenting import present_one, served_bytes
from nodeward.apiserver.reading_body import check_options, field_validation, report_repeats, report_stray
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.strategy import UpdateMode
from nodeward.apiserver.writing import Written
from nodeward.base.fielderror import forbidden, required
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import FieldPath
from nodeward.machinery.serving.answer import Answer

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_CBOR = "application/apply-patch+cbor"
_STRICT = "strict decoding error: "
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


def patch_type(call: Call) -> str:
    """Return the media type of the patch; raises 415."""
    media = call.request.headers.get("content-type", "").partition(";")[0].strip()
    if media not in PATCHES:
        raise unsupported_media_type("415: Unsupported Media Type")
    return media


async def patch(api: Api, call: Call, kind: Kind, mode: UpdateMode) -> Answer:
    """Change the object as the patch says."""
    wanted = accepted(call.request.headers.get("accept", ""))
    media = patch_type(call)
    check_options(call, "PatchOptions")
    if media == APPLY_PATCH:
        written = await _apply(api, call, kind, mode)
    else:
        if call.query.has("force"):
            fault = forbidden(FieldPath("force"), "may not be specified for non-apply patch")
            raise invalid("meta.k8s.io", "PatchOptions", "", [fault])
        written = await _change(api, call, kind, mode, media)
    status = 201 if written.is_created else 200
    return present_one(api, call, kind, written.item, wanted, status=status)


async def _change(api: Api, call: Call, kind: Kind, mode: UpdateMode, media: str) -> Written:
    if media != MERGE_PATCH or not api.lease_renewals.concerns(kind):
        return await _patch(api, call, kind, mode, media)
    hub = api.env.hub
    key, item = (
        hub.key(kind, call.namespace, call.name),
        hub.cache(kind).objects.get(f"{call.namespace}/{call.name}"),
    )
    value = api.lease_renewals.value(key, call, item) if item is not None else None
    if item is not None and value is not None:
        written = await api.writer.replace_value(key, value, item)
        if written is not None:
            api.lease_renewals.renewed(key, written.item.revision)
            return written
    written = await _patch(api, call, kind, mode, media)
    api.lease_renewals.learn(key, call, item, written.item)
    return written


async def _patch(api: Api, call: Call, kind: Kind, mode: UpdateMode, media: str) -> Written:
    body = call.request.body
    sent = await api.env.worker.run(len(body), parse_patch, body)
    strategy = api.strategy(kind)

    def make(item: Item, old: Any) -> KubeObject:
        tree = parse_tree(stand_alone(kind, served_bytes(api, kind, item)))
        patched = apply_patch(tree, sent, media, kind)
        obj = patched_object(call, kind, patched, sent, media)
        if obj.metadata.resource_version == str(item.revision):
            # The patch does not name a version: it may be computed again on a newer one.
            obj.metadata.resource_version = ""
        obj = strategy.to_stored_form(obj)
        strategy.default(obj)
        return obj

    return await api.writer.update(call, strategy, mode, make)


def apply_patch(tree: Any, sent: Any, media: str, kind: Kind) -> Any:
    """Return the tree changed by a JSON, merge or strategic merge patch."""
    if media == JSON_PATCH:
        return apply_json_patch(tree, sent)
    if not isinstance(sent, dict):
        raise bad_request("a patch must be a JSON object")
    if media == MERGE_PATCH:
        return apply_merge_patch(tree, sent)
    return apply_strategic_merge_patch(tree, sent, schema_of(kind.type))


def parse_patch(body: bytes) -> Any:
    """Parse the body of a patch; raises 400."""
    try:
        return parse_tree(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from None


def object_from(call: Call, kind: Kind, tree: Any) -> KubeObject:
    """Decode a tree as an object; raises 400."""
    body = encode(tree)
    obj = decode(body, kind)
    mode = field_validation(call)
    if mode != "Ignore" and has_stray_fields(body, kind.type):
        report_stray(call, obj, kind, mode, tree, None)
    return cast(KubeObject, obj)


def patched_object(call: Call, kind: Kind, tree: Any, sent: Any, media: str) -> KubeObject:
    """Decode a patched tree as an object; if that fails the patch is invalid (422)."""
    try:
        _refuse_repeats(call, media)
        return object_from(call, kind, tree)
    except ApiError as error:
        text = error.status.message
        if _STRICT in text:
            text = text[text.index(_STRICT) :]
        shown = go_text(sent) if media == STRATEGIC_PATCH else encode(tree).decode()
        raise invalid("", "", "", [invalid_field(FieldPath("patch"), shown, text)]) from None


def _refuse_repeats(call: Call, media: str) -> None:
    """Warn of, or refuse, fields a patch gives twice."""
    mode, body = field_validation(call), call.request.body
    if mode != "Ignore" and may_have_duplicates(body):
        report_repeats(call, mode, body, "json patch " if media == JSON_PATCH else "")


def read_applied(call: Call, kind: Kind) -> dict[str, Any]:
    """Read the configuration a client applies to an object of `kind`."""
    if not call.query.get("fieldManager"):
        fault = required(FieldPath("fieldManager"), "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", [fault])
    sent = parse_patch(call.request.body)
    if not isinstance(sent, dict):
        raise bad_request("error decoding YAML: an object was expected")
    _check_applied(call, kind, sent)
    return sent


async def _apply(api: Api, call: Call, kind: Kind, mode: UpdateMode) -> Written:
    size = len(call.request.body)
    sent = await api.env.worker.run(size, read_applied, call, kind)
    strategy = api.strategy(kind)
    force = call.query.flag("force")
    applied = sent  # a null is applied like any other value

    def first() -> KubeObject:
        return strategy.to_stored_form(object_from(call, kind, applied))

    def make(item: Item, old: Any) -> KubeObject:
        tree = parse_tree(stand_alone(kind, served_bytes(api, kind, item)))
        merged, entries = api.field_manager.applied(
            call,
            kind,
            tree,
            applied,
            old.metadata.managed_fields,
            subresource=mode.subresource,
            force=force,
            reset=mode.reset,
        )
        if merged == _unmanaged(tree) and equal_but_for_times(entries, old.metadata.managed_fields):
            entries = old.metadata.managed_fields  # nothing changed, so nothing is written
        obj = object_from(call, kind, merged)
        if not applied["metadata"].get("resourceVersion"):
            obj.metadata.resource_version = ""
        obj.metadata.managed_fields = entries
        obj = strategy.to_stored_form(obj)
        strategy.default(obj)
        return obj

    def check() -> None:
        # Unknown fields and wrong types get apply's error messages, not those of decoding.
        check_configuration(applied, schema_of(kind.type), kind.api_version)
        object_from(call, kind, applied)

    await api.env.worker.run(size, check)
    return await api.writer.update(
        call, strategy, mode, make, may_create=None if mode.subresource else first, applied=applied
    )


def _unmanaged(tree: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in tree["metadata"].items() if key != "managedFields"}
    return {**tree, "metadata": meta}


def _check_applied(call: Call, kind: Kind, sent: dict[str, Any]) -> None:
    meta = sent.get("metadata")
    if not sent.get("apiVersion") or not sent.get("kind"):
        raise bad_request(
            "invalid object type: Object 'Kind' is missing: an applied object names its apiVersion and kind"
        )
    check_kind(str(sent["apiVersion"]), str(sent["kind"]), kind, kind.type)
    if not isinstance(meta, dict):
        meta = sent["metadata"] = {}
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    name = meta.setdefault("name", call.name)
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    if kind.is_namespaced:
        meta.setdefault("namespace", call.namespace)
