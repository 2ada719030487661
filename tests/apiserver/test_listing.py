"""LIST in pages: one state from the first page to the last, and a way on when that state is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.apiserver.server import ApiServer
from nodeward.store.interface import Page, StoreUnavailable
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller, running, settings

MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"


def play(story: Callable[[ApiServer, Caller], Awaitable[None]], store: MemoryStore | None = None) -> None:
    async def told() -> None:
        async with running(store=store) as server:
            await story(server, Caller.of(server))

    asyncio.run(told())


async def make(caller: Caller, *names: str) -> str:
    """Config maps; gives the revision of the last."""
    answer: dict[str, Any] = {}
    for name in names:
        status, answer = await caller.json("POST", MAPS, {"metadata": {"name": name, "labels": {"a": name}}})
        assert status == 201
    return str(answer["metadata"]["resourceVersion"])


def names(found: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


def test_pages_show_the_state_of_the_first_one() -> None:
    async def story(server: ApiServer, caller: Caller) -> None:
        await make(caller, "b", "d", "f", "h")
        _, first = await caller.json("GET", f"{MAPS}?limit=2")
        await make(caller, "e", "g")
        await caller.send("DELETE", f"{MAPS}/f")
        token = first["metadata"]["continue"]
        _, second = await caller.json("GET", f"{MAPS}?limit=1&continue={token}")
        token = second["metadata"]["continue"]
        _, third = await caller.json("GET", f"{MAPS}?limit=1&continue={token}")
        assert [names(page) for page in (first, second, third)] == [["b", "d"], ["f"], ["h"]]
        assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
        assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [2, 1, None]
        assert "continue" not in third["metadata"]

    play(story)


def test_who_continues_a_forgotten_state_is_given_a_token_for_the_rest_as_it_is_now() -> None:
    async def story(server: ApiServer, caller: Caller) -> None:
        await make(caller, "b", "d", "f")
        _, first = await caller.json("GET", f"{MAPS}?limit=1")
        await make(caller, "e")
        await server.hub.store.compact(server.hub.revision)
        status, answer = await caller.json("GET", f"{MAPS}?limit=1&continue={first['metadata']['continue']}")
        assert (status, answer["reason"]) == (410, "Expired")
        assert "use the continue token in this response" in answer["message"]
        status, rest = await caller.json("GET", f"{MAPS}?continue={answer['metadata']['continue']}")
        assert (status, names(rest)) == (200, ["d", "e", "f"])
        status, answer = await caller.json("GET", f"{MAPS}?resourceVersion=2&resourceVersionMatch=Exact")
        assert (status, answer["metadata"]) == (410, {})
        assert answer["message"] == "The resourceVersion for the provided list is too old."

    play(story)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["b", "d"]),
        ("limit=0", ["b", "d"]),
        ("resourceVersionMatch=NotOlderThan", ["b", "d"]),
        ("limit=9&resourceVersionMatch=NotOlderThan", ["b", "d"]),
        ("limit=9", ["b"]),
        ("resourceVersionMatch=Exact", ["b"]),
    ],
)
def test_a_version_is_the_least_unless_a_page_or_exactly_that_was_asked_for(
    query: str, expected: list[str]
) -> None:
    async def story(server: ApiServer, caller: Caller) -> None:
        early = await make(caller, "b")
        await make(caller, "d")
        _, found = await caller.json("GET", f"{MAPS}?resourceVersion={early}&{query}")
        assert names(found) == expected

    play(story)


def test_an_older_server_shows_no_page_what_it_has_never_heard_of() -> None:
    async def story() -> list[dict[str, Any]]:
        store = MemoryStore()
        async with running(settings(gates="NodeReadinessGates=true"), store=store) as server:
            for name in ("a", "b"):
                gate = {
                    "conditionType": "example.com/c",
                    "timeoutSeconds": 9,
                    "failureAction": "BypassWithWarning",
                }
                node = {"metadata": {"name": name}, "spec": {"readinessGates": [gate]}}
                _, made = await Caller.of(server).json("POST", NODES, node)
                assert "readinessGates" in made["spec"]
        async with running(settings(version="1.36"), store=store) as server:
            caller = Caller.of(server)
            _, first = await caller.json("GET", f"{NODES}?limit=1")
            _, second = await caller.json("GET", f"{NODES}?limit=1&continue={first['metadata']['continue']}")
            return [item["spec"] for item in (*first["items"], *second["items"])]

    assert [sorted(spec) for spec in asyncio.run(story())] == [["taints"], ["taints"]]


class _Failing(MemoryStore):
    fails = False

    async def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        if self.fails:
            raise StoreUnavailable("no leader")
        return await super().range(prefix, start=start, limit=limit, revision=revision)


def test_a_page_the_store_cannot_give_is_worth_another_try() -> None:
    store = _Failing()

    async def story(server: ApiServer, caller: Caller) -> None:
        await make(caller, "b", "d")
        _, first = await caller.json("GET", f"{MAPS}?limit=1")
        store.fails = True
        target = f"{MAPS}?limit=1&continue={first['metadata']['continue']}"
        status, answer = await caller.json("GET", target)
        assert (status, answer["reason"]) == (503, "ServiceUnavailable")
        store.fails = False
        assert (await caller.send("GET", target)).status == 200

    play(story, store)
