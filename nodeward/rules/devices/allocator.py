"""The allocator: which devices the claims of one pod get on a node, together or not at all.

`PodAllocator` is made once per pod and asked for each node that comes into question; it changes nothing. The answer is
an `AllocationResult` per claim, as Kubernetes 1.37 would write it, or `NoDevices` if the node does not have what the
claims request. `AllocationError`: something is wrong with a claim, a class, a pool or an expression.

What must stay true: the same slices, claims and devices in use give the same answer, whatever happened before.

Called by the scheduler plugin `DynamicResources` and whoever explains it; calls `inventory`, `requests`, `search`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import AllocationResult, DeviceAttribute, ResourceClaim
from nodeward.features.declared.dra_optional_node_preparation import NAME as PREPARATION_FEATURE
from nodeward.rules.devices.allocator_features import OPTIONAL_PREPARATION_GATE, AllocatorFeatures
from nodeward.rules.devices.capacity import CapacityError, fits_capacity
from nodeward.rules.devices.constraints import ClaimConstraint, make_constraint, published_attribute
from nodeward.rules.devices.device_id import DeviceID
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.exclusions import DeviceExclusions, DeviceHolders
from nodeward.rules.devices.expressions import (
    DeviceExpressions,
    derive,
    selects_device,
    selects_of_class,
)
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import Inventory, NodePools, PoolDevice, VisiblePool
from nodeward.rules.devices.requests import (
    MOST_ALTERNATIVES,
    MOST_DEVICES,
    ClaimRequest,
    ClassLookup,
    RequestToAllocate,
    full_claim_name,
    requests_of,
)
from nodeward.rules.devices.results import allocation_result
from nodeward.rules.devices.search import ClaimOnNode, DeviceSearch, RequestOnNode, SearchBudget
from nodeward.rules.devices.taking import NodeOperationsRefusal, TrialDevices

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
UNDECLARED: Final = f"node(s) did not match node declared features: {PREPARATION_FEATURE}"
DISABLED: Final = (
    "cannot allocate all claims: devices have skipNodeOperations, but the "
    f"{OPTIONAL_PREPARATION_GATE} feature is disabled"
)


@dataclass(frozen=True, slots=True)
class NoDevices:
    """The node does not have the devices; `reason` is for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Allocated:
    """The devices of each claim, in the order of the claims."""

    results: tuple[AllocationResult, ...]
    #: per claim and request, which alternative it got: 0 is the one preferred most
    alternatives: tuple[tuple[int, ...], ...]
    #: how good the alternatives are together; 0 if there was nothing to choose from
    preference: int


