"""Events are selected by the names their group has for their fields."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.running import Caller, running

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Because",
    "type": "Normal",
    "reportingComponent": "example.com/c",
}


@pytest.mark.parametrize(
    ("collection", "selector", "expected"),
    [
        (CORE, "involvedObject.name=p,reason=Because", (200, 1)),
        (CORE, "involvedObject.name=q", (200, 0)),
        (CORE, "source=example.com/c,reportingComponent=example.com/c", (200, 1)),
        (CORE, "regarding.name=p", (400, 0)),
        (NEW, "regarding.name=p,regarding.kind=Pod,type=Normal", (200, 1)),
        (NEW, "regarding.name=q", (200, 0)),
        (NEW, "reportingController=example.com/c", (200, 1)),
        (NEW, "involvedObject.name=p", (400, 0)),
        (NEW, "source=example.com/c", (400, 0)),
    ],
)
def test_each_group_has_its_own_names(collection: str, selector: str, expected: tuple[int, int]) -> None:
    async def story() -> tuple[int, int]:
        async with running() as server:
            caller = Caller.of(server)
            assert (await caller.send("POST", CORE, EVENT)).status == 201
            escaped = selector.replace("=", "%3D").replace(",", "%2C")
            status, answer = await caller.json("GET", f"{collection}?fieldSelector={escaped}")
            return status, len(answer.get("items", []))

    assert asyncio.run(story()) == expected
