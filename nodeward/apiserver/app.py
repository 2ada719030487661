"""The request handler: every request passes here, from a socket (`machinery/serving`) or in process (`loopback.py`).

In order: read the path (`request.py`), authenticate and authorize (`security.py`), limit the requests in flight, call
the verb (`verbs/`, `subresources/`). An `ApiError` becomes a `Status` answer; unexpected exceptions are caught one
level up, by the connection.

What must stay true: a request that is not authorized reaches no verb, and every request is counted once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from nodeward.api.errors import (
    ApiError,
    bad_request,
    method_not_allowed,
    method_not_supported,
    too_many_requests,
)
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.documents import Documents
from nodeward.apiserver.metrics import ApiServerMetrics
from nodeward.apiserver.reading_body import unpack
from nodeward.apiserver.request import Call, resolve
from nodeward.apiserver.reviewing import review
from nodeward.apiserver.security import Security
from nodeward.apiserver.subresources import serve_subresource
from nodeward.apiserver.subresources.binding import bind
from nodeward.apiserver.verbs.create import create
from nodeward.apiserver.verbs.delete import delete, delete_collection
from nodeward.apiserver.verbs.get import get
from nodeward.apiserver.verbs.listing import list_objects
from nodeward.apiserver.verbs.patch import patch
from nodeward.apiserver.verbs.update import update
from nodeward.apiserver.verbs.watch import watch
from nodeward.base.duration import SECOND_NS
from nodeward.base.fielderror import quote
from nodeward.machinery.serving.answer import TEXT, Answer, ResponseSink, Streaming, failure
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.transport import Request

LOG: Final = logging.getLogger(__name__)

_READING: Final = frozenset({"get", "list", "watch", "head", "options"})
#: Most characters of all warnings together; if there are more, each is cut to the second number.
_WARNINGS_TOTAL: Final = 4096
_WARNING_EACH: Final = 256
_NOT_FOUND: Final = b"404 page not found\n"
#: Core resources that were deprecated before the oldest version we behave like: every answer about them says so.
_DEPRECATED: Final = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

#: Requests in flight at most; above that the answer is 429. Reads: kube-apiserver's default.
MAX_READING: Final = 400
# Unlike upstream (200): writes wait together for one group commit and cost little while they wait, and thousands of
# simulated nodes in one process write at the same moment.
MAX_MUTATING: Final = 2000


class App:
    """The handler of one API server."""

    def __init__(self, api: Api, security: Security, documents: Documents, metrics: ApiServerMetrics) -> None:
        self._api = api
        self._security = security
        self._documents = documents
        self._metrics = metrics
        self._scheme = api.env.scheme
        self._clock = api.env.clock
        self._reading = 0
        self._mutating = 0

    def screen(self, request: Request, peer: Peer) -> Answer | None:
        """Refuse a request that is not authorized before its body is read; None: the body may come."""
        try:
            self._security.admit(resolve(request, self._scheme), peer)
        except ApiError as error:
            return failure(error)
        return None

    async def handle(self, request: Request, peer: Peer) -> Answer:
        """Answer one request. Only bugs raise."""
        started = self._clock.monotonic_ns()
        try:
            call = resolve(request, self._scheme)
        except ApiError as error:
            return failure(error)
        try:
            answer = await self._serve(call, peer)
        except ApiError as error:
            answer = failure(error)
        except RecursionError:
            # Decoding recurses as deep as the body nests; nothing has been written at this point.
            answer = failure(bad_request("json: exceeded max depth"))
        if call.warnings:
            answer.headers = {**answer.headers, "Warning": warning_header(call.warnings)}
        seconds = (self._clock.monotonic_ns() - started) / SECOND_NS
        self._metrics.answered(call, answer.status, seconds, answer.size)
        level = logging.DEBUG if answer.status < 400 and call.verb in _READING else logging.INFO
        if LOG.isEnabledFor(level):
            # No query, headers or body in the log: they may hold secrets.
            path, name = request.path, call.user.name
            LOG.log(level, "%s %s by %s: %d in %.1f ms", call.verb, path, name, answer.status, seconds * 1e3)
        return answer

    async def _serve(self, call: Call, peer: Peer) -> Answer:
        self._security.admit(call, peer)
        if not call.is_resource:
            self._metrics.inflight(self._reading, self._mutating)
            return await self._documents.serve(call)
        kind = call.kind
        if kind is None or (call.subresource and kind.subresource(call.subresource) is None):
            return Answer(404, _NOT_FOUND, TEXT)
        if call.name in (".", "..") or "%" in call.name:
            why = "may not contain '%'" if "%" in call.name else f"may not be '{call.name}'"
            raise bad_request(f"Name parameter invalid: {quote(call.name)}: {why}")
        if kind.resource in _DEPRECATED:
            call.warn(_DEPRECATED[kind.resource])
        if call.verb == "watch":
            if not kind.is_stored or "watch" not in kind.verbs:
                raise method_not_supported(kind.group, kind.resource, "watch")
            answer = await watch(self._api, call, kind)
            if answer.stream is not None:
                answer.stream = _Counted(answer.stream, self._metrics, call)
            return answer
        if call.verb in _READING:
            if self._reading >= MAX_READING:
                raise too_many_requests("Too many requests, please try again later.", 1)
            self._reading += 1
            try:
                return await self._dispatch(call, kind)
            finally:
                self._reading -= 1
        if self._mutating >= MAX_MUTATING:
            raise too_many_requests("Too many requests, please try again later.", 1)
        self._mutating += 1
        try:
            if size := len(call.request.body):
                await self._api.env.worker.run(size, unpack, call)
            return await self._dispatch(call, kind)
        finally:
            self._mutating -= 1

    async def _dispatch(self, call: Call, kind: Kind) -> Answer:
        api, verb = self._api, call.verb
        if call.subresource:
            allowed = kind.subresource(call.subresource)
            if allowed is None or verb not in allowed.verbs:
                raise method_not_supported(kind.group, f"{kind.resource}/{call.subresource}", verb)
            return await serve_subresource(api, call, kind)
        if verb not in kind.verbs:
            raise method_not_supported(kind.group, kind.resource, verb)
        if _is_misplaced(call, kind):
            raise method_not_allowed()
        if not kind.is_stored:
            if kind.resource == "bindings":
                return await bind(api, call, self._scheme.kinds[_pods(self._scheme.kinds)])
            return review(api, self._security, call, kind)
        match verb:
            case "get":
                return await get(api, call, kind)
            case "list":
                return await list_objects(api, call, kind)
            case "create":
                return await create(api, call, kind)
            case "update":
                return await update(api, call, kind, api.strategy(kind).update_mode(""))
            case "patch":
                return await patch(api, call, kind, api.strategy(kind).update_mode(""))
            case "delete":
                return await delete(api, call, kind)
            case "deletecollection":
                return await delete_collection(api, call, kind)
        raise bad_request(f"{verb} is not a verb")


def _is_misplaced(call: Call, kind: Kind) -> bool:
    """Tell whether the verb needs a name that the path lacks, or the other way round."""
    match call.verb:
        case "update" | "patch":
            return not call.name
        case "create":
            return bool(call.name)
        case "deletecollection":
            return kind.is_namespaced and not call.namespace
    return False


def warning_header(texts: Sequence[str]) -> str:
    """Join all warnings; if they are too long for a header, the first ones, each cut short, as upstream does."""
    if sum(map(len, texts)) > _WARNINGS_TOTAL:
        length, kept = 0, []
        for text in texts:
            if length >= _WARNINGS_TOTAL:
                break
            kept.append(text[:_WARNING_EACH])
            length += len(kept[-1])
        texts = kept
    return ", ".join(f"299 - {quote(text)}" for text in texts)


def _pods(kinds: tuple[Kind, ...]) -> int:
    return next(position for position, kind in enumerate(kinds) if kind.resource == "pods")


class _Counted:
    """A stream that is counted in the metrics while it is open."""

    __slots__ = ("_call", "_is_open", "_metrics", "_stream")

    def __init__(self, stream: Streaming, metrics: ApiServerMetrics, call: Call) -> None:
        self._stream = stream
        self._metrics = metrics
        self._call = call
        self._is_open = False

    def start(self, sink: ResponseSink) -> None:
        self._is_open = True
        self._metrics.watching(self._call, 1)
        self._stream.start(sink)

    def gone(self) -> None:
        if self._is_open:
            self._is_open = False
            self._metrics.watching(self._call, -1)
        self._stream.gone()
