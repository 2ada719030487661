"""KEP-6122, the API server: `assigned.cpuset` in downward API volumes for three ages of the server, over HTTP."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.schema import schema_of
from nodeward.base.cpuset import CPUSet
from nodeward.features import CATALOGUE, NEWEST, OLDEST, Gates
from nodeward.store.memory import MemoryStore
from tests.keps.ledger import statement
from tests.keps.served import PODS, Api, Tree, a_pod, played, served

GATE = "DownwardAPIAssignedResources"
ON = f"{GATE}=true"
OLD, OFF, NEW = ("1.36", ""), ("1.37", ""), ("1.37", ON)

_SIX = (
    '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", '
    '"requests.memory"'
)
AT = "spec.volumes[0].downwardAPI"
RESOURCE = f"{AT}.resourceFieldRef.resource"
REQUIRED, INVALID, UNSUPPORTED = "FieldValueRequired", "FieldValueInvalid", "FieldValueNotSupported"


def item(resource: str = "assigned.cpuset", **more: Any) -> Tree:
    return {"path": "cpus", "resourceFieldRef": {"containerName": "c", "resource": resource, **more}}


def pod(*items: Tree, name: str = "p", **source: Any) -> Tree:
    return a_pod(name, volumes=[{"name": "info", "downwardAPI": {"items": list(items), **source}}])


def projected(*items: Tree) -> Tree:
    sources = [{"downwardAPI": {"items": list(items)}}]
    return a_pod("projected", volumes=[{"name": "info", "projected": {"sources": sources}}])


async def is_kept(api: Api, made: Tree) -> bool:
    name = made["metadata"]["name"]
    found = (await api.get(f"{PODS}/{name}"))["spec"]["volumes"][0]
    source = found.get("downwardAPI") or found["projected"]["sources"][0]["downwardAPI"]
    return bool(source["items"][0]["resourceFieldRef"]["resource"] == "assigned.cpuset")


@statement("6122-41")
@statement("6122-51")
@statement("6122-68", part="api")
@played
async def test_gate_on_the_field_is_checked_taken_and_kept() -> None:
    async with served(*NEW) as api:
        for wanted in (pod(item()), projected(item())):
            assert await is_kept(api, (await api.create(PODS, wanted)).ok())
        wrong = await api.create(PODS, pod(item("assigned.cpus"), name="wrong"))
        message = f'Unsupported value: "assigned.cpus": supported values: "assigned.cpuset", {_SIX}'
        assert wrong.causes() == [(RESOURCE, UNSUPPORTED, message)]


@statement("6122-50")
@played
async def test_gate_off_a_server_that_knows_the_field_admits_and_keeps_it_without_a_word() -> None:
    async with served(*OFF) as api:
        for wanted in (pod(item()), projected(item())):
            answer = await api.create(PODS, wanted)
            assert await is_kept(api, answer.ok())
            assert answer.warnings == []


@statement("6122-52")
@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36"])
@played
async def test_a_server_that_has_never_heard_of_it_refuses_it_as_an_unknown_resource(version: str) -> None:
    async with served(version) as api:
        message = f'Unsupported value: "assigned.cpuset": supported values: {_SIX}'
        answer = await api.create(PODS, pod(item()))
        assert answer.causes() == [(RESOURCE, UNSUPPORTED, message)]
        inner = "spec.volumes[0].projected.sources[0].downwardAPI.resourceFieldRef.resource"
        answer = await api.create(PODS, projected(item()))
        assert answer.causes() == [(inner, UNSUPPORTED, message)]


@statement("6122-U4")
@pytest.mark.parametrize(
    ("age", "status"), [(OLD, 422), (OFF, 201), (NEW, 201)], ids=["not implemented", "gate off", "gate on"]
)
@played
async def test_the_three_ages_of_the_server(age: tuple[str, str], status: int) -> None:
    async with served(*age) as api:
        assert (await api.create(PODS, pod(item()))).status == status


@statement("6122-42", part="api")
@pytest.mark.parametrize("age", [OLD, OFF, NEW])
@pytest.mark.parametrize(
    "resource",
    ["limits.cpu", "requests.cpu", "limits.memory", "requests.ephemeral-storage", "limits.hugepages-2Mi"],
)
@played
async def test_resources_known_before_keep_working(age: tuple[str, str], resource: str) -> None:
    async with served(*age) as api:
        (await api.create(PODS, pod(item(resource)))).ok()


@statement("6122-55", part="api")
@statement("6122-L1", part="api")
@played
async def test_switching_the_gate_off_and_on_leaves_pods_updatable() -> None:
    store = MemoryStore()
    for number, age in enumerate((OFF, NEW, OFF, NEW)):
        async with served(*age, store=store) as api:
            (await api.create(PODS, pod(item(), name=f"p{number}"))).ok()
            for earlier in range(number + 1):
                change = {"metadata": {"labels": {"seen": str(number)}}}
                assert await is_kept(api, (await api.merge(f"{PODS}/p{earlier}", change)).ok())


@statement("6122-14", part="api")
@played
async def test_nobody_can_choose_cpus_through_the_api() -> None:
    names = [*schema_of(Container).fields, *schema_of(ResourceRequirements).fields]
    assert [name for name in names if "cpu" in name.lower()] == []
    async with served(*NEW) as api:
        variable = {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "assigned.cpuset"}}}
        wanted = a_pod()
        wanted["spec"]["containers"][0]["env"] = [variable]
        answer = await api.create(PODS, wanted)
        field = "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource"
        message = f'Unsupported value: "assigned.cpuset": supported values: {_SIX}'
        assert answer.causes() == [(field, UNSUPPORTED, message)]


_BYTES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_FIELDS = '"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"'


@statement("6122-U4")
@pytest.mark.parametrize(
    ("wanted", "cause"),
    [
        (
            {"resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
            (f"{AT}.path", REQUIRED, "Required value"),
        ),
        (
            {"path": "x"},
            (AT, REQUIRED, "Required value: one of fieldRef and resourceFieldRef is required"),
        ),
        (
            {**item("limits.cpu"), "fieldRef": {"fieldPath": "metadata.name"}},
            (
                AT,
                INVALID,
                'Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
            ),
        ),
        (
            {**item("limits.cpu"), "mode": 512},
            (
                f"{AT}.mode",
                INVALID,
                "Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            ),
        ),
        (
            {"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}},
            (f"{AT}.resourceFieldRef.containerName", REQUIRED, "Required value"),
        ),
        (
            {"path": "x", "resourceFieldRef": {"containerName": "c"}},
            (RESOURCE, REQUIRED, "Required value"),
        ),
        (
            item("limits.cpu", divisor="2"),
            (
                f"{AT}.resourceFieldRef.divisor",
                INVALID,
                'Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
            ),
        ),
        (
            item("limits.memory", divisor="3"),
            (
                f"{AT}.resourceFieldRef.divisor",
                INVALID,
                f'Invalid value: "limits.memory": only divisor\'s values {_BYTES} are supported with the memory '
                "resource",
            ),
        ),
        (
            item("requests.ephemeral-storage", divisor="3"),
            (
                f"{AT}.resourceFieldRef.divisor",
                INVALID,
                f'Invalid value: "requests.ephemeral-storage": only divisor\'s values {_BYTES} are supported with '
                "the local ephemeral storage resource",
            ),
        ),
        (
            item("assigned.cpuset", divisor="2"),
            (
                f"{AT}.resourceFieldRef.divisor",
                INVALID,
                'Invalid value: "assigned.cpuset": only divisor\'s value 1 is supported with the assigned.cpuset '
                "resource",
            ),
        ),
        (
            {"path": "x", "fieldRef": {"fieldPath": "spec.nodeName"}},
            (
                f"{AT}.fieldRef.fieldPath",
                UNSUPPORTED,
                f'Unsupported value: "spec.nodeName": supported values: {_FIELDS}',
            ),
        ),
        (
            {"path": "x", "fieldRef": {"fieldPath": "no.such"}},
            (
                f"{AT}.fieldRef.fieldPath",
                INVALID,
                'Invalid value: "no.such": error converting fieldPath: field label not supported: no.such',
            ),
        ),
    ],
)
@played
async def test_mistakes_are_told_with_field_kind_and_value(wanted: Tree, cause: tuple[str, str, str]) -> None:
    async with served(*NEW) as api:
        assert (await api.create(PODS, pod(wanted))).causes() == [cause]


@statement("6122-45")
@pytest.mark.parametrize(
    ("cpus", "text"),
    [([], ""), ([0], "0"), ([0, 1, 2, 3, 7, 12, 13, 14, 15], "0-3,7,12-15"), ([2, 1, 11], "1-2,11")],
)
def test_cpus_are_written_as_lists(cpus: list[int], text: str) -> None:
    assert str(CPUSet(cpus)) == text
    assert re.fullmatch("[0-9,-]*", text)


@statement("6122-67", "6122-71")
def test_of_the_three_gates_two_exist_and_the_new_one_is_alpha_and_off() -> None:
    for minor in range(OLDEST, NEWEST + 1):
        gates = Gates.of(f"1.{minor}")
        stages = {name: stage for name, stage, _ in gates}
        assert not gates.enabled(GATE)
        assert stages.get(GATE) == (None if minor < 37 else "ALPHA")
        for older in ("CPUManagerPolicyAlphaOptions", "InPlacePodVerticalScalingExclusiveCPUs"):
            assert stages[older] == "ALPHA"
            assert not gates.enabled(older)
    assert CATALOGUE[GATE].needs == ()
