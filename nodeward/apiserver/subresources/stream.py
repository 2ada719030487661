"""pods/exec, pods/attach, pods/portforward: a connection through to the pod's kubelet.

Bytes are passed on unchanged in both directions, with backpressure. Where a kubelet does not speak the client's
protocol they are translated (`translating.py`). Refusals of kubelets are passed on.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import bad_request
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.kubelet_access import unreachable
from nodeward.apiserver.request import Call
from nodeward.apiserver.subresources.pod_target import chosen_container, find_pod, node_of
from nodeward.apiserver.subresources.translating import (
    spdy_headers,
    spoken_here,
    translate_command,
    translate_ports,
)
from nodeward.machinery.http_upgrade import UpgradedConnection, upgrade
from nodeward.machinery.serving.answer import Answer, TunnelSink
from nodeward.machinery.serving.websocket import accept, wants_websocket
from nodeward.machinery.transport import ConnectionFailed, Request, Response

_ASK_FOR_CREATE: Final = "AuthorizePodWebsocketUpgradeCreatePermission"
#: Names of the streams in a client's query, and in the kubelet's.
_STREAMS: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
#: The client's headers that belong to the protocol switch.
_HANDED_ON: Final = ("connection", "upgrade", "x-stream-protocol-version")
_HANDED_ON_PREFIX: Final = "sec-websocket-"


async def connect(api: Api, call: Call, kind: Kind) -> Answer:
    """Connect to the kubelet, then switch protocols with the client."""
    if call.verb != "create" and api.env.gates.enabled(_ASK_FOR_CREATE):
        # A WebSocket begins with GET, and reading must not be enough to run a command.
        api.require(msgspec.structs.replace(call.attributes(), verb="create"))
    pod = await find_pod(api, call)
    request = Request(call.request.method, *_location(call, pod), _headers(call.request))
    if not pod.spec.node_name:
        raise bad_request(f"pod {call.name} does not have a host assigned")
    node = node_of(api, pod)
    access = api.kubelets
    host, port = access.address(node)
    if "upgrade" not in call.request.headers.get("connection", "").lower():
        raise bad_request("Upgrade request required")
    if access.tls is None:
        raise unreachable("this API server has no certificate to show to kubelets")
    ours = spoken_here(api, node, call.request, call.subresource)
    if wants_websocket(call.request):
        access.streamed(call.subresource, "translated_at_apiserver" if ours else "proxied_to_kubelet")
    if ours:
        request.method, request.headers = "POST", spdy_headers(ours)
    try:
        answer = await upgrade(host, port, access.tls, request, api.env.clock)
    except ConnectionFailed as error:
        raise unreachable(f"error dialing backend: {error}") from None
    if isinstance(answer, Response):
        return Answer(
            answer.status, answer.body or b"", answer.headers.get("content-type", "text/plain; charset=utf-8")
        )
    if ours:
        return _translated(api, call, answer, ours)
    return Answer(101, headers=_named(answer.headers), tunnel=Relay(answer))


def _translated(api: Api, call: Call, kubelet: UpgradedConnection, protocol: str) -> Answer:
    answer, socket, _ = accept(call.request, (protocol,), api.env.clock)
    if socket is None:
        kubelet.close()
    elif call.subresource == "portforward":
        api.spawn(translate_ports(socket, kubelet))
    else:
        streams = frozenset(name for name in _STREAMS if call.query.flag(name))
        api.spawn(translate_command(socket, kubelet, streams))
    return answer


def _location(call: Call, pod: Pod) -> tuple[str, str]:
    """Return path and query at the kubelet."""
    query, place = call.query, f"{pod.metadata.namespace}/{pod.metadata.name}"
    if call.subresource == "portforward":
        ports = ",".join(query.all("ports"))
        return f"/portForward/{place}", urlencode({"port": ports}) if ports else ""
    container = chosen_container(pod, query.get("container"))
    pairs = [(theirs, "1") for ours, theirs in _STREAMS.items() if query.flag(ours)]
    if call.subresource == "exec":
        pairs.extend(("command", part) for part in query.all("command"))
    return f"/{call.subresource}/{place}/{container}", urlencode(sorted(pairs, key=lambda pair: pair[0]))


def _headers(request: Request) -> dict[str, str]:
    return {
        name: value
        for name, value in request.headers.items()
        if name in _HANDED_ON or name.startswith(_HANDED_ON_PREFIX)
    }


def _named(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of the protocol switch with their usual capitals."""
    return {
        "-".join(part.capitalize() for part in name.split("-")): value
        for name, value in headers.items()
        if name in _HANDED_ON or name.startswith(_HANDED_ON_PREFIX)
    }


class Relay:
    """Passes bytes between a client and a kubelet. Implements `Tunnel`."""

    def __init__(self, kubelet: UpgradedConnection) -> None:
        self._kubelet = kubelet
        self._sink: TunnelSink | None = None
        self._back: asyncio.Task[None] | None = None
        self._catching_up: asyncio.Task[None] | None = None

    def start(self, sink: TunnelSink) -> None:
        self._sink = sink
        self._back = asyncio.create_task(self._hand_back(sink))

    def received(self, data: bytes) -> None:
        if self._kubelet.write(data) and self._catching_up is None and self._sink is not None:
            self._sink.pause()
            self._catching_up = asyncio.create_task(self._catch_up(self._sink))

    def gone(self) -> None:
        for task in (self._back, self._catching_up):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self._kubelet.close()

    async def _hand_back(self, sink: TunnelSink) -> None:
        while data := await self._kubelet.read():
            sink.write(data)
            await sink.drained()
        sink.finish()

    async def _catch_up(self, sink: TunnelSink) -> None:
        await self._kubelet.drained()
        self._catching_up = None
        sink.resume()
