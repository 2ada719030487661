"""The claims of one pod during one scheduling attempt: which are allocated, which are to be, and what became of them.

`PodClaimFinder` resolves the claims of a pod and makes what the filter needs; faults come as a `Status` with the texts
Kubernetes users know. Called by the plugin DynamicResources and its hints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import AllocationResult, DeviceClass, DeviceRequest, ResourceClaim
from nodeward.rules.devices.allocator import PodAllocator
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.expressions import DeviceExpressions
from nodeward.rules.devices.inventory import Inventory
from nodeward.rules.devices.requests import full_claim_name
from nodeward.rules.resource_claims import ClaimReferenceError, check_claim, claim_name
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.status import Status, failed, unresolvable
from nodeward.scheduler.plugins.dra.claim_tracker import ClaimTracker
from nodeward.scheduler.plugins.dra.slice_tracker import SliceTracker


@dataclass(slots=True)
class PodClaimState:
    """What one attempt knows of the claims of its pod. Not copied: what-if questions do not change claims."""

    claims: list[ResourceClaim]
    #: the claims that have no allocation yet, by their place in `claims`
    unallocated: tuple[int, ...]
    inventory: Inventory
    #: None: there is nothing to allocate
    allocator: PodAllocator | None
    #: equal for pods whose claims ask for the same
    key: tuple[object, ...] = ()
    #: allocated claims that some node cannot use, by their place in `claims`
    unavailable: dict[int, None] = field(default_factory=dict)
    #: what was decided, by the place in `claims`
    decided: dict[int, AllocationResult] = field(default_factory=dict)
    #: the claims that were reserved for the pod in this attempt, by their place in `claims`
    written: dict[int, None] = field(default_factory=dict)

    def copy(self) -> PodClaimState:
        return self

    @property
    def allocated(self) -> list[tuple[int, ResourceClaim, AllocationResult]]:
        """The claims that are allocated, with their place in `claims`."""
        return [
            (place, claim, claim.status.allocation)
            for place, claim in enumerate(self.claims)
            if claim.status.allocation is not None
        ]

    @property
    def has_alternatives(self) -> bool:
        """Whether a claim that is to be allocated has alternatives, of which some are better than others."""
        return any(
            request.first_available
            for place in self.unallocated
            for request in self.claims[place].spec.devices.requests
        )


class PodClaimFinder:
    """Finds the claims of pods for one profile."""

    def __init__(
        self,
        listers: Listers,
        tracker: ClaimTracker,
        slices: SliceTracker,
        expressions: DeviceExpressions,
        features: AllocatorFeatures,
    ) -> None:
        self._listers: Final = listers
        self._tracker: Final = tracker
        self._slices: Final = slices
        self._expressions: Final = expressions
        self._features: Final = features

    def claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Return the claims of a pod. `ClaimReferenceError`: one is missing, or not for this pod."""
        found: list[ResourceClaim] = []
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            if name is None:
                continue
            claim = self._tracker.get(name, pod.metadata.namespace)
            if claim is None:
                raise ClaimReferenceError(f'resourceclaim.resource.k8s.io "{name}" not found')
            check_claim(claim, pod, reference)
            found.append(claim)
        return found

    def state_of(self, pod: Pod) -> PodClaimState | Status | None:
        """Return what the filter needs; None: the pod has no claims after all; a `Status`: why it cannot be tried."""
        try:
            claims = self.claims_of(pod)
        except ClaimReferenceError as error:
            return unresolvable(str(error))
        if not claims:
            return None
        unallocated = tuple(place for place, claim in enumerate(claims) if claim.status.allocation is None)
        inventory = self._slices.inventory()
        if not unallocated:
            return PodClaimState(claims, (), inventory, None)
        wanted = [claims[place] for place in unallocated]
        for claim in wanted:
            if self._tracker.is_in_flight(claim):
                name = full_claim_name(claim)
                return unresolvable(f"resource claim {name} is in the process of being allocated")
            fault = self._fault(claim)
            if fault is not None:
                return fault
        allocator = PodAllocator(
            wanted,
            inventory=inventory,
            in_use=self._tracker.in_use,
            classes=self.device_class,
            expressions=self._expressions,
            features=self._features,
        )
        key = (
            self._listers.version(DeviceClass),
            *(codec.encode(claim.spec) for claim in wanted),
        )
        return PodClaimState(claims, unallocated, inventory, allocator, key)

    def device_class(self, name: str) -> DeviceClass | None:
        return self._listers.get(DeviceClass, name)

    def _fault(self, claim: ResourceClaim) -> Status | None:
        for request in claim.spec.devices.requests:
            names = _classes_of(request)
            if not names:
                text = (
                    f"resource claim {full_claim_name(claim)}, request {request.name}: unknown request type"
                )
                return unresolvable(text)
            for of_request, name in names:
                if not name:
                    return failed(f"request {of_request}: unsupported request type")
                if self.device_class(name) is None:
                    return unresolvable(f"request {of_request}: device class {name} does not exist")
        return None


def _classes_of(request: DeviceRequest) -> Sequence[tuple[str, str]]:
    """Return (request, class) of a request and its alternatives."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]


def class_names_of(claim: ResourceClaim) -> set[str]:
    """Return the names of the classes that a claim asks for."""
    return {name for request in claim.spec.devices.requests for _, name in _classes_of(request)}
