"""What all profiles of a scheduler know of devices: one state, so that no device is given away twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.expressions import DeviceExpressions
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.plugins.dra.cel_expressions import CelDeviceExpressions
from nodeward.scheduler.plugins.dra.claim_tracker import ClaimTracker
from nodeward.scheduler.plugins.dra.node_fits import KnownFits
from nodeward.scheduler.plugins.dra.slice_tracker import SliceTracker

_SHARED: Final = "DynamicResources"


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The claims, slices and answers of one scheduler."""

    claims: ClaimTracker
    slices: SliceTracker
    fits: KnownFits
    expressions: DeviceExpressions

    @staticmethod
    def of(context: PluginContext, features: AllocatorFeatures) -> DeviceState:
        """Return the state that the profiles share; the first one that asks makes it."""
        found = context.shared.get(_SHARED)
        if not isinstance(found, DeviceState):
            found = context.shared[_SHARED] = DeviceState(
                ClaimTracker(context.listers, shares=features.consumable_capacity),
                SliceTracker(context.listers, features, rules=context.gates.enabled("DRADeviceTaintRules")),
                KnownFits(),
                CelDeviceExpressions(),
            )
        return found
