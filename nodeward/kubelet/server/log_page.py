"""/containerLogs: what a container wrote, as far as it was asked for, and on while it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.base.timestamp import TimestampError, parse_rfc3339
from nodeward.kubelet.runtime.interface import LogOptions
from nodeward.kubelet.server.finding import Hosts, Refused, ServedPod, find_pod, has_container, log_attempt
from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.streamed_body import StreamedBody

TEXT: Final = "text/plain"
_STREAMS: Final = {
    "": frozenset({"stdout", "stderr"}),
    "All": frozenset({"stdout", "stderr"}),
    "Stdout": frozenset({"stdout"}),
    "Stderr": frozenset({"stderr"}),
}


async def container_logs(
    hosts: Hosts, clock: Clock, namespace: str, pod: str, container: str, query: Mapping[str, str]
) -> Answer:
    """The answer; refusals are raised."""
    options = read_options(query, clock.now_ns())
    found = find_pod(hosts, namespace, pod, f"pod {quote(pod)} does not exist")
    if not has_container(found, container):
        raise Refused(404, f"container {quote(container)} not found in pod {quote(pod)}")
    status = found.status(clock.now_ns())
    attempt = log_attempt(status, pod, container, previous=options.is_previous)
    source = output(found, container, attempt, options, clock)
    # The first piece is waited for, so that a log that is not there is an answer and not a stream that breaks off;
    # one that is there and empty, and is followed, has none yet.
    if not options.follow:
        return _answer(await _begun(source), clock, source.aclose)
    return _answer(_texts(source), clock, source.aclose)


def output(
    found: ServedPod,
    container: str,
    attempt: int,
    options: LogOptions,
    clock: Clock,
    *,
    from_end: bool = False,
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The output of one instance of a container, while it runs if it is followed."""
    running = found.running_id(container, clock.now_ns()) if options.follow else ""
    return found.managed.agent.services.logs.read(
        found.managed.life.pod,
        container,
        attempt,
        options,
        lambda: bool(running) and found.running_id(container, clock.now_ns()) == running,
        from_end=from_end,
    )


def read_options(query: Mapping[str, str], now_ns: int) -> LogOptions:
    """What was asked for; the API server has looked at it before, so there is little to say about what is wrong."""
    try:
        tail = query.get("tail", "")
        tail_lines = _number(query, "tailLines") if not tail else None if tail == "all" else int(tail)
        limit, seconds = _number(query, "limitBytes"), _number(query, "sinceSeconds")
        since = parse_rfc3339(query["sinceTime"]) if query.get("sinceTime") else None
    except (ValueError, TimestampError):
        raise Refused(400, '{"message": "Unable to decode query."}') from None
    is_wrong = (
        (tail_lines is not None and tail_lines < 0)
        or (limit is not None and limit < 1)
        or (seconds is not None and (seconds < 1 or since is not None))
    )
    if is_wrong:
        raise Refused(422, '{"message": "Invalid request."}')
    stream = query.get("stream", "")
    if stream not in _STREAMS:
        raise Refused(400, f"invalid stream type {quote(stream)}")
    return LogOptions(
        follow=_flag(query, "follow"),
        is_previous=_flag(query, "previous"),
        tail_lines=tail_lines,
        limit_bytes=limit,
        since_ns=since or (now_ns - seconds * SECOND_NS if seconds is not None else 0),
        has_timestamps=_flag(query, "timestamps"),
        streams=_STREAMS[stream],
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in ("false", "0")


def _number(query: Mapping[str, str], name: str) -> int | None:
    return int(query[name]) if query.get(name) else None


async def _begun(source: AsyncGenerator[tuple[int, bytes], None]) -> AsyncGenerator[bytes, None]:
    """The same, with its first piece taken."""
    try:
        first = await anext(source, None)
    except WorldError as error:
        raise Refused(400, str(error)) from None
    return _texts(source, first)


async def _texts(
    source: AsyncGenerator[tuple[int, bytes], None], first: tuple[int, bytes] | None = None
) -> AsyncGenerator[bytes, None]:
    if first is not None:
        yield first[1]
    async for _, text in source:
        yield text


def _answer(
    source: AsyncGenerator[bytes, None], clock: Clock, release: Callable[[], Awaitable[None]] | None = None
) -> Answer:
    return Answer(200, content_type=TEXT, stream=StreamedBody(source, clock, release), is_patient=True)
