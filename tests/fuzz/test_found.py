"""What random requests have found, each as a promise of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.apiserver.running import Caller, running

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def play(story: Callable[[Caller], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            await story(Caller.of(server))

    asyncio.run(told())


def test_a_put_that_creates_makes_what_its_url_names() -> None:
    async def story(caller: Caller) -> None:
        status, answer = await caller.json("PUT", f"{RBAC}/a", {"metadata": {"name": "b"}})
        assert (status, answer["reason"]) == (400, "BadRequest")
        assert "does not match the name on the URL" in answer["message"]
        status, answer = await caller.json("PUT", f"{RBAC}/a", {"metadata": {}})
        assert (status, answer["metadata"]["name"]) == (201, "a")

    play(story)


def test_a_name_with_nul_in_it_is_invalid() -> None:
    async def story(caller: Caller) -> None:
        status, answer = await caller.json("POST", RBAC, {"metadata": {"name": "a\0b"}})
        assert (status, answer["details"]["causes"][0]["field"]) == (422, "metadata.name")

    play(story)


def test_an_event_of_the_new_group_can_be_applied_and_applied_again() -> None:
    event: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Acting",
        "reason": "Because",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "hello",
    }

    async def story(caller: Caller) -> None:
        kind = "application/apply-patch+yaml"
        for expected in (201, 200):
            status, answer = await caller.json(
                "PATCH", f"{EVENTS}/e?fieldManager=me", event, content_type=kind
            )
            assert (status, answer["note"], answer["regarding"]["name"]) == (expected, "hello", "a")
        status, core = await caller.json("GET", "/api/v1/namespaces/default/events/e")
        assert (status, core["message"], core["involvedObject"]["name"]) == (200, "hello", "a")

    play(story)


def test_writing_a_kind_without_a_spec_back_unchanged_is_no_new_generation() -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

    async def story(caller: Caller) -> None:
        _, made = await caller.json("POST", slices, {"metadata": {"name": "s"}, "addressType": "IPv4"})
        assert await caller.json("PUT", f"{slices}/s", made) == (200, made)
        changed = {**made, "endpoints": [{"addresses": ["10.0.0.1"]}]}
        _, answer = await caller.json("PUT", f"{slices}/s", changed)
        assert answer["metadata"]["generation"] == made["metadata"]["generation"] + 1

    play(story)


def test_a_continue_token_counts_without_a_limit_too() -> None:
    async def story(caller: Caller) -> None:
        _, first = await caller.json("GET", "/api/v1/namespaces?limit=1")
        token = first["metadata"]["continue"]
        _, rest = await caller.json("GET", f"/api/v1/namespaces?continue={token}")
        _, whole = await caller.json("GET", "/api/v1/namespaces")
        assert first["items"] + rest["items"] == whole["items"]

    play(story)
