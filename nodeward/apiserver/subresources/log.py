"""pods/log: a container's log, streamed from the kubelet as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final
from urllib.parse import urlencode

from nodeward.api.errors import ApiError, bad_request, internal_error, invalid
from nodeward.api.meta import Status, StatusDetails
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.kubelet_access import unreachable
from nodeward.apiserver.request import Call, parse_number
from nodeward.apiserver.subresources.pod_target import chosen_container, find_pod, node_of
from nodeward.base.fielderror import FieldError, forbidden, not_supported, quote
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import ROOT
from nodeward.base.timestamp import TimestampError, parse_rfc3339, rfc3339
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.streamed_body import StreamedBody
from nodeward.machinery.transport import ConnectionFailed, Request, Response, ResponseStream

_SPLIT_STREAMS: Final = "PodLogsQuerySplitStreams"
_STREAMS: Final = ("All", "Stderr", "Stdout")
_ALL: Final = "All"
_POSITIVE: Final = "must be greater than 0"


async def read_log(api: Api, call: Call, kind: Kind) -> Answer:
    """Ask the pod's kubelet for the log and stream its answer."""
    query = _kubelet_query(call, splits=api.env.gates.enabled(_SPLIT_STREAMS))
    pod = await find_pod(api, call)
    container = chosen_container(pod, call.query.get("container"))
    if not pod.spec.node_name:
        return Answer(204, content_type="text/plain")
    node = node_of(api, pod)
    access = api.kubelets
    host, port = access.address(node)
    if access.tls is None:
        raise unreachable("this API server has no certificate to show to kubelets")
    url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    path = f"/containerLogs/{pod.metadata.namespace}/{pod.metadata.name}/{container}"
    clock = api.env.clock
    # A followed log may be silent for as long as its container is.
    transport = HttpTransport(url, clock=clock, ssl_context=access.tls, max_connections=1)
    try:
        response = await transport.send(Request("GET", path, query), stream=True)
    except ConnectionFailed as error:
        await transport.aclose()
        raise unreachable(f"Get {quote(f'{url}{path}' + (f'?{query}' if query else ''))}: {error}") from None
    if response.stream is None:
        await transport.aclose()
        raise _refusal(call.name, response)
    stream = StreamedBody(_parts(response.stream), clock, transport.aclose)
    return Answer(200, content_type="text/plain", stream=stream, is_patient=True)


async def _parts(stream: ResponseStream) -> AsyncGenerator[bytes, None]:
    async for part in stream:
        yield part


def _refusal(name: str, response: Response) -> ApiError:
    """Convert a kubelet's refusal to an error of the API."""
    text = (response.body or b"").decode("utf-8", "replace")
    match response.status:
        case 400:
            return bad_request(text)
        case 500:
            return internal_error(text)
        case 404:
            reason, message = "NotFound", "the server could not find the requested resource"
        case 401:
            reason, message = "Unauthorized", "the server has asked for the client to provide credentials"
        case 403:
            reason, message = "Forbidden", text or "unknown"
        case code:
            reason, message = "", f"the server responded with the status code {code} but did not return more"
            reason = "InternalError" if code >= 500 else reason
    details = StatusDetails(name=name, kind="pods/log")
    shown = message if response.status == 403 else f"{message} ( pods/log {name})"
    return ApiError(
        Status(
            kind="Status",
            api_version="v1",
            status="Failure",
            message=shown,
            reason=reason,
            details=details,
            code=response.status,
        )
    )


def _kubelet_query(call: Call, *, splits: bool) -> str:
    """Validate the options and return the query for the kubelet."""
    query, faults = call.query, []
    numbers = {
        name: parse_number(query.get(name)) if query.get(name) else None
        for name in ("sinceSeconds", "tailLines", "limitBytes")
    }
    tail, limit, seconds = numbers["tailLines"], numbers["limitBytes"], numbers["sinceSeconds"]
    since = query.get("sinceTime")
    if tail is not None and tail < 0:
        faults.append(invalid_field(ROOT.child("tailLines"), tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        faults.append(invalid_field(ROOT.child("limitBytes"), limit, _POSITIVE))
    if seconds is not None and since:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults.append(forbidden(ROOT, text))
    elif seconds is not None and seconds < 1:
        faults.append(invalid_field(ROOT.child("sinceSeconds"), seconds, _POSITIVE))
    stream = query.get("stream") or (_ALL if splits else "")
    faults.extend(_stream_faults(stream, tail, splits))
    if faults:
        raise invalid("", "PodLogOptions", call.name, faults)
    pairs = [(name, "true") for name in ("follow", "previous", "timestamps") if query.flag(name)]
    if since:
        try:
            pairs.append(("sinceTime", rfc3339(parse_rfc3339(since))))
        except TimestampError as error:
            raise bad_request(str(error)) from None
    pairs.extend((name, str(number)) for name, number in numbers.items() if number is not None)
    if splits:
        pairs.append(("stream", stream))
    return urlencode(sorted(pairs))


def _stream_faults(stream: str, tail: int | None, splits: bool) -> list[FieldError]:
    if not splits:
        return [forbidden(ROOT.child("stream"), "may not be specified")] if stream else []
    faults = []
    if stream not in _STREAMS:
        faults.append(not_supported(ROOT.child("stream"), stream, _STREAMS))
    if stream != _ALL and tail is not None:
        faults.append(forbidden(ROOT, "`tailLines` and specific `stream` are mutually exclusive for now"))
    return faults
