"""Subresources. Parts of the object are written as the strategy's `update_modes` say; others have a file each.

Called by `app.py`. A new subresource is a handler in `HANDLERS` or an update mode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.errors import method_not_supported
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.request import Call
from nodeward.apiserver.subresources.binding import bind
from nodeward.apiserver.subresources.eviction import evict
from nodeward.apiserver.subresources.log import read_log
from nodeward.apiserver.subresources.node_proxy import read_page, refuse_writing
from nodeward.apiserver.subresources.scale import change_scale, get_scale
from nodeward.apiserver.subresources.stream import connect
from nodeward.apiserver.subresources.token import issue_token
from nodeward.apiserver.verbs.get import get
from nodeward.apiserver.verbs.patch import patch
from nodeward.apiserver.verbs.update import update
from nodeward.machinery.serving.answer import Answer

Handler = Callable[[Api, Call, Kind], Awaitable[Answer]]

#: (subresource, verb) -> its handler, for subresources that are not part of the object
HANDLERS: dict[tuple[str, str], Handler] = {
    ("attach", "create"): connect,
    ("attach", "get"): connect,
    ("binding", "create"): bind,
    ("eviction", "create"): evict,
    ("exec", "create"): connect,
    ("exec", "get"): connect,
    ("log", "get"): read_log,
    ("portforward", "create"): connect,
    ("portforward", "get"): connect,
    ("proxy", "get"): read_page,
    **{("proxy", verb): refuse_writing for verb in ("create", "delete", "patch", "update")},
    ("scale", "get"): get_scale,
    ("scale", "update"): change_scale,
    ("scale", "patch"): change_scale,
    ("token", "create"): issue_token,
}


async def serve_subresource(api: Api, call: Call, kind: Kind) -> Answer:
    """Dispatch a request for a subresource `kind` has."""
    handler = HANDLERS.get((call.subresource, call.verb))
    if handler is not None:
        return await handler(api, call, kind)
    if call.verb == "get":
        return await get(api, call, kind)
    strategy = api.strategy(kind)
    if call.verb == "update":
        return await update(api, call, kind, strategy.update_mode(call.subresource))
    if call.verb == "patch":
        return await patch(api, call, kind, strategy.update_mode(call.subresource))
    raise method_not_supported(kind.group, f"{kind.resource}/{call.subresource}", call.verb)
