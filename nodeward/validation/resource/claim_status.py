"""What the scheduler and drivers write into a claim: the devices it got, who uses it, how the devices are.

An allocation is written once; after that it can only be taken away.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.resource_v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.validation.checks import (
    Distinct,
    Fields,
    check_choice,
    check_count,
    check_distinct,
    check_each,
    check_present,
    check_qualified,
    most,
)
from nodeward.validation.core.endpoints_addresses import validate_interface_address
from nodeward.validation.meta.conditions import validate_conditions
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.resource.claim import (
    CONFIG_LIMIT,
    REQUESTS_LIMIT,
    RequestNames,
    claim_kind,
    validate_configuration,
)
from nodeward.validation.resource.names import (
    validate_driver_declared,
    validate_driver_name,
    validate_label,
    validate_list,
    validate_pool_declared,
    validate_pool_name,
    validate_raw_object,
    validate_set,
    validate_uuid,
)
from nodeward.validation.resource.taints import validate_device_toleration, validate_skipped

_STATUS: Final = ROOT.child("status")
_RESERVED_LIMIT: Final = 256
_CONDITIONS_LIMIT: Final = 8
_BINDING_LIMIT: Final = 4
_DATA_LIMIT: Final = 10 * 1024
_IPS_LIMIT: Final = 16
_INTERFACE_LIMIT: Final = 256
_HARDWARE_LIMIT: Final = 128

#: driver, pool, device, share
DeviceKey = tuple[str, str, str, str | None]


def _status(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> list[FieldError]:
    status, at = new.status, _STATUS.child("reservedFor")
    errors = validate_set(status.reserved_for, _RESERVED_LIMIT, _CONSUMER, lambda ref: ref.uid, at)
    errors += _devices(status)
    errors += _reserved(new, old, at)
    at = _STATUS.child("allocation")
    if status.allocation is not None and old.status.allocation is not None:
        if status.allocation != old.status.allocation:
            errors.append(invalid(at, None, "field cannot be modified once set"))
    elif status.allocation is not None:
        errors += _allocation(status.allocation, RequestNames(new.spec.devices), at, ctx)
    return errors


_CONSUMER: Final = Fields(
    ResourceClaimConsumerReference, resource=check_present, name=check_present, uid=check_present
)


def _reserved(new: ResourceClaim, old: ResourceClaim, path: FieldPath) -> list[FieldError]:
    if not new.status.reserved_for:
        return []
    if new.status.allocation is None:
        return [forbidden(path, "may not be specified when `allocated` is not set")]
    is_going = new.metadata.deletion_timestamp is not None
    if is_going and any(ref not in old.status.reserved_for for ref in new.status.reserved_for):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        return [forbidden(path, detail)]
    return []


def _devices(status: ResourceClaimStatus) -> list[FieldError]:
    results = status.allocation.devices.results if status.allocation else []
    allocated: set[DeviceKey] = {(r.driver, r.pool, r.device, r.share_id) for r in results}

    def key(item: AllocatedDeviceStatus) -> DeviceKey:
        return item.driver, item.pool, item.device, item.share_id

    path, keys = _STATUS.child("devices"), Distinct()
    errors = check_each(
        status.devices, path, lambda item, at: _device(item, at, is_allocated=key(item) in allocated)
    )
    return errors + check_each(status.devices, path, lambda item, at: keys.add(key(item), at, _shown(item)))


def _shown(device: AllocatedDeviceStatus) -> dict[str, str]:
    shown = {"driver": device.driver, "device": device.device, "pool": device.pool}
    return shown if device.share_id is None else {**shown, "shareID": device.share_id}


class _SharedDevice(msgspec.Struct):
    """How upstream knows a device that may be shared, and shows it."""

    driver: str
    pool: str
    device: str
    share_id: str = msgspec.field(name="ShareID")


def _device(device: AllocatedDeviceStatus, path: FieldPath, *, is_allocated: bool) -> list[FieldError]:
    errors = _DEVICE(device, path)
    if not is_allocated:
        shared = _SharedDevice(device.driver, device.pool, device.device, device.share_id or "")
        errors.append(invalid(path, shared, "must be an allocated device in the claim"))
    at = path.child("conditions")
    errors += check_count(device.conditions, at, _CONDITIONS_LIMIT)
    errors += validate_conditions(device.conditions, at)
    if device.data is not None:
        errors += validate_raw_object(device.data, path.child("data"), _DATA_LIMIT, is_stored=False)
    return errors + _network(device.network_data, path.child("networkData"))


_DEVICE: Final = Fields(
    AllocatedDeviceStatus,
    driver=validate_driver_name,
    pool=validate_pool_name,
    device=validate_label,
    share_id=validate_uuid,
)
_network: Final = Fields(
    NetworkDeviceData,
    interface_name=most(_INTERFACE_LIMIT),
    hardware_address=most(_HARDWARE_LIMIT),
    ips=lambda ips, path: validate_set(ips, _IPS_LIMIT, validate_interface_address, str, path),
)


def _allocation(
    allocation: AllocationResult, names: RequestNames, path: FieldPath, ctx: Context
) -> list[FieldError]:
    def result(item: DeviceRequestAllocationResult, at: FieldPath) -> list[FieldError]:
        return _result(item, names, at, ctx)

    def config(item: DeviceAllocationConfiguration, at: FieldPath) -> list[FieldError]:
        errors = check_choice(item.source, at.child("source"), ("FromClaim", "FromClass"))
        errors += validate_set(item.requests, REQUESTS_LIMIT, names.validate, str, at.child("requests"))
        return errors + validate_configuration(item.opaque, at, is_stored=False)

    devices, at = allocation.devices, path.child("devices")
    errors = validate_list(devices.results, REQUESTS_LIMIT, result, at.child("results"))
    errors += validate_list(devices.config, 2 * CONFIG_LIMIT, config, at.child("config"))
    if allocation.node_selector is not None:
        errors += validate_node_selector(allocation.node_selector, path.child("nodeSelector"))
    return errors


_RESULT: Final = Fields(
    DeviceRequestAllocationResult,
    driver=validate_driver_declared,
    pool=validate_pool_declared,
    device=validate_label,
)


def _result(
    result: DeviceRequestAllocationResult, names: RequestNames, path: FieldPath, ctx: Context
) -> list[FieldError]:
    errors = names.validate(result.request, path.child("request")) + _RESULT(result, path)
    errors += validate_binding_conditions(result.binding_conditions, result.binding_failure_conditions, path)
    for i, toleration in enumerate(result.tolerations):
        errors += validate_device_toleration(toleration, path.child("tolerations").index(i), ctx)
    errors += validate_uuid(result.share_id, path.child("shareID"))
    return errors + validate_skipped(result.skip_node_operations, None, path.child("skipNodeOperations"), ctx)


def validate_binding_conditions(
    conditions: list[str], failures: list[str], path: FieldPath
) -> list[FieldError]:
    """Conditions a binding waits for, and those that mean it failed: both or neither, and apart."""
    at, failures_at = path.child("bindingConditions"), path.child("bindingFailureConditions")
    errors = validate_list(conditions, _BINDING_LIMIT, check_qualified, at)
    errors += validate_list(failures, _BINDING_LIMIT, check_qualified, failures_at)
    errors += check_distinct(conditions, at)
    waited, seen = set(conditions), Distinct()
    for i, name in enumerate(failures):
        errors += seen.add(name, failures_at.index(i))
        if name in waited:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(failures_at.index(i), name, detail))
    if failures and not conditions:
        errors.append(invalid(at, None, "bindingConditions are required to use bindingFailureConditions"))
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(failures_at, None, detail))
    return errors


RESOURCE_CLAIM: Final = claim_kind(_status)
