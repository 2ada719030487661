"""nodes/proxy: a page of a node's kubelet, read through the API server (`/api/v1/nodes/NAME/proxy/PATH`).

The API server asks the kubelet with its own client certificate; the right to do so is `get` on `nodes/proxy`. Only
reading is passed on: neither bodies nor a switch of protocols, so that no command can be run this way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import quote as escaped

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import method_not_supported, not_found
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.kubelet_access import unreachable
from nodeward.apiserver.request import Call
from nodeward.base.fielderror import quote
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.serving.answer import TEXT, Answer
from nodeward.machinery.serving.streamed_body import StreamedBody
from nodeward.machinery.transport import ConnectionFailed, Request, ResponseStream

#: Of the client's headers, those the kubelet sees.
_PASSED_ON: Final[tuple[str, ...]] = ("accept", "user-agent")


async def read_page(api: Api, call: Call, kind: Kind) -> Answer:
    """Ask the node's kubelet and stream its answer, whatever its status."""
    await api.env.hub.fresh()
    node = api.env.peek(Node, call.name)
    if node is None:
        raise not_found("", "nodes", call.name)
    access = api.kubelets
    host, port = access.address(node)
    if access.tls is None:
        raise unreachable("this API server has no certificate to show to kubelets")
    url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    path = escaped(f"/{call.proxied}", safe="/:@!$&'()*+,;=~-._")
    headers = {name: call.request.headers[name] for name in _PASSED_ON if name in call.request.headers}
    transport = HttpTransport(url, clock=api.env.clock, ssl_context=access.tls, max_connections=1)
    try:
        response = await transport.send(
            Request("GET", path, call.request.query, headers), stream=call.request.method != "HEAD"
        )
    except ConnectionFailed as error:
        await transport.aclose()
        raise unreachable(f"error trying to reach service: Get {quote(url + path)}: {error}") from None
    content = response.headers.get("content-type", TEXT)
    if response.stream is None:
        await transport.aclose()
        return Answer(response.status, response.body or b"", content)
    stream = StreamedBody(_parts(response.stream), api.env.clock, transport.aclose)
    return Answer(response.status, content_type=content, stream=stream, is_patient=True)


async def refuse_writing(api: Api, call: Call, kind: Kind) -> Answer:
    """Refuse whatever is not reading."""
    # Unlike upstream, where a POST to a kubelet's pages runs commands.
    raise method_not_supported(kind.group, f"{kind.resource}/{call.subresource}", call.verb)


async def _parts(stream: ResponseStream) -> AsyncGenerator[bytes, None]:
    async for part in stream:
        yield part
