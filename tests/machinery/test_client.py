"""What the client does with answers: refusals, retries, watches cut anywhere, answers that cannot be read."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api import codec, errors
from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.cluster import ConfigMap, Event
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.fields import KubeStruct
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock, VirtualClock
from nodeward.machinery.reading import BadAnswer
from nodeward.machinery.refusals import RetryPolicy
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual


@dataclass
class Parts:
    """A stream of given parts; an exception among them is raised."""

    parts: Sequence[bytes | Exception]
    is_closed: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            if isinstance(part, Exception):
                raise part
            yield part

    async def aclose(self) -> None:
        self.is_closed = True


@dataclass
class Answers:
    """A transport that gives these answers, one after the other."""

    answers: list[Response]
    requests: list[Request] = field(default_factory=list)

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        self.requests.append(request)
        return self.answers.pop(0)

    async def aclose(self) -> None:
        pass


def ok(tree: Any) -> Response:
    return Response(200, {}, codec.encode(tree))


def call(answers: list[Response], program: Callable[[Client], Any]) -> tuple[Any, list[Request]]:
    """The result of `program` given these answers, and what was asked."""
    transport = Answers(answers)

    async def main() -> Any:
        return await program(Client(transport, clock=RealClock(), component="kubelet"))

    return asyncio.run(main()), transport.requests


def refused(response: Response, method: str = "GET") -> ApiError:
    with pytest.raises(ApiError) as caught:
        call([response], lambda client: client.raw(method, "/x"))
    return caught.value


def get_pod(client: Client) -> Any:
    return client.get(Pod, "a", "ns")


def test_requests_say_which_component_asks_and_what_it_understands() -> None:
    _, requests = call([ok({}), ok({})], get_pod)
    assert requests[0].headers == {"accept": "application/json", "user-agent": "kubelet/0.1.0"}
    assert (requests[0].method, requests[0].path, requests[0].query) == (
        "GET",
        "/api/v1/namespaces/ns/pods/a",
        "",
    )
    _, requests = call([ok({})], lambda client: get_pod(client.as_component("scheduler")))
    assert requests[0].headers["user-agent"] == "scheduler/0.1.0"


def test_what_is_sent_says_its_kind_without_changing_the_callers_object() -> None:
    deployment = Deployment(metadata=ObjectMeta(name="d", namespace="ns"))
    _, requests = call([ok({})], lambda client: client.create(deployment))
    sent = codec.parse_tree(requests[0].body)
    assert (sent["kind"], sent["apiVersion"]) == ("Deployment", "apps/v1")
    assert requests[0].headers["content-type"] == "application/json"
    assert deployment.kind == ""


def test_selectors_and_paging_are_encoded() -> None:
    async def program(client: Client) -> None:
        await client.list(
            Pod,
            label_selector="app in (a,b),tier!=x",
            field_selector="spec.nodeName=n1",
            limit=5,
            continue_="a+b/c==",
            resource_version="7",
        )

    _, requests = call([ok({"items": None})], program)
    assert requests[0].path == "/api/v1/pods"
    assert requests[0].query == (
        "labelSelector=app%20in%20(a,b),tier!=x&fieldSelector=spec.nodeName=n1&limit=5&resourceVersion=7"
        "&continue=a%2Bb%2Fc=="
    )


def test_nobody_can_be_addressed_without_name_or_namespace() -> None:
    with pytest.raises(InvariantBroken, match="a name is needed"):
        call([], lambda client: client.get(Pod, "", "ns"))
    with pytest.raises(InvariantBroken, match="needs a namespace"):
        call([], lambda client: client.delete(Pod, "a"))
    with pytest.raises(InvariantBroken, match="say which with kind="):
        call([], lambda client: client.get(ObjectMeta, "a", "ns"))
    with pytest.raises(InvariantBroken, match="say which with kind="):
        call([], lambda client: client.create({"kind": "Widget", "apiVersion": "x/v1"}))


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_a_status_is_raised_as_it_came() -> None:
    error = errors.forbidden("", "pods", "a", "no")
    raised = refused(Response(403, {}, codec.encode(error.status)))
    assert raised.status == error.status


@pytest.mark.parametrize(
    ("code", "method", "body", "reason", "message"),
    [
        (404, "GET", b"<html>", "NotFound", "the server could not find the requested resource (get /x)"),
        (403, "GET", b"go away", "Forbidden", "go away (get /x)"),
        (409, "POST", b"", "AlreadyExists", "the server reported a conflict (post /x)"),
        (409, "PUT", b"", "Conflict", "the server reported a conflict (put /x)"),
        (
            503,
            "GET",
            b"",
            "ServiceUnavailable",
            "the server is currently unable to handle the request (get /x)",
        ),
        (
            502,
            "GET",
            b"Bad\nGateway",
            "InternalError",
            'an error on the server ("Bad\\nGateway") has prevented the request from succeeding (get /x)',
        ),
        (
            302,
            "GET",
            b"",
            "",
            "the server responded with the status code 302 but did not return more information (get /x)",
        ),
        (500, "GET", b'{"kind":"Other"}', "InternalError", None),
        (500, "GET", b"{broken", "InternalError", None),
    ],
)
def test_an_answer_without_status_is_explained_by_its_code(
    code: int, method: str, body: bytes, reason: str, message: str | None
) -> None:
    raised = refused(Response(code, {}, body), method)
    assert (raised.code, raised.reason) == (code, reason)
    if message is not None:
        assert str(raised) == message


# -- retries ----------------------------------------------------------------------------------------------------------


def busy(code: int = 429, after: str = "3") -> Response:
    return Response(code, {"retry-after": after} if after else {}, b"")


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_server_is_asked_again_when_it_said_so(code: int) -> None:
    async def program(clock: VirtualClock) -> None:
        transport = Answers([busy(code), busy(code), ok({"metadata": {"name": "a"}})])
        pod = await Client(transport, clock=clock).get(Pod, "a", "ns")
        assert pod.metadata.name == "a"
        assert clock.elapsed_ns == 6 * SECOND_NS

    run_virtual(program)


@pytest.mark.parametrize(
    ("answer", "policy"),
    [
        (busy(after=""), RetryPolicy()),
        (busy(after="soon"), RetryPolicy()),
        (busy(after="3600"), RetryPolicy()),
        (busy(404), RetryPolicy()),
        (busy(), None),
    ],
)
def test_other_refusals_stand_at_once(answer: Response, policy: RetryPolicy | None) -> None:
    async def program(clock: VirtualClock) -> None:
        transport = Answers([answer])
        with pytest.raises(ApiError):
            await Client(transport, clock=clock, retry=policy).get(Pod, "a", "ns")
        assert clock.elapsed_ns == 0

    run_virtual(program)


def test_patience_with_a_busy_server_ends() -> None:
    async def program(clock: VirtualClock) -> None:
        transport = Answers([busy(after="1")] * 11)
        with pytest.raises(ApiError) as caught:
            await Client(transport, clock=clock).get(Pod, "a", "ns")
        assert caught.value.status.details is not None
        assert caught.value.status.details.retry_after_seconds == 1
        assert clock.elapsed_ns == 10 * SECOND_NS

    run_virtual(program)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_nulls_that_servers_in_go_write_are_absent_fields() -> None:
    tree = {
        "metadata": {"name": "a", "labels": None, "creationTimestamp": None},
        "spec": {"containers": None},
    }
    pod, _ = call([ok(tree)], get_pod)
    assert (pod.metadata.name, pod.metadata.labels, pod.spec.containers) == ("a", {}, [])
    listed, _ = call([ok({"metadata": {}, "items": [tree, tree]})], lambda client: client.list(Pod))
    assert [(item.kind, item.metadata.labels) for item in listed.items] == [("Pod", {}), ("Pod", {})]


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"metadata":7}', b"<html>"])
def test_an_answer_that_is_no_object_is_the_worlds_error(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        call([Response(200, {}, body)], get_pod)
    with pytest.raises(BadAnswer):
        call([Response(200, {}, body)], lambda client: client.list(Pod))


def test_broken_text_is_repaired_rather_than_refused() -> None:
    pod, _ = call([Response(200, {}, b'{"metadata":{"name":"\xff"}}')], get_pod)
    assert pod.metadata.name == "\ufffd"


def test_discovery_lists_every_resource_with_its_group() -> None:
    groups = {"groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}]}
    core = {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"], "shortNames": ["po"]},
            {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1", "verbs": []},
        ]
    }
    apps = {
        "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["list"]}]
    }
    found, requests = call([ok(groups), ok(core), ok(apps)], lambda client: client.discover())
    assert [(item.group, item.version, item.name) for item in found] == [
        ("", "v1", "pods"),
        ("policy", "v1", "pods/eviction"),
        ("apps", "v1", "deployments"),
    ]
    assert [request.path for request in requests] == ["/apis", "/api/v1", "/apis/apps/v1"]


# -- watching ---------------------------------------------------------------------------------------------------------


def line(type_: str, name: str) -> bytes:
    return codec.encode({"type": type_, "object": {"metadata": {"name": name}}}) + b"\n"


EVENTS = b"".join(line("ADDED", f"é{number}") for number in range(5))


async def events_of(parts: Sequence[bytes | Exception]) -> list[str]:
    transport = Answers([Response(200, {}, None, Parts(parts))])
    client = Client(transport, clock=RealClock())
    async with client.watch(ConfigMap) as watch:
        return [event.object.metadata.name async for event in watch]


@given(st.lists(st.integers(0, len(EVENTS)), max_size=12))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(EVENTS)]
    parts = [EVENTS[start:end] for start, end in itertools.pairwise(edges)]
    assert asyncio.run(events_of(parts)) == ["é0", "é1", "é2", "é3", "é4"]


def test_half_an_event_at_the_end_is_an_error() -> None:
    with pytest.raises(BadAnswer, match="in the middle of an event"):
        asyncio.run(events_of([EVENTS[:-7]]))


def test_something_that_is_no_event_is_an_error() -> None:
    with pytest.raises(BadAnswer, match="no event"):
        asyncio.run(events_of([b"<html>\n"]))


def test_events_before_an_error_are_delivered_and_the_error_is_raised() -> None:
    status = codec.to_tree(errors.expired("too old").status)
    error = codec.encode({"type": "ERROR", "object": status}) + b"\n"

    async def program() -> None:
        stream = Parts([line("ADDED", "a") + line("ADDED", "b") + error + line("ADDED", "c")])
        client = Client(Answers([Response(200, {}, None, stream)]), clock=RealClock())
        async with client.watch(ConfigMap) as watch:
            assert [(await anext(watch)).object.metadata.name for _ in range(2)] == ["a", "b"]
            with pytest.raises(ApiError) as caught:
                await anext(watch)
            assert (caught.value.code, caught.value.reason) == (410, "Expired")
        assert stream.is_closed

    asyncio.run(program())


def test_a_broken_connection_is_raised_after_what_came() -> None:
    with pytest.raises(ConnectionFailed, match="cut"):
        asyncio.run(events_of([line("ADDED", "a"), ConnectionFailed("cut")]))


def test_a_refused_watch_raises_before_the_first_event() -> None:
    async def program() -> None:
        error = errors.expired("too old resource version: 1 (7)")
        client = Client(Answers([Response(410, {}, codec.encode(error.status))]), clock=RealClock())
        with pytest.raises(ApiError, match="too old resource version"):
            await client.watch(ConfigMap, resource_version="1").open()

    asyncio.run(program())


class _Small(KubeStruct):
    metadata: ObjectMeta


def test_a_type_of_its_own_needs_its_kind_and_a_kind_can_be_read_as_anything() -> None:
    answer = ok({"metadata": {"name": "e"}, "reason": "R"})
    small, _ = call([answer], lambda client: client.get(_Small, "e", "ns", kind=client.kind_of(Event)))
    assert small == _Small(metadata=ObjectMeta(name="e"))
