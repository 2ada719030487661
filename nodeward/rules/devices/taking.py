"""Devices taken on trial during one search on one node, and everything that can forbid taking one.

`TrialDevices.take` checks a device against what is in use, what was taken before it, counters, taints, constraints and
capacity, and what its slice says of node operations (KEP-5945); `undo` takes back the device that was taken last. A
refused device leaves everything as it was.

Called by `search.py`; calls `constraints`, `counters`, `capacity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import DeviceTaint
from nodeward.base.quantity import Quantity
from nodeward.rules.devices.allocator_features import AllocatorFeatures, NodeOperations
from nodeward.rules.devices.capacity import CapacityError, consumed_capacity, fits_capacity
from nodeward.rules.devices.constraints import ClaimConstraint
from nodeward.rules.devices.counters import PoolCounters
from nodeward.rules.devices.device_id import DeviceID, PoolID
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import PoolDevice, VisiblePool
from nodeward.rules.devices.node_operations import can_skip
from nodeward.rules.devices.requests import RequestToAllocate
from nodeward.rules.taints import blocking_taint


class DeviceCheck(Enum):
    """What a device is checked against before it is taken; whoever explains a refusal asks which."""

    FREE = "free"
    NODE_OPERATIONS = "node operations"
    COUNTERS = "counters"
    TAINTS = "taints"
    CONSTRAINTS = "constraints"
    CAPACITY = "capacity"


class NodeOperationsRefusal(Enum):
    """Why devices were passed over for what their slice says of node operations."""

    #: the scheduler's gate is off
    DISABLED = "disabled"
    #: the node does not declare the feature
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True, eq=False)
class ChosenDevice:
    """A device that a claim gets for a request."""

    request: RequestToAllocate
    device: PoolDevice
    is_share: bool
    #: what the share takes of each capacity
    consumed: dict[str, Quantity]


@dataclass(slots=True)
class Trial:
    """What taking one device changed."""

    claim: int
    request: RequestToAllocate
    device: PoolDevice
    pool: VisiblePool
    has_counters: bool = False
    constraints: int = 0
    is_share: bool = False
    is_recorded: bool = False


class TrialDevices:
    """The devices taken so far. Claims are known by their number."""

    def __init__(
        self,
        node: Node,
        constraints: Sequence[Sequence[ClaimConstraint]],
        names: Sequence[str],
        in_use: DevicesInUse,
        features: AllocatorFeatures,
    ) -> None:
        """`constraints` and `names` are those of each claim."""
        self._constraints: Final = constraints
        self._names: Final = names
        self._in_use: Final = in_use
        self._features: Final = features
        self._declared: Final = frozenset(node.status.declared_features)
        #: the claims that get a device whole
        self._whole: Final[dict[DeviceID, set[int]]] = {}
        #: nanos per capacity of each new share of a device
        self._shares: Final[dict[DeviceID, list[dict[str, int]]]] = {}
        self._counters: Final[dict[PoolID, PoolCounters]] = {}
        self.chosen: Final[list[list[ChosenDevice]]] = [[] for _ in names]
        self.refusals: Final[set[NodeOperationsRefusal]] = set()
        #: after a refusal: the check that the device failed
        self.failed = DeviceCheck.FREE
        #: after a refusal because of them: the taint, and the place of the constraint in the claim
        self.blocking: DeviceTaint | None = None
        self.violated = 0

    def is_free(self, claim: int, request: RequestToAllocate, device: PoolDevice) -> bool:
        """Tell whether nobody has the device whole. Admin access minds only the claim itself."""
        takers = self._whole.get(device.id)
        if request.admin_access:
            return not takers or claim not in takers
        return not takers and device.id not in self._in_use.devices

    def has_capacity(self, claim: int, request: RequestToAllocate, device: PoolDevice) -> bool:
        """Tell whether the device has the capacity that is asked for, beside what its shares take."""
        if not self._features.consumable_capacity:
            return True
        try:
            return fits_capacity(
                request.capacity,
                device.device.capacity,
                self._in_use.capacity_of(device.id),
                *self._shares.get(device.id, ()),
                fractional=self._features.fractional_capacity_range,
            )
        except CapacityError as error:
            where = f"claim {self._names[claim]}, request {request.name}"
            raise AllocationError(f"{where}: checking capacity for device {device.id}: {error}") from None

    def take(
        self,
        claim: int,
        request: RequestToAllocate,
        device: PoolDevice,
        pool: VisiblePool,
        *,
        is_required: bool,
    ) -> Trial | None:
        """Take a device that the request selects and that has the capacity; None: it cannot be had.

        `is_required`: the request fails without it; a constraint against it is then an error.
        """
        if not self.is_free(claim, request, device):
            self.failed = DeviceCheck.FREE
            return None
        if not self._may_skip_operations(device):
            self.failed = DeviceCheck.NODE_OPERATIONS
            return None
        is_share = device.allows_many and self._features.consumable_capacity
        trial = Trial(claim, request, device, pool, is_share=is_share)
        if device.consumes and not self._take_counters(trial):
            self.failed = DeviceCheck.COUNTERS
            return None
        if device.taints and self._features.device_taints:
            numeric = self._features.numeric_tolerations
            self.blocking = blocking_taint(device.taints, request.tolerations, numeric=numeric)
            if self.blocking is not None:
                self.failed = DeviceCheck.TAINTS
                self.undo(trial)
                return None
        if not self._obeys_constraints(trial, is_required=is_required):
            self.failed = DeviceCheck.CONSTRAINTS
            return None
        if is_required and not self.has_capacity(claim, request, device):
            self.failed = DeviceCheck.CAPACITY
            self.undo(trial)
            return None
        self._record(trial)
        return trial

    def undo(self, trial: Trial) -> None:
        """Take back the device that was taken last."""
        device = trial.device
        if trial.is_recorded:
            self.chosen[trial.claim].pop()
            if trial.is_share:
                shares = self._shares[device.id]
                shares.pop()
                if not shares:
                    del self._shares[device.id]
            else:
                self._whole[device.id].discard(trial.claim)
        for constraint in reversed(self._constraints[trial.claim][: trial.constraints]):
            constraint.remove(trial.request)
        if trial.has_counters:
            self._counters[trial.pool.id].give_back(device)

    def _may_skip_operations(self, device: PoolDevice) -> bool:
        operations = device.slice.spec.skip_node_operations
        if not operations or self._features.node_operations is NodeOperations.UNKNOWN:
            return True
        if self._features.node_operations is NodeOperations.REFUSED:
            self.refusals.add(NodeOperationsRefusal.DISABLED)
            return False
        if can_skip(operations, self._declared):
            return True
        self.refusals.add(NodeOperationsRefusal.UNDECLARED)
        return False

    def _take_counters(self, trial: Trial) -> bool:
        if not self._features.partitionable_devices:
            return False
        device, pool = trial.device, trial.pool
        if trial.is_share and (device.id in self._in_use.shares or device.id in self._shares):
            # The first share has taken the counters.
            return True
        counters = self._counters.get(pool.id)
        if counters is None:
            counters = PoolCounters(pool, self._in_use, groups=self._features.compatibility_groups)
            self._counters[pool.id] = counters
        trial.has_counters = counters.take(device)
        return trial.has_counters

    def _obeys_constraints(self, trial: Trial, *, is_required: bool) -> bool:
        request, device = trial.request, trial.device
        for constraint in self._constraints[trial.claim]:
            if not constraint.add(request, device):
                self.violated = trial.constraints
                self.undo(trial)
                if is_required:
                    where = f"claim {self._names[trial.claim]}, request {request.name}"
                    why = "because a claim constraint would not be satisfied"
                    raise AllocationError(f"{where}: cannot add device {device.id} {why}")
                return False
            trial.constraints += 1
        return True

    def _record(self, trial: Trial) -> None:
        device, request = trial.device, trial.request
        consumed: dict[str, Quantity] = {}
        if trial.is_share:
            fractional = self._features.fractional_capacity_range
            consumed = consumed_capacity(request.capacity, device.device.capacity, fractional=fractional)
            amounts = {name: amount.nanos for name, amount in consumed.items()}
            self._shares.setdefault(device.id, []).append(amounts)
        else:
            self._whole.setdefault(device.id, set()).add(trial.claim)
        self.chosen[trial.claim].append(ChosenDevice(request, device, trial.is_share, consumed))
        trial.is_recorded = True
