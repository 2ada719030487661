"""Counters that partitions of one piece of hardware share, and the groups that say which partitions go together.

`PoolCounters` follows one pool during one search: what is left after the devices that claims hold, on whatever node,
less what the devices tried so far take. With compatibility groups (DRADeviceCompatibilityGroups) devices that draw on
one counter set must have a group in common, or all have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import PoolDevice, VisiblePool

#: The groups common to all devices on a counter set. None: there is no device; empty: no device has a group.
CommonGroups: TypeAlias = "frozenset[str] | None"
#: Devices that claims hold already have groups, but none in common: no name of a group is empty, so nothing matches.
_NONE_IN_COMMON: Final = frozenset(("",))


class PoolCounters:
    """The counters of one pool. `take` and `give_back` come in pairs, the last taken first."""

    def __init__(self, pool: VisiblePool, in_use: DevicesInUse, *, groups: bool) -> None:
        self._uses_groups: Final = groups
        self._left: Final[Mapping[str, dict[str, int]]] = {
            name: dict(amounts) for name, amounts in pool.counters.items()
        }
        self._common: Final[dict[str, CommonGroups]] = {}
        #: what `_common` was before each device that was taken
        self._before: Final[list[tuple[tuple[str, CommonGroups], ...]]] = []
        for device in (*pool.devices, *pool.elsewhere):
            if in_use.is_held(device.id):
                self._subtract(device)
                for name, _, declared in device.consumes:
                    self._common[name] = _common(self._common.get(name), declared)
        # Whoever overdrew a counter: nothing more can be taken from the pool.
        self._is_overdrawn: Final = any(
            amount < 0 for amounts in self._left.values() for amount in amounts.values()
        )

    def take(self, device: PoolDevice) -> bool:
        """Take what the device consumes, or refuse it (False) and stay as before."""
        if self._is_overdrawn or (self._uses_groups and not self._admits(device)):
            return False
        self._subtract(device)
        if any(self._left[name][counter] < 0 for name, amounts, _ in device.consumes for counter in amounts):
            self._subtract(device, -1)
            return False
        self._before.append(tuple((name, self._common.get(name)) for name, _, _ in device.consumes))
        for name, _, declared in device.consumes:
            self._common[name] = _common(self._common.get(name), declared)
        return True

    def give_back(self, device: PoolDevice) -> None:
        """Undo the last `take`, which was for this device."""
        self._subtract(device, -1)
        for name, groups in reversed(self._before.pop()):
            self._common[name] = groups

    def _admits(self, device: PoolDevice) -> bool:
        running = dict(self._common)
        for name, _, declared in device.consumes:
            present = running.get(name)
            if present is not None and present != declared and not present & declared:
                return False
            running[name] = _common(present, declared)
        return True

    def _subtract(self, device: PoolDevice, times: int = 1) -> None:
        for name, amounts, _ in device.consumes:
            left = self._left.get(name, {})
            for counter, amount in amounts.items():
                if counter in left:
                    left[counter] -= times * amount


def _common(present: CommonGroups, declared: frozenset[str]) -> CommonGroups:
    if present is None:
        return declared
    return (present & declared or _NONE_IN_COMMON) if present and declared else present
