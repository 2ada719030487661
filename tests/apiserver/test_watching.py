"""What a watcher with a selector is told when objects come into its sight and leave it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller, running

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize("is_live", [False, True])
def test_an_object_that_leaves_the_selection_is_deleted_as_it_was_last_seen(is_live: bool) -> None:
    async def scenario(clock: VirtualClock) -> tuple[list[dict[str, Any]], str]:
        async with running(clock=clock) as server:
            caller = Caller.of(server)
            _, made = await caller.json("POST", MAPS, {"metadata": {"name": "c", "labels": {"a": "1"}}})
            start = made["metadata"]["resourceVersion"]
            target = f"{MAPS}?watch=1&labelSelector=a%3D1&resourceVersion={start}&timeoutSeconds=5"
            watching = asyncio.create_task(caller.send("GET", target))
            await clock.sleep(1 if is_live else 0)
            patch = {"metadata": {"labels": {"a": "2"}}, "data": {"k": "v"}}
            _, changed = await caller.json("PATCH", f"{MAPS}/c", patch, content_type=MERGE)
            if not is_live:
                watching = asyncio.create_task(caller.send("GET", target))
            await caller.send("DELETE", f"{MAPS}/c")
            lines = ((await watching).body or b"").splitlines()
            return [json.loads(line) for line in lines], changed["metadata"]["resourceVersion"]

    events, revision = run_virtual(scenario)
    assert [event["type"] for event in events] == ["DELETED"]
    last = events[0]["object"]
    assert last["metadata"]["labels"] == {"a": "1"}
    assert "data" not in last
    assert last["metadata"]["resourceVersion"] == revision
