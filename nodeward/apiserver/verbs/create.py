"""CREATE: POST to a collection. Reads the body and hands the object to the write path (`writing.py`)."""

from __future__ import annotations

from typing import cast

from nodeward.api.errors import bad_request, not_found
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.negotiation import accepted
from nodeward.apiserver.presenting import present_one
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.machinery.serving.answer import Answer


async def create(api: Api, call: Call, kind: Kind) -> Answer:
    """Create an object."""
    wanted = accepted(call.request.headers.get("accept", ""))
    check_options(call, "CreateOptions")
    if kind.is_namespaced and not call.namespace:
        raise (
            not_found(kind.group, kind.resource, "")
            if call.name
            else bad_request("an empty namespace may not be set during creation")
        )
    strategy = api.strategy(kind)
    size = len(call.request.body)
    obj = strategy.to_stored_form(cast(KubeObject, await api.env.worker.run(size, read_object, call, kind)))
    written = await api.writer.create(call, strategy, obj)
    return present_one(api, call, kind, written.item, wanted, status=201)
