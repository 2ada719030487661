"""Allocation problems with the answers Kubernetes 1.37 gave, kept next to the repository (not in it)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from nodeward.rules.devices.allocator import NoDevices, PodAllocator
from nodeward.rules.devices.allocator_features import AllocatorFeatures, NodeOperations
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import Inventory
from nodeward.rules.devices.search import SearchBudget
from nodeward.rules.devices.taint_rules import with_taint_rules
from nodeward.scheduler.plugins.dra.cel_expressions import CelDeviceExpressions

_CASES = Path(__file__).resolve().parents[4] / "shared" / "reference" / "dra-cases"
_SHARE: Final = "<uuid>"
#: More than any of the problems needs.
_BUDGET: Final = 20_000
_EXPRESSIONS: Final = CelDeviceExpressions()

#: kube-scheduler 1.37 passes over `skipNodeOperations` while its gate is off; ours does so before 1.37 only (KEP-5945).
_DEFAULT: Final = replace(AllocatorFeatures(), node_operations=NodeOperations.UNKNOWN)
_ALL: Final = replace(
    _DEFAULT,
    compatibility_groups=True,
    derived_attributes=True,
    fractional_capacity_range=True,
    list_type_attributes=True,
    node_operations=NodeOperations.COPIED,
)
#: The feature sets of the recorded answers.
FEATURES: Final[Mapping[str, AllocatorFeatures]] = {
    "default": _DEFAULT,
    "all": _ALL,
    "default+skip": replace(_DEFAULT, node_operations=NodeOperations.COPIED),
    "all-skip": replace(_ALL, node_operations=NodeOperations.REFUSED),
}


@cache
def recorded_allocations() -> list[dict[str, Any]]:
    """Return all problems; skip the test, with a reason, where they are missing."""
    path = _CASES / "allocator.jsonl"
    if not path.exists():
        pytest.skip(
            "NOT COMPARED with real Kubernetes: allocator.jsonl is missing in ../shared/reference/dra-cases"
        )
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def expected(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return (feature set, answer per node)."""
    for name, answers in case["expect"].items():
        yield name, case["expect"][answers] if isinstance(answers, str) else answers


def answers(case: dict[str, Any], features: AllocatorFeatures) -> dict[str, dict[str, Any]]:
    """Return what our allocator says of each node, in the form of the recorded answers."""

    def read(kind: type[Any], field: str) -> list[Any]:
        return [codec.read(json.dumps(each).encode(), kind) for each in case.get(field) or ()]

    rules = read(DeviceTaintRule, "taintRules")
    slices = [with_taint_rules(each, rules) for each in read(ResourceSlice, "slices")]
    in_use = DevicesInUse()
    in_use.add(read(DeviceRequestAllocationResult, "allocated"), shared=features.consumable_capacity)
    classes = {each.metadata.name: each for each in read(DeviceClass, "classes")}
    allocator = PodAllocator(
        read(ResourceClaim, "claims"),
        inventory=Inventory.of(slices, features),
        in_use=in_use,
        classes=classes.get,
        expressions=_EXPRESSIONS,
        features=features,
    )
    return {node.metadata.name: _answer(allocator, node) for node in read(Node, "nodes")}


def _answer(allocator: PodAllocator, node: Node) -> dict[str, Any]:
    try:
        answer = allocator.allocate(node, SearchBudget(_BUDGET), lambda: _SHARE)
    except AllocationError as error:
        return {"error": str(error)} | ({"thisNodeOnly": True} if error.is_for_one_node else {})
    if isinstance(answer, NoDevices):
        return {"fit": False}
    return {
        "fit": True,
        "claims": [
            without_empty(
                {
                    "results": codec.to_tree(each.devices)["results"],
                    "config": codec.to_tree(each.devices).get("config"),
                    "nodeSelector": codec.to_tree(each.node_selector)
                    if each.node_selector is not None
                    else None,
                }
            )
            for each in answer.results
        ],
    }


def without_empty(value: Any) -> Any:
    """Return a tree without empty lists, maps and texts: written or not, they mean the same."""
    if isinstance(value, dict):
        cleaned = {key: without_empty(each) for key, each in value.items()}
        return {key: each for key, each in cleaned.items() if each not in ([], {}, None, "")}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def as_recorded(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded answer without what is not compared: the steps of the search, what a kubelet makes of it."""
    kept = {key: value for key, value in answer.items() if key != "steps"}
    if "claims" in kept:
        kept["claims"] = [
            without_empty({key: value for key, value in each.items() if key != "kubelet"})
            for each in kept["claims"]
        ]
    return kept
