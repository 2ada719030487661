"""The client: everything a component asks of the Kubernetes API goes through here.

In go struct types (or `dict`, or an `ObjectReader`) and names, out come objects; the transport decides whether a
server is reached over TLS or inside this process. A refusal is raised as `ApiError`, a broken connection or an
unreadable answer as the world's error.

What must stay true: names cannot change the path they stand in; what is sent always says its kind and version;
nothing is sent twice unless the server asked for it (`Retry-After`) or it only reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from nodeward import __version__
from nodeward.api import codec
from nodeward.api.core_v1.pod import Binding, Pod
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.fields import KubeTop
from nodeward.api.meta import DeleteOptions, ObjectMeta, Preconditions
from nodeward.api.policy_v1 import Eviction
from nodeward.api.scheme import SCHEME, Kind, Scheme
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.clock import Clock
from nodeward.machinery.discovery import ApiResource, discover
from nodeward.machinery.reading import BadAnswer, ObjectReader, reader_of
from nodeward.machinery.refusals import RetryPolicy, refusal
from nodeward.machinery.request_parts import delete_options, encode_object, identity_of, path_of, query_of
from nodeward.machinery.transport import Request, Response, ResponseStream, Transport
from nodeward.machinery.watching import Watch

T = TypeVar("T")

_JSON: Final = "application/json"
_DEFAULT_RETRY: Final = RetryPolicy()


class PatchType(StrEnum):
    """How a patch is meant; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(slots=True)
class ListResult(Generic[T]):
    """One page: `continue_` is empty on the last one."""

    items: list[T]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


