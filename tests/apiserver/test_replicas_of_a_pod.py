"""A remembered spec gets the answer that full validation would give."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

PODS = "/api/v1/namespaces/default/pods"


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def _statuses(*pods: dict[str, Any]) -> list[tuple[int, list[str]]]:
    async def scenario() -> list[tuple[int, list[str]]]:
        async with running() as server:
            caller = Caller.of(server)
            found: list[tuple[int, list[str]]] = []
            for pod in pods:
                status, body = await caller.json("POST", PODS, pod)
                causes = body.get("details", {}).get("causes", []) if status == 422 else []
                found.append((status, [cause["field"] for cause in causes]))
            return found

    return asyncio.run(scenario())


def test_a_replica_of_a_sound_pod_is_still_refused_for_its_own_name() -> None:
    assert _statuses(_pod("a"), _pod("b"), _pod("Bad_Name")) == [
        (201, []),
        (201, []),
        (422, ["metadata.name"]),
    ]


def test_a_replica_of_a_sound_pod_is_still_refused_for_its_own_labels() -> None:
    bad = _pod("b")
    bad["metadata"]["labels"] = {"not a key": "x"}
    assert _statuses(_pod("a"), bad) == [(201, []), (422, ["metadata.labels"])]


def test_a_faulty_spec_is_never_remembered() -> None:
    faulty = _pod("a", restartPolicy="Sometimes")
    assert _statuses(faulty, faulty, _pod("b")) == [
        (422, ["spec.restartPolicy"]),
        (422, ["spec.restartPolicy"]),
        (201, []),
    ]


def test_a_spec_that_differs_a_little_is_another_spec() -> None:
    assert _statuses(_pod("a", priority=None), _pod("b", activeDeadlineSeconds=-5))[1] == (
        422,
        ["spec.activeDeadlineSeconds"],
    )


@pytest.mark.parametrize("length", [200, 60])
def test_a_name_that_matters_to_the_spec_is_looked_at_every_time(length: int) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    spec = {"volumes": [{"name": "v" * 60, "ephemeral": {"volumeClaimTemplate": claim}}]}
    first, second = _statuses(_pod("a", **spec), _pod("x" * length, **spec))
    assert first == (201, [])
    # A claim is called like its pod and its volume together, and names end somewhere.
    assert second[0] == (422 if length + 61 > 253 else 201)


def test_warnings_are_given_to_every_replica_that_deserves_them() -> None:
    async def scenario() -> list[str | None]:
        async with running() as server:
            caller = Caller.of(server)
            doubled = {
                "name": "c",
                "image": "i",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            }
            answers = [
                await caller.send(
                    "POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [doubled]}}
                )
                for name in ("a", "b")
            ]
            return [answer.headers.get("warning") for answer in answers]

    one, two = asyncio.run(scenario())
    assert one is not None
    assert "hides previous definition" in one
    assert one == two
