"""Devices: taints carry the time they were set, and claims forget the status of devices they no longer have."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.api.defaults.resource import date_taints
from nodeward.api.resource_v1 import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
)
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import METADATA_PATHS, Paths, Strategy


class Tainting(Strategy):
    """The server says when a taint was set, where the driver does not."""

    counts_generations: ClassVar[bool] = True
    status_reset: ClassVar[Paths] = METADATA_PATHS

    def prepare_create(self, obj: Any, env: Environment) -> None:
        super().prepare_create(obj, env)
        date_taints(obj, env.now())

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        date_taints(new, env.now())
        super().prepare_update(new, old, env)


class DeviceTaintRules(Tainting):
    allows_unconditional_update: ClassVar[bool] = False

    def prepare_update(self, new: DeviceTaintRule, old: DeviceTaintRule, env: Environment) -> None:
        """The time is that of the effect: it starts again with another effect, unless the client says a time."""
        mine, theirs = new.spec.taint, old.spec.taint
        if mine.effect != theirs.effect and mine.time_added == theirs.time_added:
            mine.time_added = env.now()
        super().prepare_update(new, old, env)


class ResourceSlices(Tainting):
    answers_deleted: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.nodeName", "spec.driver", "spec.pool.name")


class ResourceClaims(Strategy):
    answers_deleted: ClassVar[bool] = True
    status_reset: ClassVar[Paths] = METADATA_PATHS

    def prepare_status(self, new: ResourceClaim, old: ResourceClaim, env: Environment) -> None:
        super().prepare_status(new, old, env)
        gone = _allocated(old) - _allocated(new)
        if gone:
            # Who takes a device away need not know what its driver had to say about it.
            new.status.devices = [each for each in new.status.devices if _identity(each) not in gone]


def _allocated(claim: ResourceClaim) -> set[tuple[str, str, str, str | None]]:
    allocation = claim.status.allocation
    return {_identity(each) for each in allocation.devices.results} if allocation is not None else set()


def _identity(
    device: AllocatedDeviceStatus | DeviceRequestAllocationResult,
) -> tuple[str, str, str, str | None]:
    return device.driver, device.pool, device.device, device.share_id
