"""POST to a collection."""

from __future__ import annotations

from typing import cast

from nodeward.api.errors import bad_request, not_found
from nodeward.api.events_v1 import Event as NewEvent
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.negotiation import accepted
from nodeward.apiserver.presenting import present_one
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.event_view import view_to_core
from nodeward.machinery.serving.answer import Answer


async def create(api: Api, call: Call, kind: Kind) -> Answer:
    """A new object."""
    wanted = accepted(call.request.headers.get("accept", ""))
    check_options(call, "CreateOptions")
    if kind.is_namespaced and not call.namespace:
        raise (
            not_found(kind.group, kind.resource, "")
            if call.name
            else bad_request("an empty namespace may not be set during creation")
        )
    obj = cast(KubeObject, read_object(call, kind))
    if isinstance(obj, NewEvent):
        obj = view_to_core(obj)
    written = await api.writer.create(call, api.writing(kind), obj)
    return present_one(api, call, kind, written.item, wanted, status=201)
