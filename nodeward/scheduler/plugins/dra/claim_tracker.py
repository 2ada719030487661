"""ResourceClaims as they will be: what the API told, what was written and not told yet, and what is being decided.

`ClaimTracker` is shared by the profiles of a scheduler. It counts which devices are in use, claim by claim, and logs
the pools in which that changed, so that answers about other pools stay good. A claim whose allocation was decided and
is not written yet is in flight: its devices are in use, and no other pod can use it.

What must stay true: the devices in use are those of the newest state known of each claim, each counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nodeward.api.resource_v1 import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from nodeward.rules.devices.device_id import PoolID
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.scheduler.framework.listers import Listers

#: Entries of the log that are kept at least.
_KEPT: Final = 4096


class PoolLog:
    """The pools in which devices were taken or released, in order; of bounded length."""

    def __init__(self) -> None:
        self._pools: list[PoolID] = []
        self._first = 0

    @property
    def version(self) -> int:
        return self._first + len(self._pools)

    def add(self, pools: Iterable[PoolID]) -> None:
        self._pools.extend(pools)
        if len(self._pools) > 2 * _KEPT:
            self._first += len(self._pools) - _KEPT
            del self._pools[:-_KEPT]

    def since(self, version: int) -> Sequence[PoolID] | None:
        """Return the pools that changed after a version; None: too many to know."""
        return self._pools[version - self._first :] if version >= self._first else None


class ClaimTracker:
    """All claims of one scheduler."""

    def __init__(self, listers: Listers, *, shares: bool) -> None:
        """`shares`: devices can be shared (DRAConsumableCapacity)."""
        self._listers = listers
        self._shares = shares
        self.in_use: Final = DevicesInUse()
        self.log: Final = PoolLog()
        #: results that are counted in `in_use`, by claim uid
        self._counted: dict[str, Sequence[DeviceRequestAllocationResult]] = {}
        #: allocations that are not written yet, by claim uid
        self._in_flight: dict[str, AllocationResult] = {}
        #: claims as they were written, until the API tells of them
        self._written: dict[tuple[str, str], ResourceClaim] = {}
        for claim in listers.list(ResourceClaim):
            self._on_change(None, claim)
        listers.tell(ResourceClaim, self._on_change)

    def get(self, name: str, namespace: str) -> ResourceClaim | None:
        """Return the newest state known of a claim."""
        known = self._listers.get(ResourceClaim, name, namespace)
        written = self._written.get((namespace, name))
        return written if known is not None and written is not None else known

    def is_in_flight(self, claim: ResourceClaim) -> bool:
        """Tell whether an allocation of the claim was decided and is not written yet."""
        return claim.metadata.uid in self._in_flight

    def reserve(self, claim: ResourceClaim, allocation: AllocationResult) -> None:
        """Count an allocation that was decided."""
        uid = claim.metadata.uid
        self._in_flight[uid] = allocation
        self._count(uid, allocation.devices.results)

    def release(self, claim: ResourceClaim) -> None:
        """Forget a decision: it was written, or given up. Nothing happens if there is none."""
        meta = claim.metadata
        if self._in_flight.pop(meta.uid, None) is not None:
            newest = self.get(meta.name, meta.namespace)
            self._count(
                meta.uid, _results(newest if newest is not None and newest.metadata.uid == meta.uid else None)
            )

    def assume(self, written: ResourceClaim) -> None:
        """Remember what the API answered to a write, until it tells of that or something newer."""
        meta = written.metadata
        known = self._listers.get(ResourceClaim, meta.name, meta.namespace)
        if known is None or known.metadata.uid != meta.uid or not _is_newer(written, known):
            return
        self._written[meta.namespace, meta.name] = written
        if meta.uid not in self._in_flight:
            self._count(meta.uid, _results(written))

    def _on_change(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._written.pop((old.metadata.namespace, old.metadata.name), None)
            if old.metadata.uid not in self._in_flight:
                self._count(old.metadata.uid, ())
        if new is None:
            return
        key = new.metadata.namespace, new.metadata.name
        written = self._written.get(key)
        if written is not None:
            if written.metadata.uid == new.metadata.uid and _is_newer(written, new):
                return
            del self._written[key]
        if new.metadata.uid not in self._in_flight:
            self._count(new.metadata.uid, _results(new))

    def _count(self, uid: str, results: Sequence[DeviceRequestAllocationResult]) -> None:
        before = self._counted.get(uid, ())
        if before == results:
            return
        self.in_use.remove(before, shared=self._shares)
        self.in_use.add(results, shared=self._shares)
        if results:
            self._counted[uid] = results
        else:
            self._counted.pop(uid, None)
        self.log.add(dict.fromkeys(PoolID(each.driver, each.pool) for each in (*before, *results)))


def _results(claim: ResourceClaim | None) -> Sequence[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation if claim is not None else None
    return allocation.devices.results if allocation is not None else ()


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    mine, theirs = one.metadata.resource_version, other.metadata.resource_version
    return mine.isdecimal() and theirs.isdecimal() and int(mine) > int(theirs)
