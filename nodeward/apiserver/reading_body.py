"""Decoding of request bodies, with unknown and duplicate fields treated as the client's `fieldValidation` asks.

Called by the verbs that write; decodes with `nodeward/api/codec.py`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeward.api.codec import (
    decode,
    duplicate_fields,
    has_stray_fields,
    may_have_duplicates,
    parse_tree,
    stray_fields,
    unreadable,
)
from nodeward.api.errors import bad_request, invalid
from nodeward.api.fields import KubeTop
from nodeward.api.protobuf.reading import MEDIA_TYPE
from nodeward.api.schema import schema_of
from nodeward.api.scheme import Kind
from nodeward.apiserver.large_bodies import check_values
from nodeward.apiserver.negotiation import json_body
from nodeward.apiserver.request import Call
from nodeward.apiserver.yaml_bodies import yaml_to_json
from nodeward.base.fielderror import FieldError, not_supported, too_long
from nodeward.base.fieldpath import FieldPath

#: Most unknown and duplicate fields that are named in an answer.
MAX_STRAY: Final = 100
_VALIDATIONS = ("Ignore", "Warn", "Strict")


def unpack(call: Call) -> None:
    """Convert a body to JSON, if it is in another form that bodies may have, and check how much it holds."""
    request = call.request
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "application/apply-patch+yaml":
        request.body = yaml_to_json(request.body)
    elif media in ("application/yaml", MEDIA_TYPE):
        request.body = json_body(media, request.body)
        request.headers = {**request.headers, "content-type": "application/json"}
    check_values(request.body)


def read_object(call: Call, kind: Kind, type_: type[KubeTop] | None = None) -> KubeTop:
    """Decode the body of a request as an object of `kind` (or `type_`)."""
    body = json_body(call.request.headers.get("content-type", ""), call.request.body)
    if not body:
        wanted = type_ or kind.type
        raise bad_request(
            f"the object provided is unrecognized (must be of type {wanted.__name__}): "
            "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"
        )
    obj = decode(body, kind, type_)
    mode = field_validation(call)
    if mode != "Ignore" and (has_stray_fields(body, type(obj)) or may_have_duplicates(body)):
        try:
            tree = parse_tree(body)
        except msgspec.DecodeError as error:
            raise unreadable(body, type(obj).__name__, error) from None
        report_stray(call, obj, kind, mode, tree, body)
    return obj


def field_validation(call: Call) -> str:
    return call.query.get("fieldValidation") or "Warn"


def report_stray(call: Call, obj: KubeTop, kind: Kind, mode: str, tree: Any, body: bytes | None) -> None:
    """Warn of, or refuse, unknown fields and fields given twice."""
    stray = [f'unknown field "{path}"' for path in stray_fields(tree, schema_of(type(obj)))]
    if body is not None:
        stray += [f'duplicate field "{path}"' for path in duplicate_fields(body)]
    version = (obj.api_version or kind.api_version).rpartition("/")[2]
    _say(call, type(obj).__name__, version, mode, stray)


def report_repeats(call: Call, mode: str, body: bytes, before: str) -> None:
    """Warn of, or refuse, fields a patch gives twice; `before` precedes each message."""
    stray = [f'{before}duplicate field "{path}"' for path in duplicate_fields(body)][:MAX_STRAY]
    if stray and mode == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(stray)}")
    for text in stray:
        call.warn(text)


def report_unknown(call: Call, kind: Kind, name: str, paths: list[str]) -> None:
    """Warn of, or refuse, fields that only this emulated version does not know."""
    mode = field_validation(call)
    if mode != "Ignore":
        _say(call, name, kind.version, mode, [f'unknown field "{path}"' for path in paths])


def _say(call: Call, name: str, version: str, mode: str, stray: list[str]) -> None:
    if not stray:
        return
    del stray[MAX_STRAY:]
    if mode == "Strict":
        raise bad_request(
            f'{name} in version "{version}" cannot be handled as a {name}: strict decoding error: {", ".join(stray)}'
        )
    for text in stray:
        call.warn(text)


def check_options(call: Call, name: str) -> None:
    """Check the options every write may carry in its query."""
    faults: list[FieldError] = []
    for value in call.query.all("dryRun"):
        if value != "All":
            faults.append(not_supported(FieldPath("dryRun"), call.query.all("dryRun"), ("All",)))
            break
    manager = call.query.get("fieldManager")
    if len(manager) > 128:
        faults.append(too_long(FieldPath("fieldManager"), 128))
    mode = call.query.get("fieldValidation")
    if mode and mode not in _VALIDATIONS:
        faults.append(not_supported(FieldPath("fieldValidation"), mode, ("", *_VALIDATIONS)))
    if faults:
        raise invalid("meta.k8s.io", name, "", faults)
