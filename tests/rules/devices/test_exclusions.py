"""Why devices cannot be had: every check that can exclude a device is named, and the answer stays short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.rules.devices.allocator import NoDevices
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.errors import SearchLimitReached
from nodeward.rules.devices.exclusions import MOST_LINES
from nodeward.rules.devices.holders import holders_of
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.search import SearchBudget
from tests.rules.devices.allocating import (
    SHARE_ID,
    allocator,
    claim,
    device_class,
    devices,
    exactly,
    made,
    node,
    slice_of,
)

WHERE = "claim default/c, request r"


def explained(
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: ResourceSlice | Sequence[ResourceSlice],
    held: Sequence[ResourceClaim] = (),
    budget: int = 1000,
    **more: Any,
) -> list[str]:
    """What is said of node n1, which cannot give the claims their devices."""
    in_use = DevicesInUse()
    for each in held:
        assert each.status.allocation is not None
        in_use.add(each.status.allocation.devices.results)
    asked = allocator(
        [claims] if isinstance(claims, ResourceClaim) else claims,
        [slices] if isinstance(slices, ResourceSlice) else slices,
        in_use=in_use,
        **more,
    )
    assert isinstance(asked.allocate(node(), SearchBudget(10_000), lambda: SHARE_ID), NoDevices)
    return list(asked.explain(node(), SearchBudget(budget), holders_of(held)))


def holding(name: str, *devices: str, **result: Any) -> ResourceClaim:
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": "p1", "device": each, **result}
        for each in devices
    ]
    return made(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default"},
            "status": {"allocation": {"devices": {"results": results}}},
        },
    )


def model(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"model": {"string": value}}, **more}


def selecting(*expressions: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": each}} for each in expressions]


def test_devices_in_use_name_the_claims_that_have_them() -> None:
    held = [holding("a", "d0", "d1"), holding("b", "d2")]
    assert explained(claim(exactly(count=2)), slice_of(devices(4)), held) == [
        f"{WHERE}: wants 2 devices, can have 1 of 4",
        f"{WHERE}: 3 in use by default/a, default/b (d0, d1, d2)",
    ]


def test_the_selector_that_excludes_a_device_is_named_whether_of_the_class_or_of_the_claim() -> None:
    published = slice_of([model("d0", "A"), model("d1", "B"), model("d2", "B")])
    wanted = claim(exactly(selectors=selecting("model == A")))
    assert explained(wanted, published, classes=[device_class("gpu", "model == B")]) == [
        f"{WHERE}: wants 1 device, can have 0 of 3",
        f"{WHERE}: 2 not selected by selector #0 of claim default/c: model == A (d1, d2)",
        f"{WHERE}: 1 not selected by selector #0 of class gpu: model == B (d0)",
    ]


def test_a_device_that_is_in_use_and_not_selected_is_not_said_to_be_in_use() -> None:
    wanted = claim(exactly(selectors=selecting("model == A")))
    found = explained(wanted, slice_of([model("d0", "B")]), [holding("a", "d0")])
    assert found[1:] == [f"{WHERE}: 1 not selected by selector #0 of claim default/c: model == A (d0)"]


def test_devices_that_are_not_selected_come_last_however_many_there_are() -> None:
    published = slice_of([model("d0", "B"), model("d1", "B"), model("d2", "A")])
    found = explained(claim(exactly(selectors=selecting("model == A"))), published, [holding("a", "d2")])
    assert found[1] == f"{WHERE}: 1 in use by default/a (d2)"
    assert found[2].startswith(f"{WHERE}: 2 not selected")


def test_untolerated_taints_are_named() -> None:
    taint = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
    found = explained(claim(), slice_of(devices(1, taints=[taint])))
    assert found[1:] == [f"{WHERE}: 1 with the untolerated taint broken=yes:NoSchedule (d0)"]


def test_capacity_that_shares_took_names_the_claims_that_took_it() -> None:
    shared = devices(1, allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})
    held = holding("a", "d0", shareID=SHARE_ID, consumedCapacity={"memory": "70Gi"})
    found = explained(claim(exactly(capacity={"requests": {"memory": "20Gi"}})), slice_of(shared), [held])
    text = "1 without the capacity that is requested, beside what is taken by default/a (d0)"
    assert found[1:] == [f"{WHERE}: {text}"]


def test_counters_that_partitions_used_up_are_named() -> None:
    drawing = {"consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "6"}}}]}
    counters = [{"name": "set", "counters": {"memory": {"value": "10"}}}]
    slices = [slice_of(devices(2, **drawing), count=2), slice_of(name="s2", count=2, sharedCounters=counters)]
    found = explained(claim(), slices, [holding("a", "d0")])
    assert found[1:] == [
        f"{WHERE}: 1 in use by default/a (d0)",
        f"{WHERE}: 1 without enough left of the counters that its partitions share (d1)",
    ]


def test_a_constraint_is_named_beside_the_devices_given_before() -> None:
    wanted = claim(exactly(count=2), constraints=[{"matchAttribute": "gpu.example.com/model"}])
    assert explained(wanted, slice_of([model("d0", "A"), model("d1", "B")])) == [
        f"{WHERE}: wants 2 devices, can have 1 of 2 beside those given before",
        f"{WHERE}: 1 excluded by constraint #0, matchAttribute gpu.example.com/model (d1)",
    ]
    distinct = claim(exactly(count=2), constraints=[{"distinctAttribute": "gpu.example.com/model"}])
    found = explained(distinct, slice_of([model("d0", "A"), model("d1", "A")]))
    assert found[1:] == [
        f"{WHERE}: 1 excluded by constraint #0, distinctAttribute gpu.example.com/model (d1)"
    ]


def test_requests_that_only_fail_together_say_which_is_left_without() -> None:
    found = explained([claim(), claim(name="other")], slice_of(devices(1)))
    where = "claim default/other, request r"
    assert found == [
        f"{where}: wants 1 device, can have 0 of 1 beside those given before",
        f"{where}: 1 given to another request of the pod (d0)",
    ]


def test_devices_that_skip_node_operations_are_told_where_that_is_not_supported() -> None:
    published = slice_of(devices(1), skipNodeOperations=True)
    text = "1 with skipNodeOperations, which the scheduler or the node does not support (d0)"
    assert explained(claim(), published)[1:] == [f"{WHERE}: {text}"]
    assert explained(claim(), published, features=AllocatorFeatures())[1:] == [f"{WHERE}: {text}"]


def test_every_alternative_of_a_request_is_explained() -> None:
    first = [
        {"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        for name, count in (("many", 3), ("few", 2))
    ]
    found = explained(claim({"name": "r", "firstAvailable": first}), slice_of(devices(1)))
    assert found == [
        f"{WHERE}/many: wants 3 devices, can have 1 of 1",
        f"{WHERE}/few: wants 2 devices, can have 1 of 1",
    ]


def test_a_request_for_all_devices_names_those_it_cannot_have() -> None:
    wanted = claim(exactly(allocationMode="All"))
    assert explained(wanted, slice_of(devices(2)), [holding("a", "d1")]) == [
        f"{WHERE}: wants all devices that it selects, can have 1 of 2",
        f"{WHERE}: 1 in use by default/a (d1)",
    ]
    assert explained(wanted, []) == [f"{WHERE}: wants all devices that it selects, can have 0 of 0"]


def test_a_pool_that_gives_no_devices_is_named() -> None:
    found = explained(claim(), slice_of(devices(1), count=2))
    assert found[0] == "pool gpu.example.com/p1 gives no devices: it is incomplete"
    assert found[1] == f"{WHERE}: wants 1 device, can have 0 of 0"


def test_the_answer_is_bounded_however_many_reasons_and_devices_there_are() -> None:
    tainted = [
        {"name": f"d{number}", "taints": [{"key": f"k{number}", "effect": "NoSchedule"}]}
        for number in range(50)
    ]
    found = explained(claim(), slice_of(tainted))
    assert len(found) == MOST_LINES
    assert found[-1] == "and 42 more reasons"
    long = explained(
        claim(exactly(selectors=selecting(f"model == {'A' * 5000}"))), slice_of([model("d0", "B")])
    )
    assert all(len(line) < 400 for line in long)
    with pytest.raises(SearchLimitReached):
        explained(claim(), slice_of(tainted), budget=49)


def test_explaining_changes_no_answer() -> None:
    asked = allocator([claim(exactly(count=2))], [slice_of(devices(1))])
    first = asked.explain(node(), SearchBudget(100), {})
    assert first == asked.explain(node(), SearchBudget(100), {})
    assert isinstance(asked.allocate(node(), SearchBudget(100), lambda: SHARE_ID), NoDevices)
