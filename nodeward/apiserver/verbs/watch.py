"""WATCH: the changes since a revision from the cache's history, then every change as it is committed.

A `WatchStream` sits between a resource's watch cache and one client's connection. Events for watchers without selectors
in the plain form are bytes shared by all of them; selectors, tables and metadata-only watches are encoded per watcher.

What must stay true: a client sees every change after its start revision once and in order, or is disconnected.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeward.api.codec import encode, stand_alone
from nodeward.api.errors import expired, invalid
from nodeward.api.meta import Status
from nodeward.api.printing import Include, parse_include, partial_metadata, table
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.cache import ChangeBatch, ResourceChange, frame, restamp
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import Accepted, Form, accepted
from nodeward.apiserver.presenting import read, served_bytes
from nodeward.apiserver.request import Call
from nodeward.apiserver.selection import Selectors, selection_of
from nodeward.base.fielderror import FieldError, forbidden
from nodeward.base.fieldpath import FieldPath
from nodeward.machinery.clock import Timer
from nodeward.machinery.serving.answer import Answer, ResponseSink

#: Bytes a client may leave unread beyond its initial events, before it is disconnected.
UNREAD_BYTES = 4 << 20
BOOKMARK_SECONDS = 60.0
#: A watch without timeoutSeconds ends after a random time in this range, so that clients do not reconnect together.
LAST_SECONDS = (1800.0, 3600.0)


async def watch(api: Api, call: Call, kind: Kind) -> Answer:
    """Open a watch; the answer is a stream."""
    wanted = accepted(call.request.headers.get("accept", ""))
    selection = selection_of(api, call, kind)
    revision = _revision(call)
    hub = api.env.hub
    if revision:
        await hub.at_least(revision)
    else:
        await hub.fresh()
    stream = WatchStream(api, call, kind, selection, wanted)
    stream.revision = revision
    return Answer(200, stream=stream)


def _revision(call: Call) -> int | None:
    query = call.query
    match = query.get("resourceVersionMatch")
    faults: list[FieldError] = []
    if query.has("sendInitialEvents"):
        if match != "NotOlderThan":
            detail = "resourceVersionMatch must be set to NotOlderThan when sendInitialEvents is provided"
            faults.append(forbidden(FieldPath("resourceVersionMatch"), detail))
        if query.flag("sendInitialEvents") and not query.flag("allowWatchBookmarks"):
            detail = "sendInitialEvents is forbidden for watch unless allowWatchBookmarks is set to true"
            faults.append(forbidden(FieldPath("allowWatchBookmarks"), detail))
    elif match:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        faults.append(forbidden(FieldPath("resourceVersionMatch"), detail))
    if faults:
        raise invalid("meta.k8s.io", "ListOptions", "", faults)
    return query.revision("resourceVersion")


class WatchStream:
    """One watch of one client. Implements `CacheWatcher`."""

    def __init__(self, api: Api, call: Call, kind: Kind, selection: Selectors, wanted: Accepted) -> None:
        self._api = api
        self._kind = kind
        self._cache = api.env.hub.cache(kind)
        self._selection = selection
        self._form = wanted.form
        self._prefix = f"{call.namespace}/" if kind.is_namespaced and call.namespace else ""
        self._include: Include = parse_include(call.query.get("includeObject"))
        self._bookmarks = call.query.flag("allowWatchBookmarks")
        self._initial = call.query.flag("sendInitialEvents") if call.query.has("sendInitialEvents") else None
        self._seconds = call.query.number("timeoutSeconds")
        self.revision: int | None = None
        self._is_shared = (
            selection.is_everything and not self._prefix and self._form is Form.OBJECT and not kind.stored_as
        )
        self._has_headers = True
        self._sink: ResponseSink | None = None
        self._stop = _nothing
        self._timers: list[Timer] = []
        self._allowance = UNREAD_BYTES

    # -- life

    def start(self, sink: ResponseSink) -> None:
        self._sink = sink
        clock, chance = self._api.env.clock, self._api.env.chance
        first = self._first()
        if first is None:
            return
        self._allowance += len(first)
        sink.write(first)
        self._stop = self._cache.watch(self)
        seconds = float(self._seconds) if self._seconds else chance.uniform(*LAST_SECONDS)
        self._timers.append(clock.call_later(seconds, self._finish))
        if self._bookmarks:
            self._timers.append(clock.call_later(BOOKMARK_SECONDS, self._bookmark))

    def gone(self) -> None:
        self._stop()
        self._stop = _nothing
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._sink = None

    def _finish(self) -> None:
        if self._sink is not None:
            self._sink.finish()

    # -- what happens first

    def _first(self) -> bytes | None:
        """Return the events before the first live one; None if the watch ends before it began."""
        wants_state = self._initial if self._initial is not None else not self.revision
        if wants_state:
            frames = [self._render("ADDED", item) for item in self._state()]
            if self._initial:
                frames.append(self._bookmark_frame(ends_initial=True))
            return b"".join(frames)
        revision = self.revision or self._api.env.hub.revision
        if revision < self._cache.history_start:
            self._refuse(revision)
            return None
        return b"".join(self._selected(self._cache.since(revision)))

    def _state(self) -> Iterable[Item]:
        items = self._cache.items(self._prefix)
        if self._selection.is_everything:
            return items
        return (item for item in items if self._selection.takes(item))

    def _refuse(self, revision: int) -> None:
        """Send 410 as an event inside the stream, as Kubernetes does."""
        status = expired(f"too old resource version: {revision} ({self._cache.history_start})").status
        if self._sink is not None:
            self._sink.write(_error_frame(status))
            self._sink.finish()

    # -- what happens then

    def changed(self, batch: ChangeBatch) -> None:
        sink = self._sink
        if sink is None:
            return
        if self._is_shared:
            sink.write(batch.joined(self._kind))
        else:
            data = b"".join(self._selected(batch.changes))
            if not data:
                return
            sink.write(data)
        if sink.buffered > self._allowance:
            sink.abort()

    def relisted(self, batch: ChangeBatch) -> None:
        """End the watch with 410: events were lost between the store and this server."""
        self._refuse(self._api.env.hub.revision)

    def _selected(self, changes: Iterable[ResourceChange]) -> Iterable[bytes]:
        """Encode the changes that this watcher's selectors match."""
        prefix, selection = self._prefix, self._selection
        for change in changes:
            if prefix and not change.key.startswith(prefix):
                continue
            if selection.is_everything:
                yield self._render(change.type, change.item)
                continue
            before = change.previous is not None and selection.takes(change.previous)
            if change.type == "DELETED":
                if before:
                    yield self._render("DELETED", change.item)
                continue
            now = selection.takes(change.item)
            if now:
                yield self._render("MODIFIED" if before else "ADDED", change.item)
            elif before and change.previous is not None:
                # It no longer matches: DELETED with its last matching state, at the revision of the change.
                yield self._render("DELETED", restamp(change.previous, change.revision))

    # -- how it looks

    def _render(self, type_: str, item: Item) -> bytes:
        data = served_bytes(self._api, self._kind, item)
        match self._form:
            case Form.OBJECT:
                return frame(self._kind, type_, data)
            case Form.TABLE:
                return _event(type_, self._table(data))
            case Form.METADATA | Form.METADATA_LIST:
                return _event(type_, partial_metadata(data))

    def _table(self, data: bytes) -> bytes:
        raw = stand_alone(self._kind, data) if self._include == "Object" else None
        text = table(
            self._kind,
            [(read(self._kind, data), raw)],
            now_ns=self._api.env.clock.now_ns(),
            include=self._include,
            has_headers=self._has_headers,
            is_list=False,
        )
        self._has_headers = False
        return text

    def _bookmark(self) -> None:
        if self._sink is None:
            return
        self._sink.write(self._bookmark_frame())
        self._timers[1] = self._api.env.clock.call_later(BOOKMARK_SECONDS, self._bookmark)

    def _bookmark_frame(self, *, ends_initial: bool = False) -> bytes:
        meta: dict[str, object] = {"resourceVersion": str(self._api.env.hub.revision)}
        if ends_initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        data = encode({"metadata": meta})
        if self._form is Form.TABLE:
            return _event("BOOKMARK", self._table(data))
        if self._form is Form.OBJECT:
            return frame(self._kind, "BOOKMARK", data)
        return _event("BOOKMARK", partial_metadata(data))


def _nothing() -> None:
    """Do nothing: there is no watch to stop yet."""


def _event(type_: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)


def _error_frame(status: Status) -> bytes:
    return _event("ERROR", encode(status))
