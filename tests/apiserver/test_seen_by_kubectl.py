"""Small things that kubectl users see, each found with the real kubectl."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
            },
            **spec,
        },
    }


def test_a_scale_is_printed_with_its_own_columns() -> None:
    async def scenario() -> None:
        async with running() as server:
            caller = Caller.of(server)
            await caller.json("POST", DEPLOYMENTS, deployment())
            status, table = await caller.json("GET", f"{DEPLOYMENTS}/web/scale", accept=TABLE)
            assert (status, table["kind"]) == (200, "Table")
            columns = [column["name"] for column in table["columnDefinitions"]]
            assert columns == ["Name", "Desired", "Available", "Age"]
            assert table["rows"][0]["cells"][:3] == ["web", 2, 0]
            status, scale = await caller.json("GET", f"{DEPLOYMENTS}/web/scale")
            assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
            scale["spec"]["replicas"] = 3
            status, table = await caller.json("PUT", f"{DEPLOYMENTS}/web/scale", scale, accept=TABLE)
            assert (status, table["rows"][0]["cells"][:3]) == (200, ["web", 3, 0])

    asyncio.run(scenario())


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
@pytest.mark.parametrize("is_there", [False, True])
def test_applying_an_unknown_field_is_refused_in_applys_own_words(validation: str, is_there: bool) -> None:
    async def scenario() -> None:
        async with running() as server:
            caller = Caller.of(server)
            if is_there:
                await caller.json("POST", DEPLOYMENTS, deployment())
            status, answer = await caller.json(
                "PATCH",
                f"{DEPLOYMENTS}/web?fieldManager=test&fieldValidation={validation}",
                deployment(selectr={}),
                content_type="application/apply-patch+yaml",
            )
            assert (status, answer["message"]) == (
                400,
                "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
                ".spec.selectr: field not declared in schema",
            )

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("resource", "warning"),
    [
        ("endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
        ("configmaps", None),
    ],
)
def test_answers_about_deprecated_resources_warn(resource: str, warning: str | None) -> None:
    async def scenario() -> None:
        async with running() as server:
            response = await Caller.of(server).send("GET", f"/api/v1/{resource}")
            assert response.status == 200
            assert response.headers.get("warning") == (None if warning is None else f'299 - "{warning}"')

    asyncio.run(scenario())
