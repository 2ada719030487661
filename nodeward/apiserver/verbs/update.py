"""UPDATE: PUT replaces an object by what the client sends, through the write path (`writing.py`)."""

from __future__ import annotations

from typing import Any, cast

from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import accepted
from nodeward.apiserver.presenting import present_one
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.strategy import UpdateMode
from nodeward.machinery.serving.answer import Answer


async def update(api: Api, call: Call, kind: Kind, mode: UpdateMode) -> Answer:
    """Replace the object, or the part of it that `mode` names."""
    wanted = accepted(call.request.headers.get("accept", ""))
    check_options(call, "UpdateOptions")
    strategy = api.strategy(kind)

    def sent() -> KubeObject:
        return strategy.to_stored_form(cast(KubeObject, read_object(call, kind)))

    def make(item: Item, old: Any) -> KubeObject:
        obj = sent()
        strategy.default(obj)
        return obj

    creates = strategy.creates_on_update and not mode.subresource
    written = await api.writer.update(call, strategy, mode, make, may_create=sent if creates else None)
    status = 201 if written.is_created else 200
    return present_one(api, call, kind, written.item, wanted, status=status)
