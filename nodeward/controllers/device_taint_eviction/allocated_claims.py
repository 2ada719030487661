"""Claims by the devices they have been allocated, from the informer that all controllers share.

Called by `controller` and `rule_status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceTaintSelector, ResourceClaim
from nodeward.machinery.informer import Informer, InformerFactory
from nodeward.rules.devices.taint_rules import selects_device, selects_pool

_BY_DEVICE: Final = "allocated devices"
_BY_POOL: Final = "pools of allocated devices"


class AllocatedClaims:
    def __init__(self, informers: InformerFactory) -> None:
        self.informer: Final[Informer[ResourceClaim]] = informers.informer(ResourceClaim)
        self.informer.add_index(_BY_DEVICE, _device_keys)
        self.informer.add_index(_BY_POOL, _pool_keys)

    def with_device(self, driver: str, pool: str, device: str) -> Sequence[ResourceClaim]:
        return self.informer.by_index(_BY_DEVICE, _key(driver, pool, device))

    def selected(self, wanted: DeviceTaintSelector | None) -> Iterator[ResourceClaim]:
        """Return the claims with a device that a rule selects, each as often as it has pools of such devices."""
        for key in [*self.informer.index_values(_BY_POOL)]:
            if not selects_pool(wanted, *key.split("/", 1)):
                continue
            for claim in self.informer.by_index(_BY_POOL, key):
                if any(selects_device(wanted, *each) for each in allocated_devices(claim)):
                    yield claim


def users(claim: ResourceClaim, pods: Informer[Pod]) -> Iterator[Pod]:
    """Return the pods that the claim is reserved for, of those that are known."""
    for user in claim.status.reserved_for:
        if not user.api_group and user.resource == "pods":
            pod = pods.get(user.name, claim.metadata.namespace)
            if pod is not None and pod.metadata.uid == user.uid:
                yield pod


def allocated_devices(claim: ResourceClaim) -> list[tuple[str, str, str]]:
    """Return driver, pool and name of the devices of a claim."""
    if claim.status.allocation is None:
        return []
    return [(each.driver, each.pool, each.device) for each in claim.status.allocation.devices.results]


def _key(*parts: str) -> str:
    # The names of drivers and devices have no slash; that of a pool may have some.
    return "/".join(parts)


def _device_keys(claim: ResourceClaim) -> Iterable[str]:
    return dict.fromkeys(_key(*each) for each in allocated_devices(claim))


def _pool_keys(claim: ResourceClaim) -> Iterable[str]:
    return dict.fromkeys(_key(driver, pool) for driver, pool, _ in allocated_devices(claim))
