"""Bodies in protobuf: taken wherever JSON is taken, answered in JSON, refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from nodeward.api.protobuf.reading import MEDIA_TYPE
from tests.api.protobuf.go_messages import body, envelope
from tests.apiserver.running import Caller, running

_ACCEPT = f"{MEDIA_TYPE},application/json"


def _asked(scenario: Callable[[Caller], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running() as server:
            await scenario(Caller.of(server))

    asyncio.run(run())


async def _send(caller: Caller, method: str, target: str, sent: bytes) -> tuple[int, Any]:
    return await caller.json(method, target, sent, content_type=MEDIA_TYPE, accept=_ACCEPT)


def _pod(name: str, **spec: Any) -> bytes:
    containers = [{"name": "c", "image": "i"}]
    return body("v1", "Pod", {"metadata": {"name": name}, "spec": {"containers": containers, **spec}})


_PODS = "/api/v1/namespaces/default/pods"


def test_an_object_is_created_and_answered_in_json() -> None:
    async def scenario(caller: Caller) -> None:
        code, made = await _send(caller, "POST", f"{_PODS}?fieldValidation=Strict", _pod("a", priority=0))
        assert (code, made["kind"], made["metadata"]["name"]) == (201, "Pod", "a")
        [container] = made["spec"]["containers"]
        assert (container["name"], container["image"], container["imagePullPolicy"]) == ("c", "i", "Always")

    _asked(scenario)


def test_an_object_is_replaced() -> None:
    async def scenario(caller: Caller) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        first = body("v1", "ConfigMap", {"metadata": {"name": "a"}, "data": {"k": "1"}})
        assert (await _send(caller, "POST", path, first))[0] == 201
        second = body("v1", "ConfigMap", {"metadata": {"name": "a"}, "binaryData": {"b": "/w=="}})
        code, now = await _send(caller, "PUT", f"{path}/a", second)
        assert (code, now.get("data"), now["binaryData"]) == (200, None, {"b": "/w=="})

    _asked(scenario)


def test_delete_options_may_come_in_protobuf() -> None:
    async def scenario(caller: Caller) -> None:
        await _send(caller, "POST", _PODS, _pod("a"))
        wrong = body("v1", "DeleteOptions", {"preconditions": {"uid": "another"}})
        assert (await _send(caller, "DELETE", f"{_PODS}/a", wrong))[0] == 409
        right = body("v1", "DeleteOptions", {"gracePeriodSeconds": 0})
        assert (await _send(caller, "DELETE", f"{_PODS}/a", right))[0] == 200
        assert (await caller.json("GET", f"{_PODS}/a"))[0] == 404

    _asked(scenario)


def test_subresources_take_it_too() -> None:
    async def scenario(caller: Caller) -> None:
        await _send(caller, "POST", _PODS, _pod("a"))
        dry = body("policy/v1", "Eviction", {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}})
        assert (await _send(caller, "POST", f"{_PODS}/a/eviction", dry))[0] == 201
        assert (await caller.json("GET", f"{_PODS}/a"))[0] == 200
        real = body("policy/v1", "Eviction", {"metadata": {"name": "a"}})
        assert (await _send(caller, "POST", f"{_PODS}/a/eviction", real))[0] == 201
        assert (await caller.json("GET", f"{_PODS}/a"))[0] == 404

    _asked(scenario)


def test_what_cannot_be_read_is_a_bad_request_that_says_why() -> None:
    async def scenario(caller: Caller) -> None:
        code, status = await _send(caller, "POST", _PODS, _pod("a")[:-1])
        assert (code, status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith("the object provided is unrecognized: field 2 should have ")

        code, status = await _send(caller, "POST", _PODS, b"{}")
        assert code == 400
        assert "expected prefix [107 56 115 0]" in status["message"]

        code, status = await _send(caller, "POST", _PODS, envelope("v1", "Nope", b""))
        assert code == 400
        assert 'no kind "Nope" is registered for version "v1"' in status["message"]

    _asked(scenario)


def test_another_kind_than_the_path_says_is_refused() -> None:
    async def scenario(caller: Caller) -> None:
        code, status = await _send(
            caller, "POST", _PODS, body("v1", "ConfigMap", {"metadata": {"name": "a"}})
        )
        assert code == 400
        assert status["message"].startswith('ConfigMap in version "v1" cannot be handled as a Pod')

    _asked(scenario)
