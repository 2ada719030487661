"""Port-forward: connections of a caller to ports of a pod, all of them in one SPDY connection.

For every connection the caller opens two streams, one for its data and one for what goes wrong. What must stay true:
a connection that fails ends itself and no other; when the caller is gone, all are closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any, Final

from nodeward.kubelet.server.channels import Wire
from nodeward.machinery.clock import Clock
from nodeward.machinery.spdy.session import SpdySession, SpdyStream

LOG: Final = logging.getLogger(__name__)

PROTOCOL: Final = "portforward.k8s.io"
#: The same inside a WebSocket.
TUNNELLED: Final = f"SPDY/3.1+{PROTOCOL}"
_PIECE: Final = 32 << 10
_CONNECT_SECONDS: Final = 30.0


class PortForwarding:
    """One caller's connections to one pod, at the address `host`."""

    def __init__(self, wire: Wire, host: str, pod: str, uid: str, clock: Clock) -> None:
        self._wire = wire
        self._host = host
        self._about = f"to pod {pod}, uid {uid}"
        self._clock = clock
        self._session = SpdySession(wire.send, self._took, is_server=True)
        #: request -> the stream of the pair that is here already
        self._halves: dict[str, SpdyStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the caller is gone."""
        ends = [
            asyncio.create_task(self._session.run(self._wire.messages())),
            asyncio.create_task(self._wire.over()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [*ends, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._wire.close()

    def _took(self, stream: SpdyStream) -> bool:
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        if kind not in ("error", "data") or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            return False
        # Old callers number their streams only.
        number = stream.number if kind == "error" else stream.number - 2
        request = stream.headers.get("requestid", "") or str(number)
        other = self._halves.pop(request, None)
        if other is None:
            self._halves[request] = stream
            return True
        if other.headers.get("streamtype") == kind:
            self._halves[request] = other
            return False
        data, error = (stream, other) if kind == "data" else (other, stream)
        self._spawn(self._forward(data, error, int(port)))
        return True

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, data: SpdyStream, error: SpdyStream, port: int) -> None:
        try:
            async with self._clock.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(self._host, port)
        except OSError as why:  # a timeout is one, too
            said = why.strerror or "timed out"
            text = f"error forwarding port {port} {self._about}: dial tcp {self._host}:{port}: {said.lower()}"
            LOG.info("%s", text)
            await error.write(text.encode())
            await error.close()
            await data.reset()
            return
        sending = asyncio.create_task(_hand_on(data, writer))
        try:
            while piece := await reader.read(_PIECE):
                await data.write(piece)
        except OSError as why:
            await error.write(f"error forwarding port {port} {self._about}: {why.strerror}".encode())
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.close()
        await data.close()
        await error.close()


async def _hand_on(data: SpdyStream, writer: asyncio.StreamWriter) -> None:
    """What the caller sends, to the pod; its end, too."""
    with contextlib.suppress(OSError):
        while piece := await data.read():
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
