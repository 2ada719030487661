"""WebSocket to SPDY, for kubelets that do not declare ExtendWebSocketsToKubelet (KEP-5328). Called by `stream.py`.

Such a kubelet serves exec and port-forward over SPDY only. The client's WebSocket then ends here: the channels of a
command become SPDY streams, and the SPDY that port-forward carries inside its WebSocket is unwrapped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.apiserver.api import Api
from nodeward.features.declared.extend_web_sockets import NAME as EXTEND_WEB_SOCKETS
from nodeward.machinery.http_upgrade import UpgradedConnection
from nodeward.machinery.serving.websocket import WebSocket, wants_websocket
from nodeward.machinery.spdy.session import SpdySession, SpdyStream
from nodeward.machinery.transport import Request

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
PORT_FORWARD: Final = "portforward.k8s.io"
TUNNELLED: Final = f"SPDY/3.1+{PORT_FORWARD}"
_GATES: Final = {
    "exec": "TranslateStreamCloseWebsocketRequests",
    "attach": "TranslateStreamCloseWebsocketRequests",
    "portforward": "PortForwardWebsockets",
}

_STDIN: Final = 0
_OUTPUTS: Final = {1: "stdout", 2: "stderr"}
_STATUS: Final = 3
_RESIZE: Final = 4
_CLOSE: Final = 255


def spoken_here(api: Api, node: Node, request: Request, subresource: str) -> str:
    """Return the WebSocket protocol that must be translated because the kubelet does not speak it; "" if none."""
    protocol = TUNNELLED if subresource == "portforward" else V5
    offered = [name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(",")]
    if not wants_websocket(request) or protocol not in offered:
        return ""
    gates = api.env.gates
    if not gates.enabled(_GATES[subresource]):
        return ""
    is_far_enough = EXTEND_WEB_SOCKETS in node.status.declared_features
    return "" if is_far_enough and gates.enabled(EXTEND_WEB_SOCKETS) else protocol


def spdy_headers(protocol: str) -> dict[str, str]:
    """Return the headers of the SPDY request to the kubelet."""
    inner = PORT_FORWARD if protocol == TUNNELLED else V4
    return {"connection": "Upgrade", "upgrade": "SPDY/3.1", "x-stream-protocol-version": inner}


async def translate_ports(client: WebSocket, kubelet: UpgradedConnection) -> None:
    """Unwrap SPDY from the client's WebSocket, and wrap the kubelet's."""

    async def forth() -> None:
        async for message in client.messages():
            if kubelet.write(message):
                await kubelet.drained()

    async def back() -> None:
        async for data in _received(kubelet):
            await client.send(data)

    await _until_first(forth(), back(), client.over())
    client.close()
    kubelet.close()


async def translate_command(client: WebSocket, kubelet: UpgradedConnection, streams: frozenset[str]) -> None:
    """Carry the channels of a command as SPDY streams; `streams` are those the client asked for."""

    async def send(data: bytes) -> None:
        if kubelet.write(data):
            await kubelet.drained()

    session = SpdySession(send, is_server=False)
    running = asyncio.create_task(session.run(_received(kubelet)))
    try:
        error = await session.open(streamtype="error")
        await error.close()
        outputs = {
            channel: await session.open(streamtype=name)
            for channel, name in _OUTPUTS.items()
            if name in streams and not (name == "stderr" and "tty" in streams)
        }
        stdin = await session.open(streamtype="stdin") if "stdin" in streams else None
        resize = await session.open(streamtype="resize") if "tty" in streams else None
        for output in outputs.values():
            await output.close()
        hearing = asyncio.create_task(_hear(client, stdin, resize))
        try:
            await _until_first(_show(client, error, outputs), client.over())
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        client.close()
        kubelet.close()


async def _hear(client: WebSocket, stdin: SpdyStream | None, resize: SpdyStream | None) -> None:
    async for message in client.messages():
        channel, data = message[:1], message[1:]
        if channel == bytes((_STDIN,)) and stdin is not None:
            await stdin.write(data)
        elif channel == bytes((_RESIZE,)) and resize is not None:
            await resize.write(data)
        elif channel == bytes((_CLOSE,)) and data[:1] == b"\0" and stdin is not None:
            await stdin.close()


async def _show(client: WebSocket, error: SpdyStream, outputs: dict[int, SpdyStream]) -> None:
    """Send all output, then the command's exit status."""

    async def show(channel: int, stream: SpdyStream) -> None:
        while data := await stream.read():
            await client.send(bytes((channel,)) + data)

    await asyncio.gather(*(show(channel, stream) for channel, stream in outputs.items()))
    status = bytearray()
    while data := await error.read():
        status += data
    if status:
        await client.send(bytes((_STATUS,)) + status)


async def _until_first(*works: Coroutine[Any, Any, None]) -> None:
    """Wait until one task has ended, and cancel the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _received(kubelet: UpgradedConnection) -> AsyncIterator[bytes]:
    while data := await kubelet.read():
        yield data
