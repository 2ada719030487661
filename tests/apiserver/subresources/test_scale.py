"""The scale of a workload: every way to write it, and who owns the number then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

WEB = "/apis/apps/v1/namespaces/default/deployments/web"
APPLY = "application/apply-patch+yaml"
DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


def play(story: Callable[[Caller], Awaitable[None]]) -> None:
    async def told() -> None:
        async with running() as server:
            caller = Caller.of(server)
            collection = WEB.rpartition("/")[0]
            made = await caller.send("POST", f"{collection}?fieldManager=maker", DEPLOYMENT)
            assert made.status == 201
            await story(caller)

    asyncio.run(told())


def scale(replicas: object) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas},
    }


def owners(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted(
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in found["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    )


@pytest.mark.parametrize(
    ("method", "content_type", "body"),
    [
        ("PUT", "application/json", scale(4)),
        ("PATCH", "application/merge-patch+json", {"spec": {"replicas": 4}}),
        ("PATCH", "application/strategic-merge-patch+json", {"spec": {"replicas": 4}}),
        (
            "PATCH",
            "application/json-patch+json",
            [{"op": "replace", "path": "/spec/replicas", "value": 4}],
        ),
    ],
)
def test_every_way_to_scale_makes_the_scaler_the_owner(method: str, content_type: str, body: Any) -> None:
    async def story(caller: Caller) -> None:
        target = f"{WEB}/scale?fieldManager=scaler"
        status, answer = await caller.json(method, target, body, content_type=content_type)
        assert (status, answer["spec"]) == (200, {"replicas": 4})
        _, found = await caller.json("GET", WEB)
        assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)
        assert owners(found) == [("scaler", "Update", "scale")]

    play(story)


def test_an_applied_scale_conflicts_with_other_owners_unless_forced() -> None:
    async def story(caller: Caller) -> None:
        target = f"{WEB}/scale?fieldManager=scaler"
        status, answer = await caller.json("PATCH", target, scale(4), content_type=APPLY)
        assert (status, answer["reason"]) == (409, "Conflict")
        assert answer["details"]["causes"][0]["field"] == ".spec.replicas"
        yaml = b"apiVersion: autoscaling/v1\nkind: Scale\nmetadata:\n  name: web\nspec:\n  replicas: 4\n"
        status, answer = await caller.json("PATCH", f"{target}&force=true", yaml, content_type=APPLY)
        assert (status, answer["spec"]) == (200, {"replicas": 4})
        _, found = await caller.json("GET", WEB)
        assert owners(found) == [("scaler", "Apply", "scale")]
        assert found["spec"]["template"]["spec"]["containers"][0]["name"] == "c"
        await caller.json("PATCH", target, scale(4), content_type=APPLY)
        _, again = await caller.json("GET", WEB)
        assert again["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]

    play(story)


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("application/merge-patch+json", b"{bad", 400),
        ("application/merge-patch+json", {"spec": {"replicas": "many"}}, 422),
        ("application/merge-patch+json", {"spec": {"replicas": -1}}, 422),
        ("application/json-patch+json", {"op": "add"}, 400),
        ("application/cbor", {}, 415),
        (APPLY, b"[", 400),
        (APPLY, {"spec": {"replicas": 1}}, 400),
        (APPLY, {**DEPLOYMENT, "apiVersion": "apps/v1", "kind": "Deployment"}, 400),
        (APPLY, scale("many"), 400),
        (APPLY, scale(-1), 422),
        (APPLY, {**scale(1), "spec": 1}, 400),
    ],
)
def test_what_cannot_be_a_scale_is_refused(content_type: str, body: Any, expected: int) -> None:
    async def story(caller: Caller) -> None:
        target = f"{WEB}/scale?fieldManager=m"
        response = await caller.send("PATCH", target, body, content_type=content_type)
        assert response.status == expected

    play(story)
