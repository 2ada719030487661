"""A patch that makes no sense of an object is invalid, and is told what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


async def _patched(body: Any, content_type: str, query: str) -> tuple[int, dict[str, Any], str]:
    async with running() as server:
        caller = Caller.of(server)
        await caller.send("POST", MAPS, {"metadata": {"name": "c"}})
        response = await caller.send("PATCH", f"{MAPS}/c{query}", body, content_type=content_type)
        _, answer = await caller.json("PATCH", f"{MAPS}/c{query}", body, content_type=content_type)
        return response.status, answer, response.headers.get("warning", "")


def patched(body: Any, content_type: str, query: str = "") -> tuple[int, dict[str, Any], str]:
    return asyncio.run(_patched(body, content_type, query))


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ({"data": {"a": 1}}, MERGE),
        ({"data": {"a": 1}}, STRATEGIC),
        ([{"op": "add", "path": "/data", "value": {"a": 1}}], JSON_PATCH),
        ({"data": []}, MERGE),
        ({"kind": "Pod"}, MERGE),
    ],
)
def test_a_patch_that_gives_a_field_the_wrong_type_is_invalid(body: Any, content_type: str) -> None:
    status, answer, _ = patched(body, content_type)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in answer["details"]["causes"]] == ["patch"]
    shown = "map[data:map[a:1]]" if content_type == STRATEGIC else "resourceVersion"
    assert answer["message"].startswith(' "" is invalid: patch: Invalid value: "')
    assert shown in answer["message"]
    assert " cannot be handled as a ConfigMap: " in answer["message"]


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"datum":{"a":"1"}}', 'unknown field "datum"'),
        (b'{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
    ],
)
def test_strange_fields_of_a_patch_are_said_or_refused(body: bytes, said: str, content_type: str) -> None:
    status, answer, warning = patched(body, content_type)
    assert (status, said.replace('"', '\\"') in warning) == (200, True)
    status, answer, warning = patched(body, content_type, "?fieldValidation=Strict")
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["details"]["causes"][0]["message"].endswith(f": strict decoding error: {said}")
    status, answer, warning = patched(body, content_type, "?fieldValidation=Ignore")
    assert (status, warning) == (200, "")
