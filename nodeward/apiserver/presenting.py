"""Answers that carry objects: one or many, whole, as a table, or as metadata only.

Called by the verbs with items from the caches; prints tables with `nodeward/api/printing`. What must stay true: a whole
object in its stored form is never decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from nodeward.api.codec import decoder, encode, parse_tree, stand_alone
from nodeward.api.errors import not_acceptable
from nodeward.api.meta import KubeObject
from nodeward.api.printing import parse_include, partial_metadata, partial_metadata_list, table
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item, join_items
from nodeward.apiserver.negotiation import Accepted, Form
from nodeward.apiserver.request import Call
from nodeward.machinery.serving.answer import Answer


@dataclass(frozen=True, slots=True)
class ListHead:
    """The metadata of a list."""

    revision: int
    continue_: str = ""
    remaining: int | None = None


def served_bytes(api: Api, kind: Kind, item: Item) -> bytes:
    """Return the object's bytes in the form of `kind`; decoded only if another form is stored."""
    if not kind.stored_as:
        return item.data
    return encode(api.strategy(kind).from_stored_form(parse_tree(item.data)))


def read(kind: Kind, data: bytes) -> KubeObject:
    return cast(KubeObject, decoder(kind.type).decode(data))


def present_one(api: Api, call: Call, kind: Kind, item: Item, wanted: Accepted, status: int = 200) -> Answer:
    """Answer with one object, in the form that was asked for."""
    data = served_bytes(api, kind, item)
    match wanted.form:
        case Form.OBJECT:
            return Answer(status, stand_alone(kind, data))
        case Form.METADATA:
            return Answer(status, partial_metadata(data))
        case Form.TABLE:
            include = parse_include(call.query.get("includeObject"))
            raw = stand_alone(kind, data) if include == "Object" else None
            row = [(read(kind, data), raw)]
            text = table(
                kind, row, now_ns=api.env.clock.now_ns(), include=include, resource_version=str(item.revision)
            )
            return Answer(status, text)
        case Form.METADATA_LIST:
            raise not_acceptable("PartialObjectMetadataList is for lists only")


def present_list(
    api: Api, call: Call, kind: Kind, items: Sequence[Item], head: ListHead, wanted: Accepted
) -> Answer:
    """Answer with many objects, in the form that was asked for."""
    revision = str(head.revision)
    match wanted.form:
        case Form.OBJECT:
            return Answer(200, _plain_list(api, kind, items, head))
        case Form.TABLE:
            include = parse_include(call.query.get("includeObject"))
            datas = [served_bytes(api, kind, item) for item in items]
            rows = [
                (read(kind, data), stand_alone(kind, data) if include == "Object" else None) for data in datas
            ]
            text = table(
                kind,
                rows,
                now_ns=api.env.clock.now_ns(),
                include=include,
                resource_version=revision,
                continue_=head.continue_,
                remaining=head.remaining,
            )
            return Answer(200, text)
        case Form.METADATA | Form.METADATA_LIST:
            datas = [served_bytes(api, kind, item) for item in items]
            text = partial_metadata_list(
                datas, resource_version=revision, continue_=head.continue_, remaining=head.remaining
            )
            return Answer(200, text)


def _plain_list(api: Api, kind: Kind, items: Sequence[Item], head: ListHead) -> list[bytes]:
    """Join the items' bytes to a list; nothing is decoded."""
    meta = b'{"resourceVersion":"%d"' % head.revision
    if head.continue_:
        meta += b',"continue":%b' % encode(head.continue_)
    if head.remaining is not None:
        meta += b',"remainingItemCount":%d' % head.remaining
    start = b'{"kind":"%bList","apiVersion":"%b","metadata":%b},"items":[' % (
        kind.name.encode(),
        kind.api_version.encode(),
        meta,
    )
    if kind.stored_as:
        body = b",".join([served_bytes(api, kind, item) for item in items])
    else:
        body = join_items(items)
    return [start, body, b"]}\n"]
