"""An API server small enough to read, as a transport: the other side for client, informer, election and events tests.

It keeps trees, knows resource versions, watches with history, pages and a few faults that tests switch on. It
validates nothing and has no defaults: what the real server does beyond that is the contract suite's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from nodeward.api import codec, errors
from nodeward.api.scheme import SCHEME, Kind
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import Chance, Clock, SeededChance
from nodeward.machinery.transport import ConnectionFailed, Request, Response

Tree = dict[str, Any]


@dataclass
class _Event:
    revision: int
    type: str
    resource: str
    namespace: str
    tree: Tree


@dataclass
class _Place:
    """What a path names."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def resource(self) -> str:
        return self.kind.qualified_resource


@dataclass
class FakeApi:
    """Implements `Transport`."""

    clock: Clock
    chance: Chance = field(default_factory=lambda: SeededChance("fake"))
    #: every request seen, as "METHOD target"
    log: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    #: asked before every request; what it returns is answered instead (None: go on), what it raises is raised
    fault: Callable[[Request], Response | None] | None = None
    #: set to send a bookmark to every watch that is opened
    bookmarks: bool = False

    def __post_init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Tree] = {}
        self._events: list[_Event] = []
        self._revision = 1
        self._compacted = 0
        self._streams: dict[FakeStream, None] = {}

    # -- what tests do behind the client's back -------------------------------------------------------------------

    @property
    def open_watches(self) -> int:
        return len(self._streams)

    def break_watches(self) -> None:
        """All connections of watches are lost."""
        for stream in list(self._streams):
            stream.end(ConnectionFailed("the fake broke the connection"))

    def end_watches(self) -> None:
        """All watches run out of time."""
        for stream in list(self._streams):
            stream.end(None)

    def forget_history(self) -> None:
        """Compact: older versions can no longer be watched."""
        self._compacted = self._revision

    def advance(self) -> None:
        """Something nobody here sees happens elsewhere: the version moves on."""
        self._revision += 1

    def send_bookmarks(self) -> None:
        for stream in list(self._streams):
            stream.feed(
                _line("BOOKMARK", {"kind": "X", "metadata": {"resourceVersion": str(self._revision)}})
            )

    def send_error(self, error: errors.ApiError) -> None:
        for stream in list(self._streams):
            stream.feed(_line("ERROR", codec.to_tree(error.status)))

    # -- Transport ------------------------------------------------------------------------------------------------

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        self.log.append(f"{request.method} {request.target}")
        self.requests.append(request)
        await self.clock.yield_now()
        if self.fault is not None:
            answer = self.fault(request)
            if answer is not None:
                return answer
        try:
            return self._handle(request, stream)
        except errors.ApiError as error:
            return Response(error.code, {}, codec.encode(error.status))

    async def aclose(self) -> None:
        self.break_watches()

    # -- verbs ----------------------------------------------------------------------------------------------------

    def _handle(self, request: Request, stream: bool) -> Response:
        place = _place(request.path)
        query = {name: values[0] for name, values in parse_qs(request.query).items()}
        if request.method == "GET" and query.get("watch") == "true":
            return self._watch(place, query)
        if request.method == "GET":
            return _ok(self._found(place)) if place.name else self._list(place, query)
        if request.method == "DELETE":
            return self._delete(place, query, codec.parse_tree(request.body) if request.body else {})
        body = codec.parse_tree(request.body)
        is_dry = query.get("dryRun") == "All"
        if request.method == "POST":
            return self._post(place, body, is_dry)
        if request.method == "PUT":
            return _ok(self._replace(place, body, is_dry))
        return self._patch(place, request.headers["content-type"], body, query, is_dry)

    def _post(self, place: _Place, body: Tree, is_dry: bool) -> Response:
        if place.subresource == "binding":
            pod = codec.parse_tree(codec.encode(self._found(place)))
            if pod["spec"].get("nodeName"):
                raise errors.conflict("", "pods", place.name, "pod is already assigned to node")
            pod["spec"]["nodeName"] = body["target"]["name"]
            self._put(place, pod, "MODIFIED")
            return _ok({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}, 201)
        if place.subresource == "eviction":
            return self._delete(place, {}, body.get("deleteOptions") or {})
        meta = body.setdefault("metadata", {})
        if not meta.get("name"):
            meta["name"] = meta["generateName"] + self.chance.name_suffix()
        if place.kind.is_namespaced:
            meta.setdefault("namespace", place.namespace)
        named = _Place(place.kind, place.namespace, meta["name"], "")
        if self._key(named) in self._objects:
            raise errors.already_exists(place.kind.group, place.kind.resource, meta["name"])
        meta["uid"] = self.chance.uuid()
        meta["creationTimestamp"] = rfc3339(self.clock.now_ns())
        return _ok(body if is_dry else self._put(named, body, "ADDED"), 201)

    def _replace(self, place: _Place, body: Tree, is_dry: bool) -> Tree:
        old = self._found(place)
        expected = body["metadata"].get("resourceVersion")
        if expected and expected != old["metadata"]["resourceVersion"]:
            raise errors.conflict(place.kind.group, place.kind.resource, place.name, errors.MODIFIED)
        if place.subresource == "status":
            body = {**old, "status": body.get("status", {})}
        elif place.kind.has_status and "status" in old:
            body = {**body, "status": old["status"]}
        for fixed in ("uid", "creationTimestamp"):
            body["metadata"][fixed] = old["metadata"][fixed]
        if is_dry or _without_version(body) == _without_version(old):
            return old if not is_dry else body
        return self._put(place, body, "MODIFIED")

    def _patch(self, place: _Place, how: str, patch: Any, query: dict[str, str], is_dry: bool) -> Response:
        if how == PatchType.APPLY and self._key(place) not in self._objects:
            return self._post(_Place(place.kind, place.namespace, "", ""), patch, is_dry)
        body: Tree = codec.parse_tree(codec.encode(self._found(place)))
        if how == PatchType.JSON:
            for step in patch:
                *parents, last = step["path"].split("/")[1:]
                target = body
                for part in parents:
                    target = target[part]
                if step["op"] == "remove":
                    del target[last]
                else:
                    target[last] = step["value"]
        else:
            _merge(body, patch)
        return _ok(self._replace(place, body, is_dry))

    def _delete(self, place: _Place, query: dict[str, str], options: Tree) -> Response:
        if not place.name:
            for tree in self._matching(place, query):
                meta = tree["metadata"]
                self._remove(_Place(place.kind, meta.get("namespace", ""), meta["name"], ""))
            return _ok({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        found = self._found(place)
        for name, wanted in (options.get("preconditions") or {}).items():
            if found["metadata"][name] != wanted:
                why = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: ..."
                raise errors.conflict(place.kind.group, place.kind.resource, place.name, why)
        if not options.get("dryRun"):
            self._remove(place)
        return _ok({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _list(self, place: _Place, query: dict[str, str]) -> Response:
        trees = self._matching(place, query)
        start = int(query.get("continue", "0"))
        limit = int(query.get("limit", "0")) or len(trees)
        meta: Tree = {"resourceVersion": str(self._revision)}
        if start + limit < len(trees):
            meta |= {"continue": str(start + limit), "remainingItemCount": len(trees) - start - limit}
        items = [
            {key: value for key, value in tree.items() if key not in ("kind", "apiVersion")} for tree in trees
        ]
        return _ok(
            {
                "kind": f"{place.kind.name}List",
                "apiVersion": place.kind.api_version,
                "metadata": meta,
                "items": items[start : start + limit],
            }
        )

    def _watch(self, place: _Place, query: dict[str, str]) -> Response:
        after = int(query.get("resourceVersion") or "0")
        if after and after < self._compacted:
            raise errors.expired(f"too old resource version: {after} ({self._compacted})")
        stream = FakeStream(place, query, self._streams.pop)
        if not after:
            for tree in self._matching(place, query):
                stream.feed(_line("ADDED", tree))
            after = self._revision
        if query.get("sendInitialEvents"):
            meta = {"resourceVersion": str(after), "annotations": {"k8s.io/initial-events-end": "true"}}
            stream.feed(_line("BOOKMARK", {"kind": place.kind.name, "metadata": meta}))
        self._streams[stream] = None
        for event in self._events:
            if event.revision > after:
                stream.offer(event)
        if self.bookmarks:
            self.send_bookmarks()
        return Response(200, {}, None, stream)

    # -- objects --------------------------------------------------------------------------------------------------

    def _key(self, place: _Place) -> tuple[str, str, str]:
        return place.resource, place.namespace, place.name

    def _found(self, place: _Place) -> Tree:
        tree = self._objects.get(self._key(place))
        if tree is None:
            raise errors.not_found(place.kind.group, place.kind.resource, place.name)
        return tree

    def _put(self, place: _Place, tree: Tree, event: str) -> Tree:
        self._revision += 1
        tree["metadata"]["resourceVersion"] = str(self._revision)
        tree["kind"], tree["apiVersion"] = place.kind.name, place.kind.api_version
        tree = codec.parse_tree(codec.encode(tree))
        self._objects[self._key(place)] = tree
        self._tell(_Event(self._revision, event, place.resource, place.namespace, tree))
        return tree

    def _remove(self, place: _Place) -> None:
        self._revision += 1
        tree = codec.parse_tree(codec.encode(self._objects.pop(self._key(place))))
        tree["metadata"]["resourceVersion"] = str(self._revision)
        self._tell(_Event(self._revision, "DELETED", place.resource, place.namespace, tree))

    def _tell(self, event: _Event) -> None:
        self._events.append(event)
        for stream in list(self._streams):
            stream.offer(event)

    def _matching(self, place: _Place, query: dict[str, str]) -> list[Tree]:
        return [
            tree
            for (resource, namespace, _), tree in sorted(self._objects.items())
            if resource == place.resource and place.namespace in ("", namespace) and _selected(tree, query)
        ]


class FakeStream:
    """One open watch."""

    def __init__(self, place: _Place, query: dict[str, str], on_closed: Callable[..., object]) -> None:
        self._place = place
        self._query = query
        self._on_closed = on_closed
        self._queue: asyncio.Queue[bytes | ConnectionFailed | None] = asyncio.Queue()

    def offer(self, event: _Event) -> None:
        place = self._place
        if (
            event.resource == place.resource
            and place.namespace in ("", event.namespace)
            and _selected(event.tree, self._query)
        ):
            self.feed(_line(event.type, event.tree))

    def feed(self, data: bytes) -> None:
        self._queue.put_nowait(data)

    def end(self, how: ConnectionFailed | None) -> None:
        self._queue.put_nowait(how)
        self._on_closed(self, None)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await self._queue.get()
        if isinstance(part, ConnectionFailed):
            raise part
        if part is None:
            raise StopAsyncIteration
        return part

    async def aclose(self) -> None:
        self.end(None)


def _ok(tree: Tree, code: int = 200) -> Response:
    return Response(code, {"content-type": "application/json"}, codec.encode(tree))


def _line(type_: str, tree: Tree) -> bytes:
    return codec.encode({"type": type_, "object": tree}) + b"\n"


def _place(path: str) -> _Place:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    kind = SCHEME.by_resource(group, version, rest[0])
    if kind is None:
        raise errors.page_not_found()
    return _Place(kind, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")


def _selected(tree: Tree, query: dict[str, str]) -> bool:
    meta = tree["metadata"]
    labels = meta.get("labels", {})
    for part in filter(None, query.get("labelSelector", "").split(",")):
        name, _, value = part.partition("=")
        if labels.get(name) != value:
            return False
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = part.partition("=")
        found: Any = tree
        for name in path.split("."):
            found = found.get(name, "") if isinstance(found, dict) else ""
        if found != value:
            return False
    return True


def _merge(target: Tree, patch: Tree) -> None:
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


def _without_version(tree: Tree) -> Tree:
    meta = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
    return {**tree, "metadata": meta}
