"""List, then watch, for ever: a copy of a collection kept up to date across everything that can go wrong.

In goes a client and what to follow, out come calls on a `ReflectorSink`: first `replace` with everything there is, then
one call for each change, in order. After a lost connection the watch goes on right behind the last event seen; when the
server no longer remembers that version, everything is listed again and the sink is told the difference by `replace`.

What must stay true: no change is missed and none is told twice in a row as something new; between failures the waits
grow, so that a thousand reflectors do not keep a struggling server down.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ListMeta
from nodeward.api.scheme import Kind
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.machinery.backoff import Backoff, Curve
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance
from nodeward.machinery.reading import BadAnswer, ObjectReader, raw_page, reader_of
from nodeward.machinery.transport import ConnectionFailed
from nodeward.machinery.watching import ADDED, BOOKMARK, DELETED, MODIFIED, Frame

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

#: Waits between tries, in seconds.
_CURVE: Final = Curve(initial=0.8, cap=30.0, factor=2.0, jitter=1.0)
#: A watch that ends sooner than this without a single event did not work.
_SHORTEST_WATCH_SECONDS: Final = 1.0
#: Watches are renewed after a random time in this range, so that they spread over the servers there are.
_WATCH_SECONDS: Final = (300.0, 600.0)


class ReflectedObject(NamedTuple, Generic[T]):
    """One object with what identifies this version of it. `key` is "namespace/name", or "name" without namespace."""

    key: str
    version: str
    obj: T


class ReflectorSink(Protocol[T]):
    """The receiver of a reflector's changes. Calls come one at a time and must not block."""

    def replace(self, items: Sequence[ReflectedObject[T]]) -> None:
        """Replace the whole state by these objects."""

    def upsert(self, item: ReflectedObject[T]) -> None:
        """Add the object or replace its previous state."""

    def remove(self, item: ReflectedObject[T]) -> None:
        """Remove the object; the argument has its last state."""


class Reflector(Generic[T]):
    """Follows one collection. `wanted` is a type, or an `ObjectReader` (then with `kind`)."""

    def __init__(
        self,
        client: Client,
        wanted: type[T] | ObjectReader[T],
        sink: ReflectorSink[T],
        chance: Chance,
        *,
        kind: Kind | None = None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.kind: Final = kind or client.kind_of(wanted)
        self._client = client
        self._clock = client.clock
        self._reader = _ItemReader(wanted)
        self._sink = sink
        self._chance = chance
        self._backoff = Backoff(_CURVE, chance)
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        #: The newest version everything up to which has been told to the sink; empty before the first list.
        self.version = ""
        self._is_forgotten = False
        #: Why the last try failed; None while all is well.
        self.last_error: Exception | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                await self._list()
                await self._watch_while_possible()
            except ApiError as error:
                # 504: the version asked for has not reached this server. Ask for the newest it can vouch for.
                self._is_forgotten |= error.code in (410, 504)
                await self._pause(error)
            except WorldError as error:
                await self._pause(error)

    async def _list(self) -> None:
        # The first list may come from the server's cache; later ones must not go back in time.
        version = "" if self._is_forgotten else (self.version or "0")
        found = await self._client.list(
            self._reader,
            self._namespace,
            kind=self.kind,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource_version=version,
        )
        self._is_forgotten = False
        self._sink.replace(found.items)
        self.version = found.resource_version
        self.last_error = None

    async def _watch_while_possible(self) -> None:
        """Watch, and watch again where the last watch ended; raises when only a new list can help."""
        while True:
            started_ns = self._clock.monotonic_ns()
            version = self.version
            failure: Exception | None = None
            try:
                await self._watch()
            except ConnectionFailed as error:
                failure = error
            except ApiError as error:
                if error.code != 429:
                    raise
                failure = error
            seconds = (self._clock.monotonic_ns() - started_ns) / SECOND_NS
            if self.version != version or seconds > _CURVE.cap:
                self._backoff.reset()
            elif failure is None and seconds < _SHORTEST_WATCH_SECONDS:
                failure = ConnectionFailed("the watch ended at once and without an event")
            if failure is not None:
                await self._pause(failure)

    async def _watch(self) -> None:
        watch = self._client.watch(
            self._reader,
            self._namespace,
            kind=self.kind,
            resource_version=self.version,
            timeout_seconds=int(self._chance.uniform(*_WATCH_SECONDS)),
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async with watch:
            await watch.open()
            self.last_error = None
            while batch := await watch.next_batch():
                for frame in batch:
                    self._deliver(frame)

    def _deliver(self, frame: Frame) -> None:
        body = bytes(frame.object)
        if frame.type == BOOKMARK:
            self.version = _identity(body).metadata.resource_version
            return
        item = self._reader.one(body, self.kind)
        if frame.type in (ADDED, MODIFIED):
            self._sink.upsert(item)
        elif frame.type == DELETED:
            self._sink.remove(item)
        else:
            raise BadAnswer(f"a watch sent an event of type {frame.type!r}")
        self.version = item.version

    async def _pause(self, error: Exception) -> None:
        self.last_error = error
        seconds = self._backoff.next()
        _log.warning("following %s: %s; next try in %.1f s", self.kind.qualified_resource, error, seconds)
        await self._clock.sleep(seconds)


class _Identity(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct, gc=False):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_IDENTITY: Final = msgspec.json.Decoder(_Identified)


def _identity(body: bytes) -> _Identified:
    try:
        return _IDENTITY.decode(body)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"an object without readable metadata: {error}") from error


class _ItemReader(Generic[T]):
    """Reads objects together with their identity, whether or not what the caller wants has any."""

    def __init__(self, wanted: type[T] | ObjectReader[T]) -> None:
        self._reader = reader_of(wanted)
        self._has_metadata = isinstance(wanted, type) and issubclass(wanted, KubeObject)

    def one(self, body: bytes, kind: Kind | None = None) -> ReflectedObject[T]:
        obj: Any = self._reader.one(body, kind)
        return _item(obj.metadata if self._has_metadata else _identity(body).metadata, obj)

    def page(self, body: bytes, kind: Kind) -> tuple[list[ReflectedObject[T]], ListMeta]:
        if self._has_metadata:
            objects: Any
            objects, meta = self._reader.page(body, kind)
            return [_item(obj.metadata, obj) for obj in objects], meta
        raw, meta = raw_page(body, kind)
        return [self.one(bytes(item), kind) for item in raw], meta


def _item(meta: Any, obj: T) -> ReflectedObject[T]:
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return ReflectedObject(key, meta.resource_version, obj)
