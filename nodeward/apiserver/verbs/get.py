"""GET of one object, from the watch cache."""

from __future__ import annotations

from nodeward.api.codec import stand_alone
from nodeward.api.errors import not_found
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.negotiation import Form, accepted
from nodeward.apiserver.presenting import present_one
from nodeward.apiserver.request import Call
from nodeward.machinery.serving.answer import Answer


async def get(api: Api, call: Call, kind: Kind) -> Answer:
    """Return the object, at least as new as the request asks."""
    wanted = accepted(call.request.headers.get("accept", ""))
    revision = call.query.revision("resourceVersion")
    if revision is None:
        await api.env.hub.fresh()
    else:
        await api.env.hub.at_least(revision)
    inner = f"{call.namespace}/{call.name}" if kind.is_namespaced else call.name
    item = api.env.hub.cache(kind).objects.get(inner)
    if item is None:
        raise not_found(kind.group, kind.resource, call.name)
    if wanted.form is Form.OBJECT and not kind.stored_as:
        return Answer(200, stand_alone(kind, item.data))
    return present_one(api, call, kind, item, wanted)
