"""Strategies of DRA kinds: taints carry the time they were set; a claim drops the status of devices it lost."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.defaults.resource import date_taints
from nodeward.api.resource_v1 import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import METADATA_PATHS, Paths, Strategy
from nodeward.base.fielderror import FieldError, forbidden
from nodeward.base.fieldpath import ROOT, FieldPath

_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"


class Tainting(Strategy):
    """Sets the time of a device taint where the driver does not."""

    counts_generations: ClassVar[bool] = True
    status_reset: ClassVar[Paths] = METADATA_PATHS

    def set_times(self, obj: Any, now: str) -> None:
        date_taints(obj, now)


class DeviceTaintRules(Tainting):
    allows_unconditional_update: ClassVar[bool] = False

    def prepare_update(self, new: DeviceTaintRule, old: DeviceTaintRule, env: Environment) -> None:
        """Restart the taint's time when its effect changes, unless the client sets a time."""
        mine, theirs = new.spec.taint, old.spec.taint
        if mine.effect != theirs.effect and mine.time_added == theirs.time_added:
            mine.time_added = env.now()
        super().prepare_update(new, old, env)


class ResourceSlices(Tainting):
    answers_deleted: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("spec.nodeName", "spec.driver", "spec.pool.name")


class ResourceClaimTemplates(Strategy):
    answers_deleted: ClassVar[bool] = True

    def validate_create(self, obj: ResourceClaimTemplate, env: Environment) -> list[FieldError]:
        return _admin_faults(obj.spec.spec, obj.metadata.namespace, env) + super().validate_create(obj, env)


class ResourceClaims(Strategy):
    answers_deleted: ClassVar[bool] = True
    status_reset: ClassVar[Paths] = METADATA_PATHS

    def validate_create(self, obj: ResourceClaim, env: Environment) -> list[FieldError]:
        return _admin_faults(obj.spec, obj.metadata.namespace, env) + super().validate_create(obj, env)

    def validate_status(self, new: ResourceClaim, old: ResourceClaim, env: Environment) -> list[FieldError]:
        faults: list[FieldError] = []
        if _admin_result(old) is None and (position := _admin_result(new)) is not None:
            at = ROOT.child("status", "allocation", "devices", "results").index(position)
            faults = _admin_fault(at.child("adminAccess"), new.metadata.namespace, env)
        return faults + super().validate_status(new, old, env)

    def prepare_status(self, new: ResourceClaim, old: ResourceClaim, env: Environment) -> None:
        super().prepare_status(new, old, env)
        gone = _allocated(old) - _allocated(new)
        if gone:
            # A client that deallocates a device need not also remove the status its driver reported.
            new.status.devices = [each for each in new.status.devices if _identity(each) not in gone]


def _admin_faults(spec: ResourceClaimSpec, namespace: str, env: Environment) -> list[FieldError]:
    """Refuse admin access outside namespaces that an administrator has labelled for it."""
    for i, request in enumerate(spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            at = ROOT.child("spec", "devices", "requests").index(i).child("adminAccess")
            return _admin_fault(at, namespace, env)
    return []


def _admin_result(claim: ResourceClaim) -> int | None:
    """Return the index of the first device that is allocated with admin access; None: there is none."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else []
    return next((i for i, result in enumerate(results) if result.admin_access), None)


def _admin_fault(at: FieldPath, namespace: str, env: Environment) -> list[FieldError]:
    found = env.peek(Namespace, namespace)
    if found is not None and found.metadata.labels.get(_ADMIN_LABEL) == "true":
        return []
    detail = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
    return [forbidden(at, detail)]


def _allocated(claim: ResourceClaim) -> set[tuple[str, str, str, str | None]]:
    allocation = claim.status.allocation
    return {_identity(each) for each in allocation.devices.results} if allocation is not None else set()


def _identity(
    device: AllocatedDeviceStatus | DeviceRequestAllocationResult,
) -> tuple[str, str, str, str | None]:
    return device.driver, device.pool, device.device, device.share_id