class PodAllocator:
    """Allocates the claims of one pod."""

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        *,
        inventory: Inventory,
        in_use: DevicesInUse,
        classes: ClassLookup,
        expressions: DeviceExpressions,
        features: AllocatorFeatures,
    ) -> None:
        self._claims: Final = claims
        self._inventory: Final = inventory
        self._in_use: Final = in_use
        self._expressions: Final = expressions
        self._features: Final = features
        self._names: Final = [full_claim_name(claim) for claim in claims]
        self._requests: Final = [requests_of(claim, classes, features) for claim in claims]
        #: derived attributes by device and expression
        self._derived: Final[dict[tuple[DeviceID, str], DeviceAttribute]] = {}

    def allocate(
        self, node: Node, budget: SearchBudget, new_share_id: Callable[[], str]
    ) -> Allocated | NoDevices:
        """Find devices for all claims on a node."""
        pools, claims, trials = self._on(node)

        def selects(claim: int, request: RequestToAllocate, device: PoolDevice) -> bool:
            return self._selects(claim, request, device, node)

        search = DeviceSearch(claims, pools.devices, trials, selects, budget)
        if not search.run():
            return self._nothing(pools, trials)
        alternatives = search.alternatives()
        results = tuple(
            allocation_result(
                claim,
                [
                    choices[index].request
                    for choices, index in zip(claims[number].requests, alternatives[number], strict=True)
                ],
                trials.chosen[number],
                node.metadata.name,
                self._features,
                new_share_id,
            )
            for number, claim in enumerate(self._claims)
        )
        preference = sum(
            MOST_ALTERNATIVES - index
            for requests, indexes in zip(self._requests, alternatives, strict=True)
            for request, index in zip(requests, indexes, strict=True)
            if request.is_choice
        )
        return Allocated(results, tuple(map(tuple, alternatives)), preference)

    def explain(self, node: Node, budget: SearchBudget, holders: DeviceHolders) -> tuple[str, ...]:
        """Say, for people, what keeps the claims from the devices of a node that `allocate` found nothing on.

        Nothing is said of errors, which speak for themselves. `SearchLimitReached`: there are too many devices.
        """
        try:
            pools, claims, trials = self._on(node)
        except AllocationError:
            return ()

        def unselected(claim: int, request: RequestToAllocate, device: PoolDevice) -> str:
            return self._unselected(claim, request, device, node)

        names = [
            (name, claim.spec.devices.constraints)
            for name, claim in zip(self._names, self._claims, strict=True)
        ]
        return DeviceExclusions(names, claims, pools, trials, unselected, holders, budget).lines()

    def pools_of(self, node: Node) -> NodePools:
        """Return the pools of a node: the same object for nodes that see the same devices."""
        return self._inventory.on(node)

    def _on(self, node: Node) -> tuple[NodePools, list[ClaimOnNode], TrialDevices]:
        pools = self._inventory.on(node)
        claims = [self._prepared(number, node, pools) for number in range(len(self._claims))]
        constraints = [each.constraints for each in claims]
        return pools, claims, TrialDevices(node, constraints, self._names, self._in_use, self._features)

    def _nothing(self, pools: NodePools, trials: TrialDevices) -> NoDevices:
        if pools.has_invalid:
            raise AllocationError("invalid resource pools were encountered", is_for_one_node=True)
        if NodeOperationsRefusal.DISABLED in trials.refusals:
            return NoDevices(DISABLED)
        return NoDevices(UNDECLARED if trials.refusals else CANNOT_ALLOCATE)

    # -- claims on a node

    def _prepared(self, number: int, node: Node, pools: NodePools) -> ClaimOnNode:
        """Check a claim in the order Kubernetes does, and find the devices of requests that want them all."""
        found: list[tuple[RequestOnNode, ...]] = []
        least = 0
        for request in self._requests[number]:
            choices = self._choices(number, request, node, pools)
            found.append(choices)
            least += min(each.count for each in choices)
        name = self._names[number]
        if least > MOST_DEVICES:
            text = f"number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}"
            raise AllocationError(f"claim {name}: {text}")
        return ClaimOnNode(tuple(found), self._constraints(number, name))

    def _choices(
        self, number: int, request: ClaimRequest, node: Node, pools: NodePools
    ) -> tuple[RequestOnNode, ...]:
        if request.fault is not None:
            raise request.fault
        found: list[RequestOnNode] = []
        for each in request.alternatives:
            if isinstance(each, AllocationError):
                raise each
            if each.wants_all:
                devices = tuple(self._all_devices(number, each, node, pools))
                found.append(RequestOnNode(each, len(devices), devices))
            else:
                found.append(RequestOnNode(each, each.count, None))
        return tuple(found)

    def _all_devices(
        self, number: int, request: RequestToAllocate, node: Node, pools: NodePools
    ) -> list[tuple[PoolDevice, VisiblePool]]:
        where = f"claim {self._names[number]}, request {request.name}"
        found: list[tuple[PoolDevice, VisiblePool]] = []
        for pool in pools.pools:
            if not pool.gives_devices:
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f"asks for all devices, but resource pool {pool.id} is currently {state}"
                raise AllocationError(f"{where}: {text}")
            found += [
                (device, pool)
                for device in pool.devices
                if self._selects(number, request, device, node)
                and self._is_large_enough(where, request, device)
            ]
        return found

    def _is_large_enough(self, where: str, request: RequestToAllocate, device: PoolDevice) -> bool:
        if not self._features.consumable_capacity:
            return True
        fractional = self._features.fractional_capacity_range
        try:
            return fits_capacity(request.capacity, device.device.capacity, fractional=fractional)
        except CapacityError as error:
            text = f"checking capacity for device {device.id.device}: {error}"
            raise AllocationError(f"{where}: {text}") from None

    def _constraints(self, number: int, name: str) -> tuple[ClaimConstraint, ...]:
        found: list[ClaimConstraint] = []
        for index, each in enumerate(self._claims[number].spec.devices.constraints):
            made = make_constraint(each, self._attribute, lists=self._features.list_type_attributes)
            if made is None:
                text = "empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {name}, constraint #{index}: {text}")
            found.append(made)
        return tuple(found)

    # -- devices

    def _selects(self, number: int, request: RequestToAllocate, device: PoolDevice, node: Node) -> bool:
        """Tell whether a request selects a device, and the node reaches it."""
        if device.device.binding_conditions and not self._features.binding_conditions:
            return False
        return (
            selects_of_class(self._expressions, request.device_class, device)
            and selects_device(self._expressions, request.selectors, device, f"claim {self._names[number]}")
            and device.is_on(node)
        )

    def _unselected(self, number: int, request: RequestToAllocate, device: PoolDevice, node: Node) -> str:
        """Say why a request does not select a device; "" if it does."""
        if self._selects(number, request, device, node):
            return ""
        class_ = request.device_class
        for owner, selectors in (
            (f"class {class_.metadata.name}", class_.spec.selectors),
            (f"claim {self._names[number]}", request.selectors),
        ):
            for place, selector in enumerate(selectors):
                if not selects_device(self._expressions, [selector], device, owner):
                    text = selector.cel.expression if selector.cel is not None else ""
                    return f"not selected by selector #{place} of {owner}: {text}"
        if not device.is_on(node):
            return "not on this node"
        return "with binding conditions, which are disabled"

    def _attribute(self, request: RequestToAllocate, device: PoolDevice, name: str) -> DeviceAttribute | None:
        expression = request.derived.get(name)
        if expression is None:
            return published_attribute(device, name)
        key = device.id, expression
        found = self._derived.get(key)
        if found is None:
            found = self._derived[key] = derive(self._expressions, name, expression, device)
        return found
