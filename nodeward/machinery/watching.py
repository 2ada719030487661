"""A watch, seen from the client: a stream of bytes becomes events.

In go the parts of a streamed answer, cut anywhere; out come whole events, in order. An ERROR event is raised as the
`ApiError` it carries; a stream that breaks off raises `ConnectionFailed`; a watch that ran its time just ends.

What must stay true: an event is delivered once and whole, or not at all.

Called by `client` and `reflector`; calls `reading` and `transport`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Final, Generic, TypeVar

import msgspec

from nodeward.api.errors import ApiError
from nodeward.api.meta import Status
from nodeward.api.scheme import Kind
from nodeward.machinery.reading import BadAnswer, ObjectReader
from nodeward.machinery.transport import ResponseStream

T = TypeVar("T")

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

#: On the bookmark that follows the last initial event of a watch with `send_initial_events`.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """What happened to one object. A bookmark's object has nothing but a resource version."""

    type: str
    object: T


class Frame(msgspec.Struct, frozen=True, gc=False):
    """An event as it came: its object is still bytes."""

    type: str
    object: msgspec.Raw


_FRAMES: Final = msgspec.json.Decoder(Frame)
_STATUS: Final = msgspec.json.Decoder(Status)


class Watch(Generic[T]):
    """One watch request; opened at the first `async for` (or `open`), to be closed by whoever made it.

    `async with client.watch(...) as watch: async for event in watch: ...`
    """

    def __init__(
        self, connect: Callable[[], Awaitable[ResponseStream]], reader: ObjectReader[T], kind: Kind
    ) -> None:
        self._connect = connect
        self._reader = reader
        self._kind = kind
        self._stream: ResponseStream | None = None
        self._parts: AsyncIterator[bytes] | None = None
        #: The beginning of an event whose end has not come yet.
        self._rest: list[bytes] = []
        self._ready: deque[Frame] = deque()
        #: What ends the watch once the events before it are delivered.
        self._error: Exception | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Send the request; raises `ApiError` if the server refuses, such as for a version it has forgotten."""
        if self._stream is None and not self._is_closed:
            self._stream = await self._connect()
            self._parts = aiter(self._stream)

    async def next_batch(self) -> list[Frame]:
        """Return events as they arrive, several when they come fast, undecoded; empty when the watch has ended."""
        await self.open()
        while self._error is None and self._parts is not None and not self._is_closed:
            part = await anext(self._parts, None)
            if part is None:
                if any(piece.strip() for piece in self._rest):
                    raise BadAnswer("a watch ended in the middle of an event")
                return []
            cut = part.rfind(b"\n")
            if cut < 0:
                self._rest.append(part)
                continue
            lines = b"".join([*self._rest, part[:cut]])
            self._rest = [part[cut + 1 :]] if cut + 1 < len(part) else []
            frames = self._split(lines)
            if frames:
                return frames
        if self._error is not None:
            raise self._error
        return []

    def _split(self, lines: bytes) -> list[Frame]:
        try:
            frames = _FRAMES.decode_lines(lines)
            for position, frame in enumerate(frames):
                if frame.type == ERROR:
                    self._error = ApiError(_STATUS.decode(frame.object))
                    return frames[:position]
        except msgspec.DecodeError as error:
            raise BadAnswer(f"a watch sent something that is no event: {error}") from error
        return frames

    def __aiter__(self) -> AsyncIterator[WatchEvent[T]]:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        if not self._ready:
            self._ready.extend(await self.next_batch())
            if not self._ready:
                raise StopAsyncIteration
        frame = self._ready.popleft()
        return WatchEvent(frame.type, self._reader.one(bytes(frame.object), self._kind))

    async def aclose(self) -> None:
        self._is_closed = True
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def __aenter__(self) -> Watch[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
