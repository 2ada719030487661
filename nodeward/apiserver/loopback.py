"""Requests without a socket: a transport that hands requests to the application in the same process.

Used by embedded components and tests. A request passes the same authentication (as the transport's user),
authorization, admission and encoding as on the wire; only sockets and TLS are missing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from nodeward.apiserver.app import App
from nodeward.apiserver.auth.user import AUTHENTICATED, MASTERS, User
from nodeward.machinery.serving.answer import Streaming
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.transport import ConnectionFailed, Request, Response

#: The server's own user, as upstream names it.
LOOPBACK_USER = User("system:apiserver", "", (MASTERS, AUTHENTICATED), {})


class LoopbackTransport:
    """Sends requests to an API server in the same process, as `user` (None: as the headers say)."""

    def __init__(self, app: App, user: User | None = LOOPBACK_USER) -> None:
        self._app = app
        self._peer = Peer("127.0.0.1")
        self._peer.identity = user
        self._streams: dict[LoopbackStream, None] = {}

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        answer = await self._app.handle(request, self._peer)
        headers = {"content-type": answer.content_type}
        headers.update((name.lower(), value) for name, value in answer.headers.items())
        if answer.tunnel is not None:
            answer.tunnel.gone()  # there is no connection here that could become something else
        if answer.stream is None:
            return Response(answer.status, headers, answer.whole())
        flow = LoopbackStream(answer.stream, self._streams)
        if stream:
            return Response(answer.status, headers, stream=flow)
        return Response(answer.status, headers, b"".join([part async for part in flow]))

    async def aclose(self) -> None:
        for stream in list(self._streams):
            stream.abort("the connection was closed")


class LoopbackStream:
    """Both ends of a stream: the client reads what the server writes."""

    def __init__(self, source: Streaming, open_: dict[LoopbackStream, None]) -> None:
        self._source = source
        self._open = open_
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._is_finished = False
        #: why the stream breaks off; empty: it does not
        self._fault = ""
        open_[self] = None
        source.start(self)

    # -- the server's end

    @property
    def buffered(self) -> int:
        return self._size

    def write(self, data: bytes) -> None:
        if data and not self._is_finished:
            self._parts.append(data)
            self._size += len(data)
            self._news.set()

    def finish(self) -> None:
        self._end()

    def abort(self, fault: str = "the server cut this watch off: it was not read fast enough") -> None:
        self._fault = fault
        self._parts.clear()
        self._end()

    def _end(self) -> None:
        if not self._is_finished:
            self._is_finished = True
            self._source.gone()
            self._open.pop(self, None)
            self._news.set()

    # -- the client's end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while self._parts:
                part = self._parts.popleft()
                self._size -= len(part)
                yield part
            if self._fault:
                raise ConnectionFailed(self._fault)
            if self._is_finished:
                return
            self._news.clear()
            await self._news.wait()

    async def aclose(self) -> None:
        self._end()
