"""Pods, claims, nodes and features for the tests of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.node import Node, NodeStatus
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from nodeward.base.quantity import Quantity
from nodeward.features import Feature, Gates, NodeConfiguration, PodInfo, Requirements, Version

V137 = Version.parse("1.37")


@dataclass(frozen=True)
class Switches:
    """Gates of a world in which every name is one; those not named are off, but the framework itself is on."""

    on: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        return self.on.get(name, name == "NodeDeclaredFeatures")


def feature(name: str, **more: Any) -> Feature:
    """A feature of its own gate that every pod needs, unless told otherwise."""
    more.setdefault("scheduling_rule", lambda pod: True)
    more.setdefault("requirements", Requirements((name,)))
    return Feature(name=name, **more)


def config(version: str = "1.37", gates: str = "", **static: str) -> NodeConfiguration:
    """A node of that version and flags; two underscores in a key stand for a dot."""
    settings = {key.replace("__", "."): value for key, value in static.items()}
    return NodeConfiguration(Version.parse(version), Gates.of(version, gates), settings)


def info(*claims: ResourceClaim, **spec: Any) -> PodInfo:
    spec.setdefault("containers", [Container(name="c")])
    return PodInfo(PodSpec(**spec), resource_claims=claims)


def resources(**requests: str) -> ResourceRequirements:
    return ResourceRequirements(requests={name: Quantity.parse(text) for name, text in requests.items()})


def allocated(*skips: bool | list[str] | None) -> ResourceClaim:
    """A claim with one allocated device for each value of skipNodeOperations."""
    results = [
        DeviceRequestAllocationResult(
            request="r", driver="d", pool="p", device="x", skip_node_operations=skip
        )
        for skip in skips
    ]
    devices = DeviceAllocationResult(results=results)
    return ResourceClaim(status=ResourceClaimStatus(allocation=AllocationResult(devices=devices)))


def node(*declared: str) -> Node:
    return Node(status=NodeStatus(declared_features=list(declared)))
