"""The requests of claims, made ready for allocation: exact requests and the alternatives of `firstAvailable` alike.

`requests_of` works out what does not depend on a node. What is wrong with a request is raised where Kubernetes would:
when the claims are allocated, in the order of claims and requests, after what is wrong with those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from nodeward.base.quantity import Quantity
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.errors import AllocationError

#: Results that one claim can have.
MOST_DEVICES: Final = 32
#: Alternatives that one request can have.
MOST_ALTERNATIVES: Final = 8

ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"

ClassLookup: TypeAlias = "Callable[[str], DeviceClass | None]"


@dataclass(frozen=True, slots=True, eq=False)
class RequestToAllocate:
    """A request, or one of the alternatives of a request."""

    name: str
    #: the request whose alternative it is; empty if it is none
    parent: str
    device_class: DeviceClass
    selectors: Sequence[DeviceSelector]
    tolerations: Sequence[DeviceToleration]
    #: capacity that is asked for, by name
    capacity: Mapping[str, Quantity]
    #: expressions of derived attributes, by name
    derived: Mapping[str, str]
    admin_access: bool
    wants_all: bool
    #: number of devices; of a request for all devices it depends on the node
    count: int

    @property
    def full_name(self) -> str:
        """The name that results and constraints use."""
        return f"{self.parent}/{self.name}" if self.parent else self.name


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequest:
    """A request of a claim with its alternatives, in order of preference; an exact request has one."""

    request: DeviceRequest
    #: what is wrong with an alternative takes its place
    alternatives: tuple[RequestToAllocate | AllocationError, ...]
    #: what is wrong with the request as a whole
    fault: AllocationError | None = None

    @property
    def is_choice(self) -> bool:
        return bool(self.request.first_available)


def full_claim_name(claim: ResourceClaim) -> str:
    """Return the claim as error messages name it."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return f"{namespace}/{name}" if namespace else name


def requests_of(
    claim: ResourceClaim, classes: ClassLookup, features: AllocatorFeatures
) -> tuple[ClaimRequest, ...]:
    """Return the requests of a claim."""
    return tuple(_request(claim, each, classes, features) for each in claim.spec.devices.requests)


def _request(
    claim: ResourceClaim, request: DeviceRequest, classes: ClassLookup, features: AllocatorFeatures
) -> ClaimRequest:
    where = f"claim {full_claim_name(claim)}"
    if request.first_available:
        fault = _feature_fault(where, request, features)
        return ClaimRequest(
            request,
            tuple(_made(where, each, request.name, classes, features) for each in request.first_available),
            fault,
        )
    if request.exactly is None:
        text = f"{where}, request {request.name}: missing device class name (unsupported request type?)"
        return ClaimRequest(request, (), AllocationError(text))
    exact = _made(where, request.exactly, "", classes, features, name=request.name)
    return ClaimRequest(request, (exact,), _feature_fault(where, request, features))


def _feature_fault(where: str, request: DeviceRequest, features: AllocatorFeatures) -> AllocationError | None:
    if request.first_available and not features.prioritized_list:
        text = "has subrequests, but the DRAPrioritizedList feature is disabled"
        return AllocationError(f"{where}, request {request.name}: {text}")
    if features.consumable_capacity:
        return None
    off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        return AllocationError(f"{where}, request {request.name}: {off}")
    for each in request.first_available:
        if each.capacity is not None:
            return AllocationError(f"{where}, subrequest {each.name}: {off}")
    return None


def _made(
    where: str,
    request: ExactDeviceRequest | DeviceSubRequest,
    parent: str,
    classes: ClassLookup,
    features: AllocatorFeatures,
    *,
    name: str = "",
) -> RequestToAllocate | AllocationError:
    name = request.name if isinstance(request, DeviceSubRequest) else name
    admin = request.admin_access if isinstance(request, ExactDeviceRequest) else None
    where = f"{where}, request {name}"
    if request.derived_attributes and not features.derived_attributes:
        text = "cannot handle request with derived attributes, the feature is disabled"
        return AllocationError(f"{where}: {text}")
    for number, selector in enumerate(request.selectors):
        if selector.cel is None:
            text = "CEL expression empty (unsupported selector type?)"
            return AllocationError(f"{where}, selector #{number}: {text}")
    if admin is not None and not features.admin_access:
        return AllocationError(f"{where}: admin access is requested, but the feature is disabled")
    wanted = request.device_class_name
    if not wanted:
        return AllocationError(f"{where}: missing device class name (unsupported request type?)")
    device_class = classes(wanted)
    if device_class is None:
        missing = f'deviceclass.resource.k8s.io "{wanted}" not found'
        return AllocationError(f"{where}: could not retrieve device class {wanted}: {missing}")
    mode = request.allocation_mode
    if mode not in (ALL, EXACT_COUNT):
        return AllocationError(f"{where}: unsupported count mode {mode}")
    return RequestToAllocate(
        name,
        parent,
        device_class,
        request.selectors,
        request.tolerations,
        request.capacity.requests if request.capacity is not None else {},
        {each.name: each.expression for each in request.derived_attributes},
        bool(admin),
        mode == ALL,
        request.count,
    )
