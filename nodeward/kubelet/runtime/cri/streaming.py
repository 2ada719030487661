"""A connection to the runtime's streaming server: an SPDY session that is read as somebody asks for its data.

Used by `execution`; the session is `machinery.spdy`, the HTTP upgrade `machinery.http_upgrade`. Every CRI runtime
serves commands over SPDY; WebSocket, which some serve too, cannot close a command's standard input in the versions
containerd 1.6 knows.

What must stay true: no more than one read is taken ahead, so a command whose output nobody takes waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from nodeward.base.errors import WorldError
from nodeward.machinery.clock import Clock
from nodeward.machinery.http_upgrade import UpgradedConnection, upgrade
from nodeward.machinery.spdy.session import SpdySession
from nodeward.machinery.transport import ConnectionFailed, Request, Response


class StreamingConnection:
    """The streams of one command. Open them through `session`; `receive` moves arrived data into them."""

    def __init__(self, connection: UpgradedConnection) -> None:
        self._connection = connection
        self.session: Final = SpdySession(self._send, is_server=False)

    async def receive(self) -> bool:
        """Handle the next frame, waiting for it if necessary; False: the connection is over. Raises SpdyError."""
        while not await self.session.handle_next():
            received = b"" if self.session.is_over else await self._connection.read()
            if not received:
                return False
            self.session.feed(received)
        return True

    def close(self) -> None:
        """Close the connection; the streams of the command are then over."""
        self._connection.close()

    async def _send(self, data: bytes) -> None:
        if self._connection.write(data):
            await self._connection.drained()


async def connect(url: str, headers: Mapping[str, str], clock: Clock) -> StreamingConnection:
    """Connect to `url` and switch to SPDY. Raises WorldError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        raise WorldError(f"the container runtime offers its streams at {url}: only http is supported")
    switch = {"connection": "Upgrade", "upgrade": "SPDY/3.1", "content-length": "0", **headers}
    request = Request("POST", parts.path or "/", parts.query, switch)
    try:
        answer = await upgrade(parts.hostname, parts.port or 80, None, request, clock)
    except ConnectionFailed as error:
        raise WorldError(f"the container runtime does not open a stream at {parts.netloc}: {error}") from None
    if isinstance(answer, Response):
        said = (answer.body or b"").decode("utf-8", "replace").strip()
        raise WorldError(
            f"the container runtime does not open a stream: HTTP {answer.status} {said}".rstrip()
        )
    return StreamingConnection(answer)
