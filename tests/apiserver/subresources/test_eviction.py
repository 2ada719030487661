"""Evictions that insist on what they have seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


def play(story: Callable[[Caller, dict[str, Any]], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            caller = Caller.of(server)
            status, pod = await caller.json("POST", PODS, POD)
            assert status == 201
            await story(caller, pod["metadata"])

    asyncio.run(told())


def eviction(**options: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "deleteOptions": options}


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_an_eviction_goes_to_the_pod_that_was_seen(field: str) -> None:
    async def story(caller: Caller, meta: dict[str, Any]) -> None:
        wrong = eviction(preconditions={field: "other"})
        status, answer = await caller.json("POST", f"{PODS}/p/eviction", wrong)
        assert (status, answer["reason"]) == (409, "Conflict")
        _, pod = await caller.json("GET", f"{PODS}/p")
        assert pod["metadata"]["resourceVersion"] == meta["resourceVersion"]
        right = eviction(preconditions={field: meta[field]})
        assert (await caller.send("POST", f"{PODS}/p/eviction", right)).status == 201
        _, pod = await caller.json("GET", f"{PODS}/p")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        assert [each["type"] for each in pod["status"]["conditions"]] == ["DisruptionTarget"]

    play(story)


def test_an_eviction_with_options_that_mean_nothing_is_invalid() -> None:
    async def story(caller: Caller, meta: dict[str, Any]) -> None:
        strange = eviction(propagationPolicy="Sideways")
        status, answer = await caller.json("POST", f"{PODS}/p/eviction", strange)
        assert (status, answer["reason"]) == (422, "Invalid")

    play(story)


def test_an_eviction_cannot_be_told_to_ignore_what_cannot_be_read() -> None:
    async def story(caller: Caller, meta: dict[str, Any]) -> None:
        unsafe = eviction(ignoreStoreReadErrorWithClusterBreakingPotential=True)
        status, answer = await caller.json("POST", f"{PODS}/p/eviction", unsafe)
        assert (status, answer["reason"]) == (422, "Invalid")
        assert answer["message"] == (
            'Eviction.policy "p" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: '
            "Invalid value: true: can not be set for pod eviction, try after removing the option"
        )

    play(story)
