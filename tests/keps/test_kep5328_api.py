"""KEP-5328, the field: a running API server keeps, serves and checks `status.declaredFeatures`."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.api.core_v1.node import Node, NodeStatus
from nodeward.api.schema import Shape, schema_of
from tests.keps.kep5328 import APPLY, NODES, add_node, declare, declaring, node
from tests.keps.ledger import statement
from tests.keps.wire import served

FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


@statement("5328-D1")
def test_the_list_is_optional_and_replaced_as_a_whole() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            _, bare = await caller.json("GET", f"{NODES}/n1")
            assert "declaredFeatures" not in bare["status"]
            for manager, names in (("a", ["A", "B"]), ("b", ["C"])):
                body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, **declaring(*names)}
                status, answer = await caller.json(
                    "PATCH", f"{NODES}/n1/status?fieldManager={manager}&force=true", body, content_type=APPLY
                )
                assert (status, answer["status"]["declaredFeatures"]) == (200, names)
            status, answer = await declare(caller)
            assert status == 200
            assert "declaredFeatures" not in answer["status"]

    asyncio.run(scenario())
    field = schema_of(NodeStatus).fields["declaredFeatures"]
    assert field.shape is Shape.LIST
    assert field.item is not None
    assert (field.item.python_type, field.list_keys, field.is_set, field.is_required) == (
        str,
        (),
        False,
        False,
    )
    assert schema_of(Node).fields["status"].fields["declaredFeatures"] is field


@statement("5328-D10")
def test_names_have_their_form_and_case_counts() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            for good in ("A", "A/b", "A/B/c", "A1", "Aa"):
                assert (await declare(caller, good))[0] == 200, good
            for bad in ("a", "A-b", "A/", "/A", "A//b", "", "A/1b", "A_b", "A b", "Ä"):
                status, answer = await declare(caller, bad)
                assert status == 422, bad
                assert answer["message"] == (
                    f'Node "n1" is invalid: status.declaredFeatures[0]: Invalid value: "{bad}": '
                    f'invalid feature name "{bad}": {FORM}'
                )
            assert (await declare(caller, "AB", "Ab"))[0] == 200

    asyncio.run(scenario())


@statement("5328-D11")
def test_a_name_has_at_most_253_characters() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            assert (await declare(caller, "A" * 253))[0] == 200
            status, answer = await declare(caller, "A" * 254)
            (cause,) = answer["details"]["causes"]
            assert (status, cause["reason"], cause["field"]) == (
                422,
                "FieldValueInvalid",
                "status.declaredFeatures[0]",
            )
            assert answer["message"].endswith(": must be no more than 253 characters")

    asyncio.run(scenario())


@statement("5328-D12")
@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        (("B", "A"), "FieldValueInvalid", '[1]: Invalid value: "A": list must be sorted alphabetically'),
        (("A", "A"), "FieldValueDuplicate", '[1]: Duplicate value: "A"'),
        (("A", "B", "A"), "FieldValueInvalid", '[2]: Invalid value: "A": list must be sorted alphabetically'),
    ],
)
def test_a_list_out_of_order_is_refused_where_the_order_breaks(
    names: tuple[str, ...], reason: str, message: str
) -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller)
            for attempt in (
                caller.json("POST", NODES, node(*names, name="n2")),
                declare(caller, *names),
            ):
                status, answer = await attempt
                assert status == 422
                (cause,) = answer["details"]["causes"]
                assert cause["reason"] == reason
                assert answer["message"].endswith(f"status.declaredFeatures{message}")

    asyncio.run(scenario())


@statement("5328-D54", part="api")
def test_the_field_is_served_on_reads_and_lists_and_checked_on_updates() -> None:
    async def scenario() -> None:
        async with served() as caller:
            await add_node(caller, "A", "B/c")
            _, one = await caller.json("GET", f"{NODES}/n1")
            _, listed = await caller.json("GET", NODES)
            assert one["status"]["declaredFeatures"] == ["A", "B/c"]
            assert listed["items"][0]["status"]["declaredFeatures"] == ["A", "B/c"]
            for bad in (("a",), ("B", "A"), ("A", "A")):
                one["status"]["declaredFeatures"] = list(bad)
                status, answer = await caller.json("PUT", f"{NODES}/n1/status", one)
                assert (status, answer["reason"]) == (422, "Invalid")
            _, kept = await caller.json("GET", f"{NODES}/n1")
            assert kept["status"]["declaredFeatures"] == ["A", "B/c"]

    asyncio.run(scenario())
