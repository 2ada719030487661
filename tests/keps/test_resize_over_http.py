"""The resize subresource, over HTTP: what it changes, what it leaves alone, and in which words it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.keps.served import NODES, PODS, Api, Tree, a_node, played, served

FORBIDDEN, INVALID = "FieldValueForbidden", "FieldValueInvalid"
R = "spec.containers[0].resources"


def container(cpu: str = "1", memory: str = "1Gi", name: str = "c", **more: Any) -> Tree:
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "4", "memory": "4Gi"}}
    return {"name": name, "image": "registry.example/pause:3.10", "resources": resources, **more}


async def bound(api: Api, *containers: Tree, metadata: Tree | None = None, **spec: Any) -> Tree:
    """A pod on a node with four CPUs."""
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    (await api.create(NODES, a_node(status={"capacity": allocatable, "allocatable": allocatable}))).ok()
    pod = {
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": list(containers) or [container()], "nodeName": "n", **spec},
    }
    return (await api.create(PODS, pod)).ok()


async def resize(api: Api, pod: Tree, **spec: Any) -> Any:
    sent = {**pod, "spec": {**pod["spec"], **spec}}
    return await api.send("PUT", f"{PODS}/p/resize", sent)


@played
async def test_a_resize_changes_resources_and_counts_a_generation_and_nothing_else() -> None:
    async with served() as api:
        pod = await bound(api)
        wanted = container("2", image="registry.example/other:1")
        sent = {**pod, "metadata": {**pod["metadata"], "labels": {"a": "b"}}}
        after = (await resize(api, sent, containers=[wanted], nodeName="elsewhere")).ok()
        (one,) = after["spec"]["containers"]
        assert one["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
        assert one["image"] == "registry.example/pause:3.10"
        assert after["spec"]["nodeName"] == "n"
        assert "labels" not in after["metadata"]
        assert after["metadata"]["generation"] == pod["metadata"]["generation"] + 1


@pytest.mark.parametrize(
    ("containers", "causes"),
    [
        (
            [container(), container(name="more")],
            [("spec.containers", FORBIDDEN, "Forbidden: containers may not be added or removed on resize")],
        ),
        (
            [container(name="other")],
            [
                (
                    "spec.containers[0].name",
                    FORBIDDEN,
                    "Forbidden: containers may not be renamed or reordered on resize",
                )
            ],
        ),
        (
            [{**container(), "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}}],
            [
                (f"{R}.requests", FORBIDDEN, "Forbidden: resource requests cannot be removed"),
                (f"{R}.limits", FORBIDDEN, "Forbidden: resource limits cannot be removed"),
            ],
        ),
        (
            [container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])],
            [("spec", FORBIDDEN, "Forbidden: only cpu and memory resources are mutable")],
        ),
        (
            [container("4", "4Gi")],
            [
                (
                    "spec",
                    INVALID,
                    'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                )
            ],
        ),
        (
            [container("9")],
            [(f"{R}.requests", INVALID, 'Invalid value: "9": must be less than or equal to cpu limit of 4')],
        ),
    ],
    ids=["added", "renamed", "removed amounts", "resize policy", "quality of service", "above the limit"],
)
@played
async def test_what_cannot_be_resized_is_refused_with_field_and_reason(
    containers: list[Tree], causes: list[tuple[str, str, str]]
) -> None:
    async with served() as api:
        pod = await bound(api)
        assert (await resize(api, pod, containers=containers)).causes() == causes
        assert (await api.get(f"{PODS}/p"))["metadata"]["generation"] == pod["metadata"]["generation"]


@pytest.mark.parametrize(
    ("metadata", "spec", "message"),
    [
        (
            {"annotations": {"kubernetes.io/config.mirror": "x"}},
            {"automountServiceAccountToken": False},
            "Forbidden: static pods cannot be resized",
        ),
        ({}, {"os": {"name": "windows"}}, "Forbidden: windows pods cannot be resized"),
    ],
    ids=["static", "windows"],
)
@played
async def test_static_and_windows_pods_are_not_resized(metadata: Tree, spec: Tree, message: str) -> None:
    async with served() as api:
        pod = await bound(api, metadata=metadata, **spec)
        assert (await resize(api, pod, containers=[container("2")])).causes() == [("", FORBIDDEN, message)]


@played
async def test_a_resize_beyond_the_node_is_forbidden_with_a_cause_programs_can_read() -> None:
    async with served() as api:
        big = container("1", "1Gi")
        big["resources"]["limits"] = {"cpu": "64", "memory": "64Gi"}
        pod = await bound(api, big)
        wanted = {**big, "resources": {**big["resources"], "requests": {"cpu": "5", "memory": "9Gi"}}}
        answer = await resize(api, pod, containers=[wanted])
        assert answer.status == 403
        assert answer.body["message"] == (
            'pods "p" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 5000, '
            "allocatable: 4000; memory, requested: 9663676416, allocatable: 8589934592"
        )
        assert answer.body["details"]["causes"] == [{"reason": "NodeCapacity"}]


@played
async def test_the_plain_update_still_refuses_to_change_resources() -> None:
    async with served() as api:
        pod = await bound(api)
        sent = {**pod, "spec": {**pod["spec"], "containers": [container("2")]}}
        answer = await api.send("PUT", f"{PODS}/p", sent)
        ((field, reason, message),) = answer.causes()
        assert (field, reason) == ("spec", FORBIDDEN)
        assert message.startswith("Forbidden: pod updates may not change fields other than ")


@played
async def test_a_pod_as_a_whole_is_resized_under_its_gate_and_where_the_node_declares_it() -> None:
    feature = "InPlacePodLevelResourcesVerticalScaling"
    whole = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}
    larger = {**whole, "requests": {"cpu": "3", "memory": "2Gi"}}
    async with served() as api:
        pod = await bound(api, resources=whole)
        answer = await resize(api, pod, resources=larger)
        assert (answer.status, answer.body["message"]) == (
            403,
            f'pods "p" is forbidden: pod update requires features {feature} which are not available on node "n"',
        )
        (await api.merge(f"{NODES}/n/status", {"status": {"declaredFeatures": [feature]}})).ok()
        after = (await resize(api, pod, resources=larger)).ok()
        assert after["spec"]["resources"]["requests"]["cpu"] == "3"
    async with served("1.36", f"{feature}=false") as api:
        pod = await bound(api, resources=whole)
        answer = await resize(api, pod, resources=larger)
        message = (
            "Forbidden: resize of pods with pod-level resources is forbidden when "
            "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
        )
        assert answer.causes() == [("", FORBIDDEN, message)]
