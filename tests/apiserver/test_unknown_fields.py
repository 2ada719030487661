"""What a version has never heard of is dropped, wherever it stands, and nothing else is."""

from __future__ import annotations

import pytest

from nodeward.api.blanking import blank
from nodeward.api.codec import decoder, to_stored
from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node, NodeReadinessGate, NodeSpec, NodeStatus
from nodeward.api.meta import ObjectMeta
from nodeward.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from nodeward.api.schema import schema_of
from nodeward.api.scheme import SCHEME
from nodeward.apiserver.resources.unknown_fields import INTRODUCED_BY, stored_readers, unknown_fields
from nodeward.features import CATALOGUE, NEWEST, OLDEST, Gates


def context(minor: int) -> Context:
    return Context(Gates.of(f"1.{minor}"))


def test_a_server_of_today_has_nothing_to_forget() -> None:
    for minor in (37, NEWEST):
        assert stored_readers(SCHEME, context(minor)) == {}
        assert all(unknown_fields(kind, context(minor)) == () for kind in INTRODUCED_BY)


def test_every_field_in_the_table_exists_and_its_gate_too() -> None:
    for kind, fields in INTRODUCED_BY.items():
        for path, gate in fields:
            assert gate in CATALOGUE
            schema = schema_of(kind)
            for step in path:
                name = step.split("_")[0] + "".join(part.title() for part in step.split("_")[1:])
                inner = schema.item if schema.item is not None else schema
                schema = inner.fields[name]


def test_declared_features_are_older_than_readiness_gates() -> None:
    known = {
        minor: [path[-1] for path in unknown_fields(Node, context(minor))]
        for minor in range(OLDEST, NEWEST + 1)
    }
    assert known[34] == ["readiness_gates", "declared_features"]
    assert known[35] == known[36] == ["readiness_gates"]
    assert known[37] == []


def test_fields_inside_lists_are_found_and_named() -> None:
    results = [
        DeviceRequestAllocationResult(device="a"),
        DeviceRequestAllocationResult(device="b", skip_node_operations=["*"]),
        DeviceRequestAllocationResult(device="c", skip_node_operations=False),
    ]
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    claim = ResourceClaim(status=ResourceClaimStatus(allocation=allocation))
    told = blank(claim, unknown_fields(ResourceClaim, context(36)))
    assert told == [f"status.allocation.devices.results[{place}].skipNodeOperations" for place in (1, 2)]
    assert [each.skip_node_operations for each in results] == [None] * 3
    assert blank(claim, unknown_fields(ResourceClaim, context(36))) == []
    assert blank(ResourceClaim(), unknown_fields(ResourceClaim, context(36))) == []


@pytest.mark.parametrize("minor", [34, 36])
def test_stored_bytes_are_read_as_the_version_reads_them(minor: int) -> None:
    read = stored_readers(SCHEME, context(minor))[SCHEME.by_type(Node)]
    plain = to_stored(Node(metadata=ObjectMeta(name="n")))
    assert read(plain) is plain
    gate = NodeReadinessGate(condition_type="example.com/X", timeout_seconds=1)
    rich = Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(readiness_gates=[gate], provider_id="x"),
        status=NodeStatus(declared_features=["A"]),
    )
    seen = decoder(Node).decode(read(to_stored(rich)))
    assert seen.spec.readiness_gates == []
    assert seen.spec.provider_id == "x"
    assert seen.status.declared_features == ([] if minor == 34 else ["A"])
