"""What a new generation is, and what is no change at all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.running import Caller, running

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MERGE = "application/merge-patch+json"
LABELS = {"a": "1", "b": "2", "c": "3"}


def workload(labels: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "w", "annotations": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": labels,
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
                    ],
                },
            },
        },
    }


@pytest.mark.parametrize("resource", ["deployments", "daemonsets", "replicasets"])
def test_the_order_of_keys_is_no_change(resource: str) -> None:
    async def story() -> tuple[dict[str, Any], dict[str, Any]]:
        async with running() as server:
            caller = Caller.of(server)
            _, made = await caller.json("POST", f"{APPS}/{resource}", workload(LABELS))
            turned = workload(dict(reversed(LABELS.items())))
            container = turned["spec"]["template"]["spec"]["containers"][0]
            container["resources"]["limits"] = {"memory": "1024Mi", "cpu": "1000m"}
            status, again = await caller.json("PUT", f"{APPS}/{resource}/w", turned)
            assert status == 200
            return made, again

    made, again = asyncio.run(story())
    assert again["metadata"]["generation"] == made["metadata"]["generation"] == 1
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(("resource", "expected"), [("deployments", 2), ("replicasets", 1)])
def test_annotations_are_part_of_what_a_deployment_hands_down(resource: str, expected: int) -> None:
    async def story() -> int:
        async with running() as server:
            caller = Caller.of(server)
            await caller.send("POST", f"{APPS}/{resource}", workload(LABELS))
            for patch in ({"labels": {"x": "1"}}, {"annotations": {"x": "1"}}):
                _, found = await caller.json(
                    "PATCH", f"{APPS}/{resource}/w", {"metadata": patch}, content_type=MERGE
                )
            return int(found["metadata"]["generation"])

    assert asyncio.run(story()) == expected


@pytest.mark.parametrize(("number", "expected"), [("0", 1), ("1", 0)])
def test_jobs_are_selected_by_how_many_of_their_pods_succeeded(number: str, expected: int) -> None:
    async def story() -> int:
        async with running() as server:
            caller = Caller.of(server)
            spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}}
            assert (await caller.send("POST", JOBS, job)).status == 201
            _, found = await caller.json("GET", f"{JOBS}?fieldSelector=status.successful%3D{number}")
            return len(found["items"])

    assert asyncio.run(story()) == expected


def test_a_number_in_the_place_of_a_boolean_is_a_change() -> None:
    async def story() -> tuple[int, Any]:
        async with running() as server:
            caller = Caller.of(server)
            target = "/apis/resource.k8s.io/v1/deviceclasses"

            def device_class(value: object) -> dict[str, Any]:
                opaque = {"driver": "d.example.com", "parameters": {"a": value}}
                return {"metadata": {"name": "d"}, "spec": {"config": [{"opaque": opaque}]}}

            assert (await caller.send("POST", target, device_class(True))).status == 201
            _, found = await caller.json("PUT", f"{target}/d", device_class(1))
            value = found["spec"]["config"][0]["opaque"]["parameters"]["a"]
            return int(found["metadata"]["generation"]), value

    generation, value = asyncio.run(story())
    assert (generation, type(value)) == (2, int)


def test_a_daemon_set_counts_the_changes_of_its_template() -> None:
    async def story() -> list[tuple[int, str]]:
        seen = []
        async with running() as server:
            caller = Caller.of(server)
            target = f"{APPS}/daemonsets"
            _, found = await caller.json("POST", target, workload(LABELS))
            image = {"template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}
            for patch in (
                {},
                {"metadata": {"annotations": None}},
                {"spec": {"minReadySeconds": 5}},
                {"spec": image},
            ):
                if patch:
                    _, found = await caller.json("PATCH", f"{target}/w", patch, content_type=MERGE)
                meta = found["metadata"]
                seen.append(
                    (meta["generation"], meta["annotations"]["deprecated.daemonset.template.generation"])
                )
        return seen

    assert asyncio.run(story()) == [(1, "1"), (1, "1"), (2, "1"), (3, "2")]