class Client:
    """Access to one API server.

    `component` is what managedFields and audit logs call the caller; `headers` go with every request.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        component: str = "nodeward",
        scheme: Scheme = SCHEME,
        retry: RetryPolicy | None = _DEFAULT_RETRY,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.transport: Final = transport
        self.clock: Final = clock
        self.component: Final = component
        self.scheme: Final = scheme
        self._retry = retry
        self._extra = dict(headers or {})
        self._headers = {"accept": _JSON, "user-agent": f"{component}/{__version__}", **self._extra}
        self._send_headers = {**self._headers, "content-type": _JSON}

    def as_component(self, component: str) -> Client:
        """Return the same connection under another component's name."""
        return Client(
            self.transport,
            clock=self.clock,
            component=component,
            scheme=self.scheme,
            retry=self._retry,
            headers=self._extra,
        )

    async def aclose(self) -> None:
        """Close the transport, for whoever opened it."""
        await self.transport.aclose()

    # -- reading --------------------------------------------------------------------------------------------------

    async def get(
        self,
        wanted: type[T] | ObjectReader[T],
        name: str,
        namespace: str = "",
        *,
        kind: Kind | None = None,
        subresource: str = "",
        resource_version: str = "",
    ) -> T:
        kind = kind or self.kind_of(wanted)
        path = path_of(kind, namespace, name, subresource)
        query = query_of(resourceVersion=resource_version)
        response = await self._send(Request("GET", path, query, self._headers))
        return reader_of(wanted).one(response.body or b"", None if subresource else kind)

    async def list(
        self,
        wanted: type[T] | ObjectReader[T],
        namespace: str = "",
        *,
        kind: Kind | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ListResult[T]:
        """List one page (everything without `limit`)."""
        kind = kind or self.kind_of(wanted)
        query = query_of(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        response = await self._send(Request("GET", path_of(kind, namespace), query, self._headers))
        items, meta = reader_of(wanted).page(response.body or b"", kind)
        return ListResult(items, meta.resource_version, meta.continue_, meta.remaining_item_count)

    async def list_pages(
        self,
        wanted: type[T] | ObjectReader[T],
        namespace: str = "",
        *,
        kind: Kind | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> AsyncIterator[ListResult[T]]:
        """Return every page of one consistent list; raises `ApiError` 410 if the server forgets it meanwhile."""
        continue_ = ""
        while True:
            page = await self.list(
                wanted,
                namespace,
                kind=kind,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_=continue_,
            )
            yield page
            continue_ = page.continue_
            if not continue_:
                return

    def watch(
        self,
        wanted: type[T] | ObjectReader[T],
        namespace: str = "",
        *,
        kind: Kind | None = None,
        name: str = "",
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        allow_bookmarks: bool = True,
        timeout_seconds: int = 0,
        send_initial_events: bool = False,
    ) -> Watch[T]:
        """Events after `resource_version`; nothing is sent before the first event is asked for."""
        kind = kind or self.kind_of(wanted)
        if name:
            field_selector = ",".join(part for part in (f"metadata.name={name}", field_selector) if part)
        query = query_of(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if allow_bookmarks else "",
            timeoutSeconds=str(timeout_seconds) if timeout_seconds else "",
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
        )
        request = Request("GET", path_of(kind, namespace), query, self._headers)

        async def connect() -> ResponseStream:
            response = await self._send(request, stream=True)
            if response.stream is None:
                raise BadAnswer(f"the server answered a watch of {kind.qualified_resource} with a whole body")
            return response.stream

        return Watch(connect, reader_of(wanted), kind)

    # -- writing --------------------------------------------------------------------------------------------------

    async def create(
        self,
        obj: T,
        *,
        namespace: str = "",
        kind: Kind | None = None,
        dry_run: bool = False,
        field_manager: str = "",
        field_validation: str = "",
    ) -> T:
        """Store a new object; `namespace` need not be given if the object says it."""
        kind = kind or self._kind_of_object(obj)
        own_namespace, _ = identity_of(obj)
        query = query_of(
            dryRun="All" if dry_run else "", fieldManager=field_manager, fieldValidation=field_validation
        )
        path = path_of(kind, namespace or own_namespace)
        response = await self._send(
            Request("POST", path, query, self._send_headers, encode_object(obj, kind))
        )
        return reader_of(type(obj)).one(response.body or b"", kind)

    async def create_below(
        self,
        wanted: type[T] | ObjectReader[T],
        parent: type[KubeTop] | Kind,
        name: str,
        namespace: str,
        subresource: str,
        body: Any,
    ) -> T:
        """Create (POST) a subresource: a token request, a binding, an eviction."""
        kind = parent if isinstance(parent, Kind) else self.kind_of(parent)
        path = path_of(kind, namespace, name, subresource)
        response = await self._send(Request("POST", path, "", self._send_headers, codec.encode(body)))
        return reader_of(wanted).one(response.body or b"")

    async def update(
        self,
        obj: T,
        *,
        subresource: str = "",
        kind: Kind | None = None,
        dry_run: bool = False,
        field_manager: str = "",
    ) -> T:
        """Replace the object; refused with a conflict if it has changed since it was read."""
        kind = kind or self._kind_of_object(obj)
        namespace, name = identity_of(obj)
        query = query_of(dryRun="All" if dry_run else "", fieldManager=field_manager)
        path = path_of(kind, namespace, name, subresource)
        response = await self._send(Request("PUT", path, query, self._send_headers, encode_object(obj, kind)))
        return reader_of(type(obj)).one(response.body or b"", kind)

    async def patch(
        self,
        wanted: type[T] | ObjectReader[T],
        name: str,
        body: Any,
        *,
        namespace: str = "",
        patch_type: PatchType = PatchType.STRATEGIC,
        kind: Kind | None = None,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Change some fields. `body` is bytes, or anything that can be written as JSON."""
        kind = kind or self.kind_of(wanted)
        query = query_of(
            dryRun="All" if dry_run else "", fieldManager=field_manager, force="true" if force else ""
        )
        headers = {**self._headers, "content-type": patch_type.value}
        data = body if isinstance(body, bytes) else codec.encode(body)
        path = path_of(kind, namespace, name, subresource)
        response = await self._send(Request("PATCH", path, query, headers, data))
        return reader_of(wanted).one(response.body or b"", kind)

    async def apply(
        self,
        obj: T,
        *,
        field_manager: str = "",
        force: bool = False,
        subresource: str = "",
        kind: Kind | None = None,
        dry_run: bool = False,
    ) -> T:
        """Apply these fields (server-side apply) as `field_manager` (default: the component).

        A `dict` says exactly which fields; a struct also applies those it always writes.
        """
        kind = kind or self._kind_of_object(obj)
        namespace, name = identity_of(obj)
        return await self.patch(
            type(obj),
            name,
            encode_object(obj, kind),
            namespace=namespace,
            patch_type=PatchType.APPLY,
            kind=kind,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager or self.component,
            force=force,
        )

    async def delete(
        self,
        kind: type[Any] | Kind,
        name: str,
        namespace: str = "",
        *,
        grace_period: int | None = None,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete, or begin to: an object with finalizers or a grace period goes later."""
        kind = kind if isinstance(kind, Kind) else self.kind_of(kind)
        body = delete_options(grace_period, propagation, uid, resource_version, dry_run)
        await self._send(Request("DELETE", path_of(kind, namespace, name), "", self._send_headers, body))

    async def delete_collection(
        self,
        kind: type[Any] | Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        grace_period: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> None:
        kind = kind if isinstance(kind, Kind) else self.kind_of(kind)
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        body = delete_options(grace_period, propagation, "", "", dry_run)
        await self._send(Request("DELETE", path_of(kind, namespace), query, self._send_headers, body))

    async def bind(self, pod: str, namespace: str, node: str, *, uid: str = "") -> None:
        """Give a pod its node; with `uid`, only if it is still that pod."""
        body = Binding(
            kind="Binding",
            api_version="v1",
            metadata=ObjectMeta(name=pod, namespace=namespace, uid=uid),
            target=ObjectReference(kind="Node", name=node),
        )
        await self.create_below(bytes, Pod, pod, namespace, "binding", body)

    async def evict(
        self,
        pod: str,
        namespace: str,
        *,
        grace_period: int | None = None,
        uid: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete a pod if its disruption budget allows; refused with 429 otherwise."""
        options = None
        if grace_period is not None or uid or dry_run:
            options = DeleteOptions(
                grace_period_seconds=grace_period,
                preconditions=Preconditions(uid=uid) if uid else None,
                dry_run=["All"] if dry_run else [],
            )
        body = Eviction(
            kind="Eviction",
            api_version="policy/v1",
            metadata=ObjectMeta(name=pod, namespace=namespace),
            delete_options=options,
        )
        await self.create_below(bytes, Pod, pod, namespace, "eviction", body)

    # -- anything else --------------------------------------------------------------------------------------------

    async def raw(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request as given; an answer that is not 2xx is raised."""
        all_headers = {**(self._send_headers if body else self._headers), **(headers or {})}
        return await self._send(Request(method, path, query, all_headers, body))

    async def discover(self) -> Sequence[ApiResource]:
        """Return every resource the server serves, subresources (`pods/status`) included."""
        return await discover(self._read)

    def kind_of(self, wanted: object) -> Kind:
        """Return the kind a type stands for; a type that is not registered needs `kind=`."""
        try:
            return self.scheme.by_type(wanted)  # type: ignore[arg-type]
        except KeyError:
            raise InvariantBroken(f"{wanted!r} is not the type of a kind: say which with kind=") from None

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _send(self, request: Request, *, stream: bool = False) -> Response:
        retries = 0
        while True:
            response = await self.transport.send(request, stream=stream)
            if 200 <= response.status < 300:
                return response
            wait = self._retry.wait_seconds(response, retries) if self._retry is not None else None
            if wait is None:
                raise refusal(request, response)
            retries += 1
            await self.clock.sleep(wait)

    async def _read(self, path: str, type_: type[T]) -> T:
        response = await self._send(Request("GET", path, "", self._headers))
        return reader_of(type_).one(response.body or b"")

    def _kind_of_object(self, obj: object) -> Kind:
        if isinstance(obj, dict):
            api_version, name = obj.get("apiVersion", ""), obj.get("kind", "")
            kind = self.scheme.by_name(api_version, name)
            if kind is None:
                raise InvariantBroken(f"{api_version} {name} is not a known kind: say which with kind=")
            return kind
        return self.kind_of(type(obj))
