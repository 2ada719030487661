"""ResourceSlices as the allocator sees them: with the taints of DeviceTaintRules, kept up to date when asked.

Shared by the profiles of a scheduler. A slice that did not change keeps its devices and what selectors said of them.
"""

from __future__ import annotations

from nodeward.api.resource_v1 import DeviceTaintRule, ResourceSlice
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.inventory import Inventory, SliceDevices
from nodeward.rules.devices.taint_rules import with_taint_rules
from nodeward.scheduler.framework.listers import Listers


class SliceTracker:
    """All slices of one scheduler."""

    def __init__(self, listers: Listers, features: AllocatorFeatures, *, rules: bool) -> None:
        """`rules`: DeviceTaintRules count (DRADeviceTaintRules)."""
        self._listers = listers
        self._features = features
        self._uses_rules = rules
        self._versions: tuple[int, int] | None = None
        #: by name: the slice as it was told, and its devices
        self._known: dict[str, tuple[ResourceSlice, SliceDevices]] = {}
        self._inventory = Inventory((), features)

    def inventory(self) -> Inventory:
        """Return the pools as they are now; the same object until something changes."""
        rules = self._listers.version(DeviceTaintRule) if self._uses_rules else 0
        versions = self._listers.version(ResourceSlice), rules
        if versions != self._versions:
            self._refresh(is_all_new=self._versions is None or self._versions[1] != rules)
            self._versions = versions
        return self._inventory

    def _refresh(self, *, is_all_new: bool) -> None:
        rules: list[DeviceTaintRule] = []
        if self._uses_rules:
            rules = sorted(self._listers.list(DeviceTaintRule), key=lambda rule: rule.metadata.name)
        found: dict[str, tuple[ResourceSlice, SliceDevices]] = {}
        for each in self._listers.list(ResourceSlice):
            known = self._known.get(each.metadata.name)
            if known is None or is_all_new or known[0] is not each:
                known = each, SliceDevices(with_taint_rules(each, rules))
            found[each.metadata.name] = known
        self._known = found
        self._inventory = Inventory([devices for _, devices in found.values()], self._features)
