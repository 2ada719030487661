"""Which events are worth another try for a pod that waits for devices.

A claim of the pod's own that came or changed; devices that were released or published and that one of its requests
selects; a class it asks for; a node on which its claims can be allocated now, which includes one that declares a
feature it did not declare before (KEP-5945). Whatever cannot be decided here is worth a try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.device_id import DeviceID
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.expressions import DeviceExpressions, selects_device, selects_of_class
from nodeward.rules.devices.inventory import PoolDevice, SliceDevices
from nodeward.rules.devices.requests import RequestToAllocate, full_claim_name, requests_of
from nodeward.rules.resource_claims import ClaimReferenceError, known_claim_names
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
    WaitingPodIndex,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Status
from nodeward.scheduler.plugins.dra.pod_claims import PodClaimFinder, PodClaimState, class_names_of
from nodeward.scheduler.plugins.dra.slice_tracker import SliceTracker

_ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE
_NODE_ACTIONS: Final = (
    Action.ADD
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_ALLOCATABLE
    # Unlike upstream: a node that declares the feature now can take devices without a part on the node.
    | Action.UPDATE_NODE_DECLARED_FEATURE
)


def claim_key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


class ClaimHints:
    """The hints of one profile."""

    def __init__(
        self,
        finder: PodClaimFinder,
        slices: SliceTracker,
        expressions: DeviceExpressions,
        features: AllocatorFeatures,
        judge: Callable[[PodClaimState, Node], Status],
    ) -> None:
        """`judge`: what the filter says of one node."""
        self._finder = finder
        self._slices = slices
        self._expressions = expressions
        self._features = features
        self._judge = judge

    def lines(self) -> Sequence[ClusterEventWithHint]:
        """Return what the plugin registers."""
        by_claim = WaitingPodIndex(_claim_keys_of_pod, _claim_keys_of_event)
        own = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        return (
            ClusterEventWithHint(ClusterEvent(Resource.NODE, _NODE_ACTIONS), self.after_node),
            ClusterEventWithHint(ClusterEvent(ResourceClaim, Action.ALL), self.after_claim, by_claim),
            ClusterEventWithHint(own, self.after_pod),
            ClusterEventWithHint(ClusterEvent(DeviceClass, _ADD_OR_UPDATE), self.after_class),
            ClusterEventWithHint(ClusterEvent(ResourceSlice, _ADD_OR_UPDATE), self.after_slice),
            ClusterEventWithHint(
                ClusterEvent(DeviceTaintRule, Action.UPDATE | Action.DELETE), self.after_rule
            ),
        )

    def after_pod(self, pod: PodView, old: Pod, new: Pod) -> QueueingHint:
        """The claims generated for the pod were told to it."""
        return _hint(self._claims(new) is not None)

    def after_claim(self, pod: PodView, old: ResourceClaim | None, new: ResourceClaim | None) -> QueueingHint:
        claims = self._claims(pod.pod)
        if claims is None:
            return QueueingHint.SKIP
        is_own = new is not None and any(each.metadata.uid == new.metadata.uid for each in claims)
        if old is not None and old.status.allocation is not None and _is_released(old, new):
            results = old.status.allocation.devices.results
            freed = [DeviceID(each.driver, each.pool, each.device) for each in results]
            return _hint(is_own or self._helps(claims, freed))
        if not is_own or new is None:
            return QueueingHint.SKIP
        return _hint(old is None or old.status != new.status)

    def after_class(self, pod: PodView, old: DeviceClass | None, new: DeviceClass) -> QueueingHint:
        if old is not None and old.spec == new.spec:
            return QueueingHint.SKIP
        claims = self._unallocated(pod.pod)
        return _hint(any(new.metadata.name in class_names_of(claim) for claim in claims))

    def after_slice(self, pod: PodView, old: ResourceSlice | None, new: ResourceSlice) -> QueueingHint:
        if old is not None and old.spec == new.spec:
            return QueueingHint.SKIP
        claims = self._unallocated(pod.pod)
        if not claims:
            return QueueingHint.SKIP
        if new.spec.pool.resource_slice_count > 1 or new.spec.shared_counters:
            # The slice may complete a pool, whose other slices have the devices.
            return QueueingHint.QUEUE
        return _hint(self._selects_one(claims, SliceDevices(new).devices))

    def after_rule(self, pod: PodView, old: DeviceTaintRule, new: DeviceTaintRule | None) -> QueueingHint:
        """A taint was taken away, or changed."""
        if new is not None and old.spec == new.spec:
            return QueueingHint.SKIP
        return _hint(bool(self._unallocated(pod.pod)))

    def after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        state = self._finder.state_of(pod.pod)
        if not isinstance(state, PodClaimState):
            return QueueingHint.SKIP
        return _hint(not self._judge(state, new).is_rejected)

    # -- what claims need

    def _claims(self, pod: Pod) -> list[ResourceClaim] | None:
        """Return the claims of a pod; None: it cannot be tried with them as they are."""
        try:
            return self._finder.claims_of(pod)
        except ClaimReferenceError:
            return None

    def _unallocated(self, pod: Pod) -> list[ResourceClaim]:
        return [claim for claim in self._claims(pod) or () if claim.status.allocation is None]

    def _helps(self, claims: Iterable[ResourceClaim], freed: Iterable[DeviceID]) -> bool:
        wanting = [claim for claim in claims if claim.status.allocation is None]
        if not wanting:
            return False
        inventory = self._slices.inventory()
        devices = [inventory.device(each) for each in freed]
        # A partition gives counters back that its siblings may need.
        if any(device is not None and device.consumes for device in devices):
            return True
        return self._selects_one(wanting, [device for device in devices if device is not None])

    def _selects_one(self, claims: Iterable[ResourceClaim], devices: Sequence[PoolDevice]) -> bool:
        for owner, request in self._requests(claims):
            for device in devices:
                try:
                    if selects_of_class(self._expressions, request.device_class, device) and selects_device(
                        self._expressions, request.selectors, device, owner
                    ):
                        return True
                except AllocationError:
                    return True
        return False

    def _requests(self, claims: Iterable[ResourceClaim]) -> Iterator[tuple[str, RequestToAllocate]]:
        for claim in claims:
            for request in requests_of(claim, self._finder.device_class, self._features):
                for each in request.alternatives:
                    if isinstance(each, RequestToAllocate):
                        yield f"claim {full_claim_name(claim)}", each


def _hint(is_worth_it: bool) -> QueueingHint:
    return QueueingHint.QUEUE if is_worth_it else QueueingHint.SKIP


def _is_released(old: ResourceClaim, new: ResourceClaim | None) -> bool:
    return new is None or new.status.allocation is None or new.metadata.uid != old.metadata.uid


def _claim_keys_of_pod(pod: PodView) -> Sequence[str]:
    if not pod.pod.spec.resource_claims:
        return ()
    return [claim_key(pod.namespace, name) for name in known_claim_names(pod.pod)]


def _claim_keys_of_event(old: ResourceClaim | None, new: ResourceClaim | None) -> Sequence[str] | None:
    if old is not None and old.status.allocation is not None and _is_released(old, new):
        # Devices that are released may help any pod.
        return None
    about = new if new is not None else old
    return [claim_key(about.metadata.namespace, about.metadata.name)] if about is not None else ()
