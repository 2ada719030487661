"""KEP-5945, the API server: `skipNodeOperations` in slices and allocations, by age and gate, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.resource_v1 import (
    DeviceClassSpec,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from nodeward.api.schema import schema_of
from nodeward.features import NEWEST, OLDEST, Gates
from nodeward.store.memory import MemoryStore
from tests.keps.ledger import statement
from tests.keps.served import CLAIMS, SLICES, Api, Tree, a_claim, a_slice, an_allocation, played, served

GATE = "DRAOptionalNodePreparation"
ON = f"{GATE}=true"
ALIAS = "DRAOptionalNodeOperations=true"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"

IN_SLICE = "spec.skipNodeOperations"
IN_RESULT = "status.allocation.devices.results[0].skipNodeOperations"
REFUSED = (
    "FieldValueForbidden",
    f"Forbidden: may only be set when the {GATE} feature gate is enabled",
)


async def allocate(api: Api, name: str, **result: Any) -> Any:
    return await api.merge(f"{CLAIMS}/{name}/status", {"status": an_allocation(**result)})


def skipped(claim: Tree) -> Any:
    return claim["status"]["allocation"]["devices"]["results"][0].get("skipNodeOperations")


@statement("5945-1")
@statement("5945-10")
@pytest.mark.parametrize("fields", [{}, {"skipNodeOperations": False}, {"skipNodeOperations": True}])
@pytest.mark.parametrize("gates", [ON, ALIAS])
@played
async def test_a_slice_keeps_what_it_says_and_says_nothing_of_its_own(gates: str, fields: Tree) -> None:
    async with served(gates=gates) as api:
        made = (await api.create(SLICES, a_slice(**fields))).ok()
        found = await api.get(f"{SLICES}/s")
        for one in (made, found):
            assert {name: one["spec"][name] for name in one["spec"] if name == "skipNodeOperations"} == fields


@statement("5945-2")
@statement("5945-50")
@pytest.mark.parametrize("fields", [{}, {"skipNodeOperations": False}, {"skipNodeOperations": True}])
@played
async def test_an_allocation_keeps_it_and_shows_who_uses_it(fields: Tree) -> None:
    async with served(gates=ON) as api:
        (await api.create(CLAIMS, a_claim())).ok()
        (await allocate(api, "c", **fields)).ok()
        assert skipped(await api.get(f"{CLAIMS}/c")) == fields.get("skipNodeOperations")


@statement("5945-4")
@statement("5945-57")
@played
async def test_users_find_no_such_field_in_claims_and_classes() -> None:
    for kind in (ResourceClaimSpec, ExactDeviceRequest, DeviceSubRequest, DeviceClassSpec):
        assert "skipNodeOperations" not in schema_of(kind).fields
    async with served(gates=ON) as api:
        answer = await api.create(CLAIMS, a_claim(skipNodeOperations=True))
        assert answer.warnings == ['unknown field "spec.devices.requests[0].exactly.skipNodeOperations"']
        assert "skipNodeOperations" not in str(answer.ok())
        answer = await api.create(CLASSES, {"metadata": {"name": "k"}, "spec": {"skipNodeOperations": True}})
        assert answer.warnings == ['unknown field "spec.skipNodeOperations"']
        strict = await api.create(f"{CLAIMS}?fieldValidation=Strict", a_claim("s", skipNodeOperations=True))
        assert strict.status == 400


@statement("5945-6")
@pytest.mark.parametrize("value", [True, ["*"], ["NodePrepareResources", "NodeUnprepareResources"]])
@pytest.mark.parametrize("version", ["1.37", "1.38"])
@played
async def test_gate_off_a_new_slice_that_skips_is_refused(version: str, value: Any) -> None:
    async with served(version) as api:
        answer = await api.create(SLICES, a_slice(skipNodeOperations=value))
        assert answer.causes() == [(IN_SLICE, *REFUSED)]
        assert (await api.get(SLICES))["items"] == []


@statement("5945-7")
@pytest.mark.parametrize("value", [True, ["*"]])
@played
async def test_gate_off_an_allocation_that_skips_is_refused(value: Any) -> None:
    async with served() as api:
        (await api.create(CLAIMS, a_claim())).ok()
        answer = await allocate(api, "c", skipNodeOperations=value)
        assert answer.causes() == [(IN_RESULT, *REFUSED)]
        assert "allocation" not in (await api.get(f"{CLAIMS}/c")).get("status", {})


@statement("5945-8", "5945-9")
@statement("5945-U1")
@played
async def test_the_four_cases_with_the_gate_off() -> None:
    """New without, new with, old without, old with: only who starts to skip is refused."""
    store = MemoryStore()
    async with served(gates=ON, store=store) as api:
        (await api.create(SLICES, a_slice("with", skipNodeOperations=True))).ok()
        (await api.create(SLICES, a_slice("without"))).ok()
    async with served(store=store) as api:
        (await api.create(SLICES, a_slice("new-without"))).ok()
        (await api.create(SLICES, a_slice("new-false", skipNodeOperations=False))).ok()
        assert (await api.create(SLICES, a_slice("new-with", skipNodeOperations=True))).status == 422
        other = {"spec": {"devices": [{"name": "d"}, {"name": "e"}]}}
        (await api.merge(f"{SLICES}/without", other)).ok()
        kept = (await api.merge(f"{SLICES}/with", other)).ok()
        assert kept["spec"]["skipNodeOperations"] is True
        for name in ("without", "new-false"):
            refused = await api.merge(f"{SLICES}/{name}", {"spec": {"skipNodeOperations": True}})
            assert refused.causes() == [(IN_SLICE, *REFUSED)]
        # The proposal leaves this open: turning it off is always allowed, turning it on again is not.
        off = (await api.merge(f"{SLICES}/with", {"spec": {"skipNodeOperations": False}})).ok()
        assert off["spec"]["skipNodeOperations"] is False
        assert (await api.merge(f"{SLICES}/with", {"spec": {"skipNodeOperations": True}})).status == 422


@statement("5945-8")
@statement("5945-47", part="api")
@played
async def test_gate_off_a_claim_that_skips_can_still_be_used_and_others_keep_what_they_have() -> None:
    store = MemoryStore()
    async with served(gates=ON, store=store) as api:
        (await api.create(CLAIMS, a_claim("with"))).ok()
        (await allocate(api, "with", skipNodeOperations=True)).ok()
    async with served(store=store) as api:
        consumer = {"resource": "pods", "name": "p", "uid": "u"}
        used = (await api.merge(f"{CLAIMS}/with/status", {"status": {"reservedFor": [consumer]}})).ok()
        assert skipped(used) is True
        (await api.merge(f"{CLAIMS}/with", {"metadata": {"labels": {"a": "b"}}})).ok()
        (await api.create(CLAIMS, a_claim("meanwhile"))).ok()
        (await allocate(api, "meanwhile")).ok()
    async with served(gates=ON, store=store) as api:
        assert skipped(await api.get(f"{CLAIMS}/with")) is True
        assert skipped(await api.get(f"{CLAIMS}/meanwhile")) is None
        refused = await allocate(api, "meanwhile", skipNodeOperations=True)
        message = "Invalid value: null: field cannot be modified once set"
        assert refused.causes() == [("status.allocation", "FieldValueInvalid", message)]


@statement("5945-46", part="api")
@played
async def test_by_default_nothing_changes() -> None:
    async with served() as api:
        made = await api.create(SLICES, a_slice())
        assert ("skipNodeOperations" in made.ok()["spec"], made.warnings) == (False, [])


@statement("5945-46", part="library")
@statement("5945-G1", part="library")
def test_the_gate_is_alpha_and_off_and_can_be_set_by_both_names() -> None:
    for minor in range(OLDEST, NEWEST + 1):
        gates = Gates.of(f"1.{minor}")
        assert not gates.enabled(GATE)
        assert {name: stage for name, stage, _ in gates}.get(GATE) == (None if minor < 37 else "ALPHA")
    assert Gates.of("1.37", ON).enabled(GATE)
    assert Gates.of("1.37", ALIAS).enabled(GATE)


@statement("5945-41", part="api")
@pytest.mark.parametrize("version", ["1.34", "1.36"])
@played
async def test_an_older_server_drops_the_field_in_both_places_and_says_so(version: str) -> None:
    async with served(version) as api:
        answer = await api.create(SLICES, a_slice(skipNodeOperations=True))
        assert answer.warnings == [f'unknown field "{IN_SLICE}"']
        assert "skipNodeOperations" not in answer.ok()["spec"]
        (await api.create(CLAIMS, a_claim())).ok()
        answer = await allocate(api, "c", skipNodeOperations=True)
        assert answer.warnings == [f'unknown field "{IN_RESULT}"']
        assert skipped(answer.ok()) is None
        strict = await api.create(f"{SLICES}?fieldValidation=Strict", a_slice("t", skipNodeOperations=True))
        assert strict.body["message"] == (
            'ResourceSlice in version "v1" cannot be handled as a ResourceSlice: strict decoding error: '
            f'unknown field "{IN_SLICE}"'
        )


@statement("5945-E3.2a")
@played
async def test_rollback_of_the_control_plane_leaves_slices_editable() -> None:
    store = MemoryStore()
    async with served(gates=ON, store=store) as api:
        (await api.create(SLICES, a_slice(skipNodeOperations=True))).ok()
        (await api.create(CLAIMS, a_claim())).ok()
        (await allocate(api, "c", skipNodeOperations=True)).ok()
    more = {"spec": {"devices": [{"name": "d"}, {"name": "e"}]}}
    async with served(store=store) as api:
        after = (await api.merge(f"{SLICES}/s", more)).ok()
        assert after["spec"]["skipNodeOperations"] is True
    async with served("1.36", store=store) as api:
        fewer = {"spec": {"devices": [{"name": "d"}]}}
        (await api.merge(f"{SLICES}/s", fewer)).ok()
        (await api.merge(f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}})).ok()


@statement("5945-E3.3a", "5945-E3.3b", "5945-E3.3c", part="api")
@played
async def test_up_down_up_leaves_a_slice_nobody_writes_as_it_was() -> None:
    store = MemoryStore()
    async with served("1.36", store=store) as api:
        (await api.create(SLICES, a_slice("before"))).ok()
    async with served("1.37", ON, store=store) as api:
        first = (await api.create(SLICES, a_slice(skipNodeOperations=True))).ok()
    async with served("1.36", store=store) as api:
        assert "skipNodeOperations" not in (await api.get(f"{SLICES}/s"))["spec"]
        assert (await api.get(f"{SLICES}/s"))["metadata"]["resourceVersion"] == first["metadata"][
            "resourceVersion"
        ]
    async with served("1.37", ON, store=store) as api:
        assert await api.get(f"{SLICES}/s") == first
        assert "skipNodeOperations" not in (await api.get(f"{SLICES}/before"))["spec"]
        (await api.create(SLICES, a_slice("after", skipNodeOperations=True))).ok()


# The list form of Kubernetes 1.37, for drivers built against it.


@pytest.mark.parametrize("gates", [ON, ALIAS])
@pytest.mark.parametrize(
    "value", [["*"], ["NodeUnprepareResources"], ["NodePrepareResources", "NodeUnprepareResources"], []]
)
@played
async def test_the_list_form_is_read_in_both_places(gates: str, value: list[str]) -> None:
    async with served(gates=gates) as api:
        (await api.create(SLICES, a_slice(skipNodeOperations=value))).ok()
        # An empty list is an absent one, as in Kubernetes.
        assert (await api.get(f"{SLICES}/s"))["spec"].get("skipNodeOperations") == (value or None)
        (await api.create(CLAIMS, a_claim())).ok()
        (await allocate(api, "c", skipNodeOperations=value)).ok()
        assert skipped(await api.get(f"{CLAIMS}/c")) == (value or None)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (
            ["NodePrepareResources"],
            (
                IN_SLICE,
                "FieldValueInvalid",
                'Invalid value: ["NodePrepareResources"]: NodePrepareResources cannot be skipped unless '
                "NodeUnprepareResources is also skipped",
            ),
        ),
        (["*", "*"], (f"{IN_SLICE}[1]", "FieldValueDuplicate", 'Duplicate value: "*"')),
        (
            ["Everything"],
            (
                f"{IN_SLICE}[0]",
                "FieldValueNotSupported",
                'Unsupported value: "Everything": supported values: "*", "NodePrepareResources", '
                '"NodeUnprepareResources"',
            ),
        ),
    ],
)
@played
async def test_the_list_form_has_its_rules(value: list[str], cause: tuple[str, str, str]) -> None:
    async with served(gates=ON) as api:
        assert (await api.create(SLICES, a_slice(skipNodeOperations=value))).causes() == [cause]


@played
async def test_faults_of_a_list_come_in_the_order_of_kubernetes() -> None:
    async with served(gates=ALIAS) as api:
        causes = (await api.create(SLICES, a_slice(skipNodeOperations=["NodePrepareResources"] * 2))).causes()
        assert [(at, reason) for at, reason, _ in causes] == [
            (IN_SLICE, "FieldValueInvalid"),
            (f"{IN_SLICE}[1]", "FieldValueDuplicate"),
        ]
        causes = (await api.create(SLICES, a_slice(skipNodeOperations=["x", "x", None]))).causes()
        assert [(at, reason) for at, reason, _ in causes] == [
            (f"{IN_SLICE}[1]", "FieldValueDuplicate"),
            (f"{IN_SLICE}[0]", "FieldValueNotSupported"),
            (f"{IN_SLICE}[1]", "FieldValueNotSupported"),
            (f"{IN_SLICE}[2]", "FieldValueNotSupported"),
        ]


async def apply(api: Api, target: str, body: Tree, *, manager: str, force: bool) -> Any:
    named = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **body}
    query = f"fieldManager={manager}&force={str(force).lower()}"
    return await api.send("PATCH", f"{target}?{query}", named, "application/apply-patch+yaml")


def owned(resource_slice: Tree) -> dict[str, Any]:
    """Who owns what of the field, by manager."""
    return {
        entry["manager"]: entry["fieldsV1"]["f:spec"]["f:skipNodeOperations"]
        for entry in resource_slice["metadata"]["managedFields"]
        if "f:skipNodeOperations" in entry["fieldsV1"].get("f:spec", {})
    }


@played
async def test_a_list_is_owned_by_item_and_a_boolean_as_a_whole() -> None:
    """The first half was recorded from Kubernetes 1.37."""
    all_, one = 'v:"*"', 'v:"NodeUnprepareResources"'
    async with served(gates=ALIAS) as api:
        made = (await api.create(f"{SLICES}?fieldManager=m", a_slice(skipNodeOperations=["*"]))).ok()
        assert owned(made) == {"m": {".": {}, all_: {}}}
        second = a_slice(skipNodeOperations=["NodeUnprepareResources"])
        both = (await apply(api, f"{SLICES}/s", second, manager="x", force=True)).ok()
        assert both["spec"]["skipNodeOperations"] == ["*", "NodeUnprepareResources"]
        assert owned(both) == {"m": {".": {}, all_: {}}, "x": {one: {}}}
        without = a_slice()
        left = (await apply(api, f"{SLICES}/s", without, manager="x", force=True)).ok()
        assert left["spec"]["skipNodeOperations"] == ["*"]

        whole = (
            await apply(api, f"{SLICES}/s", a_slice(skipNodeOperations=True), manager="x", force=True)
        ).ok()
        assert whole["spec"]["skipNodeOperations"] is True
        assert owned(whole)["x"] == {}
        other = (await api.merge(f"{SLICES}/s?fieldManager=m", {"spec": {"skipNodeOperations": False}})).ok()
        assert other["spec"]["skipNodeOperations"] is False
        assert owned(other) == {"m": {}}
        again = await apply(api, f"{SLICES}/s", a_slice(skipNodeOperations=True), manager="x", force=False)
        assert again.status == 409
        back = (await api.merge(f"{SLICES}/s?fieldManager=m", {"spec": {"skipNodeOperations": ["*"]}})).ok()
        assert back["spec"]["skipNodeOperations"] == ["*"]


@pytest.mark.parametrize("value", ["true", 1, {"a": "b"}, [1]])
@played
async def test_other_forms_cannot_be_read(value: Any) -> None:
    async with served(gates=ON) as api:
        answer = await api.create(SLICES, a_slice(skipNodeOperations=value))
        assert answer.status == 400
        assert answer.body["reason"] == "BadRequest"
