"""Who has which device: the claims that hold a device or a share of it, and the pods those are reserved for.

Called by whoever shows or explains devices; the allocator itself only counts (`in_use`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodeward.api.resource_v1 import ResourceClaim
from nodeward.base.quantity import Quantity
from nodeward.rules.devices.device_id import DeviceID
from nodeward.rules.devices.requests import full_claim_name


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """A claim that has a device."""

    #: NAMESPACE/NAME
    claim: str
    request: str
    #: what the claim is reserved for: names of pods, or RESOURCE/NAME
    pods: tuple[str, ...] = ()
    #: the claim only watches the device: others can have it
    admin_access: bool = False
    #: empty: the claim has the device whole
    share_id: str = ""
    #: what the share takes of each capacity
    consumed: Mapping[str, Quantity] = field(default_factory=dict)


def holders_of(claims: Iterable[ResourceClaim]) -> dict[DeviceID, list[DeviceHolder]]:
    """Return the claims that have each device, in the order of their names."""
    found: dict[DeviceID, list[DeviceHolder]] = {}
    for claim in sorted(claims, key=full_claim_name):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        pods = tuple(
            each.name if each.resource == "pods" and not each.api_group else f"{each.resource}/{each.name}"
            for each in claim.status.reserved_for
        )
        for result in allocation.devices.results:
            holder = DeviceHolder(
                full_claim_name(claim),
                result.request,
                pods,
                bool(result.admin_access),
                result.share_id or "",
                result.consumed_capacity,
            )
            found.setdefault(DeviceID(result.driver, result.pool, result.device), []).append(holder)
    return found
