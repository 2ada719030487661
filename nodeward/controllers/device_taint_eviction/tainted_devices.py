"""Which devices have NoExecute taints, from ResourceSlices and DeviceTaintRules, and until when a claim tolerates them.

Of a pool only the slices of its newest generation count. A rule's taint is on every device it selects, also if no
slice shows the device any more. A toleration protects from eviction only if its effect is explicitly NoExecute; the
shortest of the matching times counts, from when the taint was added, so that a restart changes nothing.

What must stay true: what is kept is in proportion to slices and tainted devices, not to all devices.

Called by `controller` and `rule_status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from nodeward.api.resource_v1 import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.rules.devices.taint_rules import selects_device
from nodeward.rules.taints import NO_EXECUTE
from nodeward.rules.tolerations import tolerates


class PoolId(NamedTuple):
    driver: str
    pool: str


@dataclass(frozen=True, slots=True)
class _SliceTaints:
    pool: PoolId
    generation: int
    #: by device; devices without NoExecute taints are left out
    taints: dict[str, list[DeviceTaint]]


class TaintedDevices:
    """The NoExecute taints of devices, kept up to date by who sees slices and rules."""

    def __init__(self) -> None:
        self.rules: dict[str, DeviceTaintRule] = {}
        self._slices: dict[str, _SliceTaints] = {}
        self._pools: dict[PoolId, dict[str, _SliceTaints]] = {}
        #: of the newest generation of each pool that has any
        self._tainted: dict[PoolId, dict[str, list[DeviceTaint]]] = {}

    def put_slice(self, slice_: ResourceSlice) -> list[tuple[PoolId, str]]:
        """Take a slice as it is now; return the devices whose taints have changed."""
        name, spec = slice_.metadata.name, slice_.spec
        pool = PoolId(spec.driver, spec.pool.name)
        before, found = self._slices.get(name), _SliceTaints(pool, spec.pool.generation, _evicting(slice_))
        if before == found:
            return []
        changed = self.remove_slice(name) if before is not None and before.pool != pool else []
        self._slices[name] = self._pools.setdefault(pool, {})[name] = found
        return changed + self._renew(pool)

    def remove_slice(self, name: str) -> list[tuple[PoolId, str]]:
        """Forget a slice; return the devices whose taints have changed."""
        before = self._slices.pop(name, None)
        if before is None:
            return []
        of_pool = self._pools[before.pool]
        del of_pool[name]
        if not of_pool:
            del self._pools[before.pool]
        return self._renew(before.pool)

    def _renew(self, pool: PoolId) -> list[tuple[PoolId, str]]:
        slices = self._pools.get(pool, {}).values()
        newest = max((each.generation for each in slices), default=0)
        now: dict[str, list[DeviceTaint]] = {}
        for each in slices:
            if each.generation == newest:
                now.update(each.taints)
        old = self._tainted.pop(pool, {})
        if now:
            self._tainted[pool] = now
        return [(pool, name) for name in {**old, **now} if old.get(name) != now.get(name)]

    def taints_of(self, result: DeviceRequestAllocationResult) -> Iterator[DeviceTaint]:
        """Return the NoExecute taints of an allocated device."""
        yield from self._tainted.get(PoolId(result.driver, result.pool), {}).get(result.device, ())
        for rule in self.rules.values():
            if selects_device(rule.spec.device_selector, result.driver, result.pool, result.device):
                yield rule.spec.taint

    def eviction_ns(self, claim: ResourceClaim, *, numeric: bool) -> int | None:
        """Return when the users of a claim have to go, as time of the day; None: they may stay."""
        if claim.status.allocation is None:
            return None
        return earliest(
            end_of_toleration(taint, result.tolerations, numeric=numeric)
            for result in claim.status.allocation.devices.results
            for taint in self.taints_of(result)
        )


def earliest(moments: Iterable[int | None]) -> int | None:
    """Return the first of the moments there are."""
    return min((each for each in moments if each is not None), default=None)


def end_of_toleration(
    taint: DeviceTaint, tolerations: Sequence[DeviceToleration], *, numeric: bool
) -> int | None:
    """Return until when a NoExecute taint is tolerated, at the earliest when it was added; None: for good."""
    seconds: list[int] = []
    for toleration in tolerations:
        if toleration.effect == NO_EXECUTE and tolerates(toleration, taint, numeric=numeric):
            if toleration.toleration_seconds is None:
                return None
            seconds.append(max(toleration.toleration_seconds, 0))
    added_ns = parse_rfc3339(taint.time_added) if taint.time_added is not None else 0
    return added_ns + min(seconds, default=0) * SECOND_NS


def rule_evicts(rule: DeviceTaintRule, claim: ResourceClaim, *, numeric: bool) -> bool:
    """Tell whether the rule's taint, with effect NoExecute, sooner or later evicts the users of a claim."""
    if claim.status.allocation is None:
        return False
    taint, wanted = replace(rule.spec.taint, effect=NO_EXECUTE), rule.spec.device_selector
    return any(
        selects_device(wanted, each.driver, each.pool, each.device)
        and end_of_toleration(taint, each.tolerations, numeric=numeric) is not None
        for each in claim.status.allocation.devices.results
    )


def _evicting(slice_: ResourceSlice) -> dict[str, list[DeviceTaint]]:
    found: dict[str, list[DeviceTaint]] = {}
    for device in slice_.spec.devices:
        taints = [each for each in device.taints if each.effect == NO_EXECUTE]
        if taints:
            found[device.name] = taints
    return found
