"""Devices that claims hold: whole devices, and shares of devices that allow several allocations.

`DevicesInUse` is filled from the allocation results of claims; the scheduler adds what it decided and has not written
yet. A device held with admin access is not in use by it. Amounts are nanos (`Quantity.nanos`), so sums are exact.
What must stay true: `remove` undoes exactly one `add` of the same results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.rules.devices.device_id import DeviceID


class DevicesInUse:
    """What is taken, over all claims."""

    __slots__ = ("capacity", "devices", "shares")

    def __init__(self) -> None:
        #: devices that belong to claims whole, with the number of claims: more than one only when an API was misused
        self.devices: Final[dict[DeviceID, int]] = {}
        #: devices of which claims hold shares, with their number
        self.shares: Final[dict[DeviceID, int]] = {}
        #: nanos of each capacity that shares take together
        self.capacity: Final[dict[DeviceID, dict[str, int]]] = {}

    def is_held(self, device: DeviceID) -> bool:
        """Tell whether a claim holds the device or a share of it."""
        return device in self.devices or device in self.shares

    def add(self, results: Iterable[DeviceRequestAllocationResult], *, shared: bool = True) -> None:
        """Count what a claim got. `shared`: shares of devices are known (DRAConsumableCapacity)."""
        for device, result in _holding(results):
            if shared and result.share_id is not None:
                self.shares[device] = self.shares.get(device, 0) + 1
                self._add_capacity(device, result, 1)
            else:
                self.devices[device] = self.devices.get(device, 0) + 1

    def remove(self, results: Iterable[DeviceRequestAllocationResult], *, shared: bool = True) -> None:
        """Count no longer what was added."""
        for device, result in _holding(results):
            if shared and result.share_id is not None:
                _drop(self.shares, device)
                self._add_capacity(device, result, -1)
                if device not in self.shares:
                    self.capacity.pop(device, None)
            else:
                _drop(self.devices, device)

    def capacity_of(self, device: DeviceID) -> Mapping[str, int]:
        """Return the nanos of each capacity that shares of the device take."""
        return self.capacity.get(device, _NOTHING)

    def _add_capacity(self, device: DeviceID, result: DeviceRequestAllocationResult, times: int) -> None:
        if not result.consumed_capacity:
            return
        amounts = self.capacity.setdefault(device, {})
        for name, quantity in result.consumed_capacity.items():
            amounts[name] = amounts.get(name, 0) + times * quantity.nanos


_NOTHING: Final[Mapping[str, int]] = {}


def _holding(
    results: Iterable[DeviceRequestAllocationResult],
) -> Iterator[tuple[DeviceID, DeviceRequestAllocationResult]]:
    for result in results:
        if not result.admin_access:
            yield DeviceID(result.driver, result.pool, result.device), result


def _drop(counts: dict[DeviceID, int], device: DeviceID) -> None:
    left = counts.get(device, 0) - 1
    if left > 0:
        counts[device] = left
    else:
        counts.pop(device, None)
