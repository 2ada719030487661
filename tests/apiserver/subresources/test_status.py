"""What a write to /status changes beside the status, and who owns it then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

MERGE = "application/merge-patch+json"
APPS = "/apis/apps/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


def play(story: Callable[[Caller], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            await story(Caller.of(server))

    asyncio.run(told())


def owned(found: dict[str, Any], manager: str) -> dict[str, Any]:
    """The metadata fields a manager owns through /status."""
    for entry in found["metadata"]["managedFields"]:
        if (entry["manager"], entry.get("subresource")) == (manager, "status"):
            fields: dict[str, Any] = entry["fieldsV1"].get("f:metadata", {})
            return fields
    raise AssertionError(f"{manager} owns nothing")


@pytest.mark.parametrize(
    ("collection", "labels"),
    [(f"{APPS}/deployments", {"x": "1"}), (f"{APPS}/replicasets", {"x": "2"})],
)
def test_annotations_written_with_a_status_are_owned_with_it(collection: str, labels: dict[str, str]) -> None:
    async def story(caller: Caller) -> None:
        body = {"metadata": {"name": "w", "labels": {"x": "1"}}, "spec": WORKLOAD}
        assert (await caller.send("POST", collection, body)).status == 201
        patch = {"metadata": {"labels": {"x": "2"}, "annotations": {"q": "1"}}, "status": {"replicas": 1}}
        status, found = await caller.json(
            "PATCH", f"{collection}/w/status?fieldManager=ctl", patch, content_type=MERGE
        )
        assert status == 200
        assert found["metadata"]["annotations"] == {"q": "1"}
        assert found["metadata"]["labels"] == labels
        assert "f:annotations" in owned(found, "ctl")
        assert ("f:labels" in owned(found, "ctl")) == (labels == {"x": "2"})

    play(story)


def test_the_status_of_a_claim_is_all_its_status_changes() -> None:
    async def story(caller: Caller) -> None:
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
        assert (await caller.send("POST", CLAIMS, claim)).status == 201
        result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "g0"}
        device = {key: result[key] for key in ("driver", "pool", "device")}
        patch: dict[str, Any] = {
            "metadata": {"labels": {"x": "1"}, "finalizers": ["example.com/f"]},
            "status": {"allocation": {"devices": {"results": [result]}}, "devices": [device]},
        }
        status, found = await caller.json("PATCH", f"{CLAIMS}/c/status", patch, content_type=MERGE)
        assert status == 200, found
        assert "labels" not in found["metadata"]
        assert "finalizers" not in found["metadata"]
        assert len(found["status"]["devices"]) == 1
        assert owned(found, "test") == {}
        patch = {"status": {"allocation": None}}
        status, found = await caller.json("PATCH", f"{CLAIMS}/c/status", patch, content_type=MERGE)
        assert status == 200, found
        assert found.get("status", {}) == {}

    play(story)
