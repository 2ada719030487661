"""Small clusters with devices, and the allocator asked about them as the scheduler would ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from nodeward.api import codec
from nodeward.api.core_v1.node import Node
from nodeward.api.meta import KubeObject
from nodeward.api.resource_v1 import DeviceAttribute, DeviceClass, ResourceClaim, ResourceSlice
from nodeward.rules.devices.allocator import Allocated, NoDevices, PodAllocator
from nodeward.rules.devices.allocator_features import AllocatorFeatures, NodeOperations
from nodeward.rules.devices.errors import ExpressionError
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import Inventory, PoolDevice
from nodeward.rules.devices.search import SearchBudget

T = TypeVar("T", bound=KubeObject)

DRIVER = "gpu.example.com"
SHARE_ID = "9a4c9c9e-0000-4000-8000-000000000001"
COPIED = AllocatorFeatures(node_operations=NodeOperations.COPIED)


def made(kind: type[T], described: dict[str, Any]) -> T:
    return codec.read(json.dumps(described).encode(), kind)


def node(name: str = "n1", declared: Sequence[str] = (), **labels: str) -> Node:
    return made(
        Node, {"metadata": {"name": name, "labels": labels}, "status": {"declaredFeatures": [*declared]}}
    )


def devices(count: int, **each: Any) -> list[dict[str, Any]]:
    return [{"name": f"d{number}", **each} for number in range(count)]


def slice_of(
    described: Sequence[dict[str, Any]] = (),
    *,
    name: str = "s1",
    pool: str = "p1",
    count: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """A slice on node n1 unless `spec` says where."""
    where = {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}
    generation = spec.pop("generation", 1)
    full = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": [*described],
        **({} if where & {*spec} else {"nodeName": "n1"}),
        **spec,
    }
    return made(ResourceSlice, {"metadata": {"name": name}, "spec": full})


def device_class(name: str = "gpu", *selectors: str, config: Sequence[dict[str, Any]] = ()) -> DeviceClass:
    chosen = [{"cel": {"expression": each}} for each in selectors]
    return made(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": chosen, "config": [*config]}})


def exactly(name: str = "r", count: int = 1, **more: Any) -> dict[str, Any]:
    mode = more.pop("allocationMode", "ExactCount")
    number = {"count": count} if mode == "ExactCount" else {}
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "allocationMode": mode, **number, **more},
    }


def claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    spec = {"devices": {"requests": [*requests] or [exactly()], **devices}}
    return made(ResourceClaim, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


class AttributeExpressions:
    """Expressions `name == value` about string attributes; a device that lacks the attribute is an error."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def selector(self, expression: str) -> _Comparison:
        self.compiled.append(expression)
        name, equals, value = expression.partition(" == ")
        if not equals:
            raise ExpressionError(f"compilation failed: {expression}")
        return _Comparison(name, value)

    derived_attribute = selector


class _Comparison:
    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def matches(self, device: PoolDevice) -> bool:
        found = device.device.attributes.get(self._name)
        if found is None:
            raise ExpressionError(f"no such key: {self._name}")
        return found.string == self._value

    def attribute(self, device: PoolDevice) -> DeviceAttribute:
        return DeviceAttribute(bool_=self.matches(device))


def allocator(
    claims: Iterable[ResourceClaim],
    slices: Iterable[ResourceSlice],
    *,
    classes: Iterable[DeviceClass] = (),
    features: AllocatorFeatures = COPIED,
    in_use: DevicesInUse | None = None,
    expressions: Any = None,
) -> PodAllocator:
    known = {each.metadata.name: each for each in classes or [device_class()]}
    return PodAllocator(
        [*claims],
        inventory=Inventory.of(slices, features),
        in_use=in_use if in_use is not None else DevicesInUse(),
        classes=known.get,
        expressions=expressions if expressions is not None else AttributeExpressions(),
        features=features,
    )


def allocate(
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: ResourceSlice | Sequence[ResourceSlice],
    on: Node | None = None,
    *,
    budget: int = 10**6,
    **more: Any,
) -> Allocated | NoDevices:
    several = [claims] if isinstance(claims, ResourceClaim) else claims
    known = [slices] if isinstance(slices, ResourceSlice) else slices
    asked = allocator(several, known, **more)
    return asked.allocate(on if on is not None else node(), SearchBudget(budget), lambda: SHARE_ID)


def chosen(answer: Allocated | NoDevices) -> list[list[tuple[str, str]]]:
    """Per claim: (request, device)."""
    assert isinstance(answer, Allocated), answer
    return [[(each.request, each.device) for each in result.devices.results] for result in answer.results]
