"""The allocator: which devices claims get, in which order they are tried, and what is said when there are none."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.references import NodeSelectorRequirement
from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.features import Gates
from nodeward.rules.devices.allocator import CANNOT_ALLOCATE, Allocated, NoDevices
from nodeward.rules.devices.allocator_features import AllocatorFeatures, NodeOperations
from nodeward.rules.devices.errors import AllocationError, SearchLimitReached
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import REMEMBERED_EXPRESSIONS
from tests.rules.devices.allocating import (
    COPIED,
    DRIVER,
    SHARE_ID,
    AttributeExpressions,
    allocate,
    chosen,
    claim,
    device_class,
    devices,
    exactly,
    node,
    slice_of,
)

NOTHING = NoDevices(CANNOT_ALLOCATE)


def held(*names: str, **more: Any) -> DevicesInUse:
    found = DevicesInUse()
    found.add(DeviceRequestAllocationResult(driver=DRIVER, pool="p1", device=each, **more) for each in names)
    return found


def colored(**colors: str) -> list[dict[str, Any]]:
    return [{"name": name, "attributes": {"color": {"string": color}}} for name, color in colors.items()]


def picky(color: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": f"color == {color}"}}]}


# -- pools


def test_devices_are_tried_by_driver_pool_and_slice_name_then_in_the_order_of_the_slice() -> None:
    slices = [
        slice_of([{"name": "z"}], name="b", pool="p2"),
        slice_of([{"name": "y"}, {"name": "x"}], name="b", count=2),
        slice_of([{"name": "w"}], name="a", count=2),
        slice_of([{"name": "v"}], name="c", pool="p9", driver="a.example.com"),
    ]
    order = [name for _, name in chosen(allocate(claim(exactly(count=5)), slices))[0]]
    assert order == ["v", "w", "y", "x", "z"]


def test_pools_with_binding_conditions_are_tried_last() -> None:
    slices = [
        slice_of([{"name": "fabric", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Bad"]}]),
        slice_of([{"name": "plain"}], name="s2", pool="p2"),
    ]
    answer = allocate(claim(exactly(count=2)), slices)
    assert isinstance(answer, Allocated)
    first, second = answer.results[0].devices.results
    assert (first.device, second.device) == ("plain", "fabric")
    assert (second.binding_conditions, second.binding_failure_conditions) == (["Ready"], ["Bad"])


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    slices = [slice_of([{"name": "old"}]), slice_of([{"name": "new"}], name="s2", generation=2)]
    assert chosen(allocate(claim(), slices)) == [[("r", "new")]]


def test_a_pool_whose_slices_are_not_all_there_gives_no_devices() -> None:
    incomplete = slice_of(devices(2), count=2)
    assert allocate(claim(), incomplete) == NOTHING
    text = f"claim default/c, request r: asks for all devices, but resource pool {DRIVER}/p1 is currently being updated"
    with pytest.raises(AllocationError, match=text):
        allocate(claim(exactly(allocationMode="All")), incomplete)


def test_a_pool_is_complete_when_the_missing_slices_belong_to_other_nodes() -> None:
    slices = [slice_of(devices(1), count=2), slice_of([{"name": "far"}], name="s2", count=2, nodeName="n2")]
    assert chosen(allocate(claim(), slices)) == [[("r", "d0")]]
    newer = slice_of([{"name": "far"}], name="s3", count=2, nodeName="n2", generation=2)
    assert allocate(claim(), [*slices, newer]) == NOTHING


def test_an_invalid_pool_gives_no_devices_and_is_named_only_if_nothing_else_fits() -> None:
    twice = slice_of([{"name": "d"}, {"name": "d"}])
    with pytest.raises(AllocationError, match=r"^invalid resource pools were encountered$") as raised:
        allocate(claim(), twice)
    assert raised.value.is_for_one_node
    good = slice_of([{"name": "good"}], name="s2", pool="p2")
    assert chosen(allocate(claim(), [twice, good])) == [[("r", "good")]]


def test_devices_are_for_the_nodes_their_slice_or_they_themselves_name() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    network = slice_of([{"name": "net"}], nodeSelector=zone)
    assert allocate(claim(), network) == NOTHING
    answer = allocate(claim(), network, node(zone="a"))
    assert isinstance(answer, Allocated)
    selector = answer.results[0].node_selector
    assert selector is not None
    expected = [NodeSelectorRequirement(key="zone", operator="In", values=["a"])]
    assert selector.node_selector_terms[0].match_expressions == expected

    each = slice_of(
        [{"name": "far", "nodeName": "n2"}, {"name": "near", "allNodes": True}], perDeviceNodeSelection=True
    )
    answer = allocate(claim(), each)
    assert chosen(answer) == [[("r", "near")]]
    assert isinstance(answer, Allocated)
    assert answer.results[0].node_selector is None


def test_a_device_of_one_node_ties_the_claim_to_it() -> None:
    answer = allocate(claim(), slice_of(devices(1)))
    assert isinstance(answer, Allocated)
    selector = answer.results[0].node_selector
    assert selector is not None
    assert selector.node_selector_terms[0].match_fields == [
        NodeSelectorRequirement(key="metadata.name", operator="In", values=["n1"])
    ]


# -- requests


def test_devices_that_claims_hold_are_passed_over_unless_for_admin_access() -> None:
    pool = slice_of(devices(2))
    assert chosen(allocate(claim(), pool, in_use=held("d0"))) == [[("r", "d1")]]
    admin = allocate(claim(exactly(adminAccess=True)), pool, in_use=held("d0"))
    assert chosen(admin) == [[("r", "d0")]]
    assert isinstance(admin, Allocated)
    assert admin.results[0].devices.results[0].admin_access is True
    assert chosen(allocate(claim(), pool, in_use=held("d0", admin_access=True))) == [[("r", "d0")]]


def test_what_is_removed_again_is_free() -> None:
    use = held("d0")
    use.remove([DeviceRequestAllocationResult(driver=DRIVER, pool="p1", device="d0")])
    assert chosen(allocate(claim(), slice_of(devices(1)), in_use=use)) == [[("r", "d0")]]


def test_earlier_requests_give_way_so_that_later_ones_can_be_met() -> None:
    pool = slice_of(colored(a="red", b="blue"))
    wanted = claim(exactly("any"), exactly("red", **picky("red")))
    assert chosen(allocate(wanted, pool)) == [[("any", "b"), ("red", "a")]]


def test_claims_of_a_pod_get_all_their_devices_or_none() -> None:
    pool = slice_of(devices(2))
    assert chosen(allocate([claim(name="a"), claim(name="b")], pool)) == [[("r", "d0")], [("r", "d1")]]
    assert allocate([claim(name=name) for name in "abc"], pool) == NOTHING


def test_first_available_takes_the_first_alternative_that_lets_the_rest_succeed() -> None:
    pool = slice_of(colored(a="red", b="blue"))
    wanted = claim(
        {
            "name": "q",
            "firstAvailable": [
                {"name": "two", **exactly(count=2)["exactly"]},
                {"name": "one", **exactly()["exactly"]},
            ],
        },
        exactly("red", **picky("red")),
    )
    answer = allocate(wanted, pool)
    assert chosen(answer) == [[("q/one", "b"), ("red", "a")]]
    assert isinstance(answer, Allocated)
    assert answer.alternatives == ((1, 0),)


def test_all_means_every_selectable_device_and_fails_if_one_is_taken() -> None:
    pool = slice_of(colored(a="red", b="blue", c="red"))
    wanted = claim(exactly(allocationMode="All", **picky("red")))
    assert chosen(allocate(wanted, pool)) == [[("r", "a"), ("r", "c")]]
    assert allocate(wanted, pool, in_use=held("c")) == NOTHING
    assert allocate(claim(exactly(allocationMode="All", **picky("green"))), pool) == NOTHING


def test_a_claim_has_at_most_32_devices() -> None:
    pool = slice_of(devices(40))
    assert len(chosen(allocate(claim(exactly(count=32)), pool))[0]) == 32
    with pytest.raises(
        AllocationError, match="claim default/c: number of requested devices 33 exceeds the claim limit of 32"
    ):
        allocate(claim(exactly("a", 32), exactly("b")), pool)
    either = {
        "name": "q",
        "firstAvailable": [
            {"name": "many", **exactly(count=5)["exactly"]},
            {"name": "few", **exactly(count=2)["exactly"]},
        ],
    }
    answer = allocate(claim(exactly("a", 30), either), pool)
    assert [request for request, _ in chosen(answer)[0]][30:] == ["q/few", "q/few"]


def test_a_missing_class_and_a_request_of_unknown_kind_are_errors() -> None:
    missing = 'could not retrieve device class gpu: deviceclass.resource.k8s.io "gpu" not found'
    with pytest.raises(AllocationError, match=f"claim default/c, request r: {missing}"):
        allocate(claim(), slice_of(devices(1)), classes=[device_class("other")])
    with pytest.raises(AllocationError, match="request r: unsupported count mode Most"):
        allocate(claim(exactly(allocationMode="Most")), slice_of(devices(1)))


# -- selectors


def test_class_selectors_come_before_those_of_the_claim_and_errors_say_whose_it_is() -> None:
    pool = slice_of(colored(a="red", b="blue"))
    blue = [device_class("gpu", "color == blue")]
    assert chosen(allocate(claim(), pool, classes=blue)) == [[("r", "b")]]
    assert allocate(claim(exactly(**picky("red"))), pool, classes=blue) == NOTHING
    broken = [device_class("gpu", "color == red", "nonsense")]
    with pytest.raises(
        AllocationError, match="class gpu: selector #1: CEL compile error: compilation failed: nonsense"
    ):
        allocate(claim(), pool, classes=broken)


def test_a_selector_that_reads_what_a_device_lacks_is_an_error_with_a_hint() -> None:
    where = f"claim default/c: selector #0 on device {DRIVER}/p1/d0: CEL runtime error: no such key: color."
    with pytest.raises(AllocationError, match=where + r" consider using CEL optional chaining \(\.\?"):
        allocate(claim(exactly(**picky("red"))), slice_of(devices(1)))
    # A device that fits hides the error of a later one.
    pool = slice_of([*colored(a="red"), *devices(1)])
    assert chosen(allocate(claim(exactly(**picky("red"))), pool)) == [[("r", "a")]]


def test_an_expression_is_evaluated_once_per_device_and_the_memory_is_bounded() -> None:
    pool = slice_of(colored(a="red"))
    engine = AttributeExpressions()
    wanted = [claim(exactly(**picky("red")), name="a"), claim(exactly(**picky("red")), name="b")]
    assert allocate(wanted, pool, expressions=engine) == NOTHING
    assert engine.compiled == ["color == red"]
    many = [{"cel": {"expression": f"color == {number}"}} for number in range(REMEMBERED_EXPRESSIONS + 9)]
    shared = AttributeExpressions()
    for each in many:
        allocate(claim(exactly(selectors=[each])), pool, expressions=shared)
    assert len(shared.compiled) == len(many)


# -- constraints, counters, capacity


@pytest.mark.parametrize(
    ("constraint", "expected"), [("matchAttribute", ["a", "c"]), ("distinctAttribute", ["a", "b"])]
)
def test_constraints_hold_over_the_devices_of_a_claim(constraint: str, expected: list[str]) -> None:
    pool = slice_of([{"name": "none"}, *colored(a="red", b="blue", c="red")])
    wanted = claim(exactly(count=2), constraints=[{"requests": ["r"], constraint: f"{DRIVER}/color"}])
    assert [name for _, name in chosen(allocate(wanted, pool))[0]] == expected


def test_a_constraint_against_one_of_all_devices_is_an_error() -> None:
    wanted = claim(exactly(allocationMode="All"), constraints=[{"matchAttribute": f"{DRIVER}/color"}])
    text = f"cannot add device {DRIVER}/p1/b because a claim constraint would not be satisfied"
    with pytest.raises(AllocationError, match=text):
        allocate(wanted, slice_of(colored(a="red", b="blue")))


def test_partitions_share_the_counters_of_their_card_also_with_claims_on_other_nodes() -> None:
    def part(name: str, slots: int, **more: Any) -> dict[str, Any]:
        taken = {"slots": {"value": str(slots)}}
        return {"name": name, "consumesCounters": [{"counterSet": "card", "counters": taken}], **more}

    counters = slice_of(
        name="s0",
        count=3,
        allNodes=True,
        sharedCounters=[{"name": "card", "counters": {"slots": {"value": "4"}}}],
    )
    here = slice_of([part("half", 2), part("whole", 4), part("quarter", 1)], count=3)
    there = slice_of([part("far", 3)], name="s2", count=3, nodeName="n2")
    pool = [counters, here, there]
    assert [name for _, name in chosen(allocate(claim(exactly(count=2)), pool))[0]] == ["half", "quarter"]
    assert chosen(allocate(claim(), pool, in_use=held("far"))) == [[("r", "quarter")]]
    assert allocate(claim(exactly(count=3)), pool) == NOTHING


def test_shares_of_a_device_take_rounded_capacity_until_none_is_left() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "8Gi"}}
    shared = {
        "name": "d",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "10Gi", "requestPolicy": policy}},
    }
    pool = slice_of([shared])
    wanted = claim(exactly(capacity={"requests": {"memory": "2500Mi"}}))
    answer = allocate(wanted, pool)
    assert isinstance(answer, Allocated)
    result = answer.results[0].devices.results[0]
    assert (str(result.consumed_capacity["memory"]), result.share_id) == ("3Gi", SHARE_ID)
    use = DevicesInUse()
    for _ in range(3):
        use.add([result])
    assert allocate(wanted, pool, in_use=use) == NOTHING
    plain = allocate(claim(), pool, in_use=use)
    assert isinstance(plain, Allocated)
    assert str(plain.results[0].devices.results[0].consumed_capacity["memory"]) == "1Gi"
    use.remove([result])
    assert isinstance(allocate(wanted, pool, in_use=use), Allocated)


def test_capacity_of_an_exclusive_device_only_has_to_be_enough() -> None:
    pool = slice_of(
        [
            {"name": "small", "capacity": {"memory": {"value": "1Gi"}}},
            {"name": "large", "capacity": {"memory": {"value": "8Gi"}}},
        ]
    )
    answer = allocate(claim(exactly(capacity={"requests": {"memory": "2Gi"}})), pool)
    assert chosen(answer) == [[("r", "large")]]
    assert isinstance(answer, Allocated)
    assert answer.results[0].devices.results[0].consumed_capacity == {}


# -- taints


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        ({"key": "wear", "operator": "Exists"}, True),
        ({"key": "wear", "operator": "Equal", "value": "40", "effect": "NoSchedule"}, True),
        ({"key": "wear", "operator": "Equal", "value": "40", "effect": "NoExecute"}, False),
        ({"key": "wear", "operator": "Lt", "value": "50"}, True),
        ({"key": "wear", "operator": "Lt", "value": "40"}, False),
        ({"key": "wear", "operator": "Gt", "value": "39"}, True),
        ({"key": "wear", "operator": "Gt", "value": "039"}, False),
    ],
)
def test_a_tainted_device_needs_a_toleration(toleration: dict[str, str] | None, fits: bool) -> None:
    pool = slice_of(devices(1, taints=[{"key": "wear", "value": "40", "effect": "NoSchedule"}]))
    wanted = claim(exactly(tolerations=[toleration] if toleration else []))
    on = AllocatorFeatures(numeric_tolerations=True)
    assert isinstance(allocate(wanted, pool, features=on), Allocated) == fits
    if toleration is not None and toleration["operator"] in ("Lt", "Gt"):
        assert allocate(wanted, pool, features=AllocatorFeatures()) == NOTHING


def test_a_taint_without_a_known_effect_keeps_nobody_away() -> None:
    taints = [{"key": "a", "effect": "None"}, {"key": "b", "effect": "Later"}]
    assert isinstance(allocate(claim(), slice_of(devices(1, taints=taints))), Allocated)


# -- results


def test_configuration_of_classes_comes_first_and_names_no_requests_if_it_is_for_all() -> None:
    def opaque(number: int) -> dict[str, Any]:
        return {"opaque": {"driver": DRIVER, "parameters": {"n": number}}}

    classes = [device_class("gpu", config=[opaque(1)]), device_class("other", config=[opaque(2)])]
    wanted = claim(
        exactly("a"),
        exactly("b", deviceClassName="other"),
        exactly("c"),
        config=[opaque(3), {"requests": ["b"], **opaque(4)}, {"requests": ["gone"], **opaque(5)}],
    )
    answer = allocate(wanted, slice_of(devices(3)), classes=classes)
    assert isinstance(answer, Allocated)
    found = [
        (each.source, each.requests, each.opaque.parameters["n"])
        for each in answer.results[0].devices.config
        if each.opaque is not None
    ]
    assert found == [
        ("FromClass", ["a", "c"], 1),
        ("FromClass", ["b"], 2),
        ("FromClaim", [], 3),
        ("FromClaim", ["b"], 4),
    ]


# -- bounds, features


def test_the_search_ends_when_it_has_looked_at_as_many_devices_as_it_may() -> None:
    pool = slice_of(colored(**{f"d{number}": "red" for number in range(30)}))
    hopeless = claim(exactly(count=15), exactly("blue", **picky("blue")))
    with pytest.raises(SearchLimitReached, match="timed out trying to allocate devices"):
        allocate(hopeless, pool, budget=5000)


def test_many_claims_do_not_run_into_a_limit_of_the_language() -> None:
    pools = [slice_of(devices(128), name=f"s{number}", pool=f"p{number:02}") for number in range(12)]
    claims = [claim(exactly(count=32), name=f"c{number}") for number in range(48)]
    assert sum(map(len, chosen(allocate(claims, pools)))) == 48 * 32


def test_features_come_from_the_gates() -> None:
    default = AllocatorFeatures.of(Gates.of("1.37"))
    assert default == AllocatorFeatures()
    on = "DRAOptionalNodePreparation=true,TaintTolerationComparisonOperators=true,DRAConsumableCapacity=false"
    chosen_gates = AllocatorFeatures.of(Gates.of("1.37", f"{on},DRAFractionalCapacityRange=false"))
    assert chosen_gates == AllocatorFeatures(
        node_operations=NodeOperations.COPIED, numeric_tolerations=True, consumable_capacity=False
    )
    assert AllocatorFeatures.of(Gates.of("1.36")).node_operations is NodeOperations.UNKNOWN
    assert COPIED.node_operations is NodeOperations.COPIED


@pytest.mark.parametrize(
    ("features", "request_", "text"),
    [
        (
            AllocatorFeatures(prioritized_list=False),
            {"name": "r", "firstAvailable": [{"name": "s"}]},
            "DRAPrioritizedList",
        ),
        (
            AllocatorFeatures(consumable_capacity=False),
            exactly(capacity={"requests": {"m": "1"}}),
            "DRAConsumableCapacity",
        ),
        (AllocatorFeatures(admin_access=False), exactly(adminAccess=True), "admin access is requested"),
        (
            AllocatorFeatures(),
            exactly(derivedAttributes=[{"name": "a", "expression": "b"}]),
            "derived attributes",
        ),
    ],
)
def test_a_request_for_a_feature_that_is_off_is_an_error(
    features: AllocatorFeatures, request_: dict[str, Any], text: str
) -> None:
    with pytest.raises(AllocationError, match=f"request r.*{text}.* disabled"):
        allocate(claim(request_), slice_of(devices(1)), features=features)
