"""SPDY/3.1 frames: bytes in, frames out, and back. No input or output, no knowledge of streams.

Headers of a connection are compressed as one long text, so a `Packer` and a `FrameReader` belong to one connection and
see every frame of it. What must stay true: a peer's frames cost no more memory than their limits, whatever their heads
promise; data is handed on as it comes, never gathered.

Called by `kubelet.server.streams` and `session`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from nodeward.base.errors import WorldError

_VERSION: Final = 3
_FIN: Final = 1
_SYN_STREAM: Final = 1
_SYN_REPLY: Final = 2
_RST_STREAM: Final = 3
_PING: Final = 6
_GOAWAY: Final = 7
_HEADERS: Final = 8

_HEAD: Final = 8
_MOST_CONTROL: Final = 64 << 10
_MOST_HEADERS: Final = 256 << 10
#: One frame of ours holds at most this.
MOST_DATA: Final = 32 << 10

#: The words both ends begin with (the protocol's specification, 2.6.10.1): names and values by length, then plain text.
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_MORE_WORDS: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(struct.pack("!I", len(word)) + word.encode() for word in (*_WORDS.split(), *_MORE_WORDS))
    + _TEXT.encode()
)


class SpdyError(WorldError):
    """The peer does not speak SPDY as we know it."""


class Opened(NamedTuple):
    """A stream the peer opens."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class Replied(NamedTuple):
    """The peer takes a stream of ours."""

    stream: int
    is_last: bool


class Data(NamedTuple):
    """Some of a stream, not always a whole frame."""

    stream: int
    data: bytes
    is_last: bool


class Reset(NamedTuple):
    stream: int


class Ping(NamedTuple):
    id: int


class GoAway(NamedTuple):
    last: int


Frame: TypeAlias = Opened | Replied | Data | Reset | Ping | GoAway


class Packer:
    """Frames of one end of a connection, as bytes."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(1, zdict=DICTIONARY)

    def open(self, stream: int, headers: Mapping[str, str]) -> bytes:
        return _control(_SYN_STREAM, struct.pack("!IIH", stream, 0, 0) + self._headers(headers))

    def reply(self, stream: int) -> bytes:
        return _control(_SYN_REPLY, struct.pack("!I", stream) + self._headers({}))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        block = [struct.pack("!I", len(headers))]
        for text in (part for name, value in headers.items() for part in (name.lower(), value)):
            data = text.encode("latin-1")
            block += (struct.pack("!I", len(data)), data)
        return self._zlib.compress(b"".join(block)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


def data(stream: int, content: bytes, *, is_last: bool = False) -> bytes:
    """Return one data frame; `content` is at most `MOST_DATA`."""
    return struct.pack("!II", stream, (_FIN if is_last else 0) << 24 | len(content)) + content


def reset(stream: int, why: int = 5) -> bytes:
    """Give a stream up; 5: no longer wanted, 1: it makes no sense."""
    return _control(_RST_STREAM, struct.pack("!II", stream, why))


def ping(id_: int) -> bytes:
    return _control(_PING, struct.pack("!I", id_))


def go_away(last: int = 0) -> bytes:
    return _control(_GOAWAY, struct.pack("!II", last, 0))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHI", 0x8000 | _VERSION, kind, len(body)) + body


class FrameReader:
    """The frames of the other end, from its bytes."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)
        self._left = bytearray()
        #: of a data frame that is not all here: its stream, how much is missing, and whether it is the last
        self._stream = 0
        self._missing = 0
        self._is_last = False

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Return the frames that are complete now. Raises `SpdyError`; then the connection is of no more use."""
        left = self._left
        left += received
        while left:
            if self._missing:
                piece = bytes(left[: self._missing])
                del left[: self._missing]
                self._missing -= len(piece)
                yield Data(self._stream, piece, self._is_last and not self._missing)
                continue
            if len(left) < _HEAD:
                return
            first, second, rest = struct.unpack_from("!HHI", left)
            flags, size = rest >> 24, rest & 0xFFFFFF
            if not first & 0x8000:
                del left[:_HEAD]
                self._stream, self._missing, self._is_last = first << 16 | second, size, bool(flags & _FIN)
                if not size:
                    yield Data(self._stream, b"", self._is_last)
                continue
            if first != 0x8000 | _VERSION:
                raise SpdyError(f"SPDY version {first & 0x7FFF} is not spoken here")
            if size > _MOST_CONTROL:
                raise SpdyError(f"a control frame of {size} bytes is too large")
            if len(left) < _HEAD + size:
                return
            body = bytes(left[_HEAD : _HEAD + size])
            del left[: _HEAD + size]
            frame = self._control(second, flags, body)
            if frame is not None:
                yield frame

    def _control(self, kind: int, flags: int, body: bytes) -> Frame | None:
        try:
            (word,) = struct.unpack_from("!I", body)
            stream, is_last = word & 0x7FFFFFFF, bool(flags & _FIN)
            if kind == _SYN_STREAM:
                return Opened(stream, self._headers(body[10:]), is_last)
            if kind in (_SYN_REPLY, _HEADERS):
                self._headers(body[4:])  # nobody needs them, but those of the next frame build on them
                return Replied(stream, is_last) if kind == _SYN_REPLY else None
            if kind == _RST_STREAM:
                return Reset(stream)
            if kind == _PING:
                return Ping(word)
            if kind == _GOAWAY:
                return GoAway(stream)
        except struct.error as error:
            raise SpdyError(f"a frame is too short: {error}") from None
        return None  # settings and window sizes: there is no flow control among Kubernetes' programs

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            block = self._zlib.decompress(packed, _MOST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be read: {error}") from None
        if self._zlib.unconsumed_tail:
            raise SpdyError(f"headers of more than {_MOST_HEADERS} bytes are too large")
        position = 4
        headers: dict[str, str] = {}
        for _ in range(struct.unpack_from("!I", block)[0]):
            pair = []
            for _ in range(2):
                (size,) = struct.unpack_from("!I", block, position)
                if size > len(block) - position - 4:
                    raise SpdyError("headers are cut short")
                pair.append(block[position + 4 : position + 4 + size].decode("latin-1"))
                position += 4 + size
            headers[pair[0]] = pair[1]
        return headers
