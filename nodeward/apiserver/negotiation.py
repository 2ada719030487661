"""Content negotiation: object, table or metadata in the answer; JSON, YAML or protobuf in the body.

Called by the verbs. Only JSON is answered. A client that prefers protobuf gets JSON, which all clients accept; a client
that accepts nothing we have gets 406. Go clients send protobuf bodies and do not fall back, so those are read.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum

from nodeward.api.errors import bad_request, not_acceptable, unsupported_media_type
from nodeward.api.protobuf.reading import MEDIA_TYPE, protobuf_to_json
from nodeward.api.protobuf.wire import ProtobufError
from nodeward.apiserver.yaml_bodies import yaml_to_json


class Form(Enum):
    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The form of the answer."""

    form: Form
    content_type: str = "application/json"


_PLAIN = Accepted(Form.OBJECT)
_KNOWN = (
    "application/json",
    "application/*",
    "*/*",
    MEDIA_TYPE,
    "application/yaml",
)
_ALLOWED = (
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf"
)


def accepted(header: str) -> Accepted:
    """Return the first form in an `Accept` header that we can make."""
    # A header of kilobytes is read, and not remembered.
    return _accepted(header) if len(header) <= 1024 else _accepted.__wrapped__(header)


@functools.lru_cache(maxsize=512)
def _accepted(header: str) -> Accepted:
    if not header:
        return _PLAIN
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _KNOWN:
            continue
        facts = dict(part.partition("=")[::2] for part in parameters)
        wanted = facts.get("as", "")
        if not wanted:
            if facts.get("stream") not in (None, "watch"):
                continue
            return _PLAIN
        if facts.get("g") == "meta.k8s.io" and facts.get("v") in ("v1", "v1beta1") and media != MEDIA_TYPE:
            try:
                return Accepted(Form(wanted))
            except ValueError:
                continue
    raise not_acceptable(_ALLOWED)


def json_body(
    content_type: str,
    body: bytes,
    *,
    kinds: tuple[str, ...] = ("application/json", "application/yaml", MEDIA_TYPE),
) -> bytes:
    """Convert a body to JSON."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", "application/json") and "application/json" in kinds:
        return body
    if media == "application/yaml" and media in kinds:
        return yaml_to_json(body)
    if media == MEDIA_TYPE and media in kinds:
        try:
            return protobuf_to_json(body)
        except ProtobufError as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from None
    supported = f"application/json, application/yaml, {MEDIA_TYPE}"
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {supported}"
    )
