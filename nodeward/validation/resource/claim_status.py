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
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.validation.checks import check_count, check_size
from nodeward.validation.core.endpoints_addresses import validate_interface_address
from nodeward.validation.meta.conditions import validate_conditions
from nodeward.validation.meta.labels import validate_label_name
from nodeward.validation.meta.metadata import validate_metadata_update
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.resource.claim import (
    CONFIG_LIMIT,
    REQUESTS_LIMIT,
    RequestNames,
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


def status_claim(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> list[FieldError]:
    status = new.status
    errors = validate_metadata_update(new.metadata, old.metadata)
    at = _STATUS.child("reservedFor")
    errors += validate_set(status.reserved_for, _RESERVED_LIMIT, _consumer, lambda ref: ref.uid, at)
    errors += _devices(status)
    errors += _reserved(new, old, at)
    at = _STATUS.child("allocation")
    if status.allocation is not None and old.status.allocation is not None:
        if status.allocation != old.status.allocation:
            errors.append(invalid(at, None, "field cannot be modified once set"))
    elif status.allocation is not None:
        errors += _allocation(status.allocation, RequestNames(new.spec.devices), at, ctx)
    return errors


def _consumer(ref: ResourceClaimConsumerReference, path: FieldPath) -> list[FieldError]:
    fields = {"resource": ref.resource, "name": ref.name, "uid": ref.uid}
    return [required(path.child(field)) for field, value in fields.items() if not value]


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

    errors: list[FieldError] = []
    path = _STATUS.child("devices")
    for i, device in enumerate(status.devices):
        errors += _device(device, path.index(i), is_allocated=key(device) in allocated)
    seen: set[DeviceKey] = set()
    for i, device in enumerate(status.devices):
        if key(device) in seen:
            errors.append(duplicate(path.index(i), _shown(device)))
        seen.add(key(device))
    return errors


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
    errors = validate_driver_name(device.driver, path.child("driver"))
    errors += validate_pool_name(device.pool, path.child("pool"))
    errors += validate_label(device.device, path.child("device"))
    if device.share_id is not None:
        errors += validate_uuid(device.share_id, path.child("shareID"))
    if not is_allocated:
        shared = _SharedDevice(device.driver, device.pool, device.device, device.share_id or "")
        errors.append(invalid(path, shared, "must be an allocated device in the claim"))
    at = path.child("conditions")
    errors += check_count(device.conditions, at, _CONDITIONS_LIMIT)
    errors += validate_conditions(device.conditions, at)
    if device.data is not None:
        errors += validate_raw_object(device.data, path.child("data"), _DATA_LIMIT, is_stored=False)
    if device.network_data is not None:
        errors += _network(device.network_data, path.child("networkData"))
    return errors


def _network(data: NetworkDeviceData, path: FieldPath) -> list[FieldError]:
    errors = check_size(data.interface_name, path.child("interfaceName"), _INTERFACE_LIMIT)
    errors += check_size(data.hardware_address, path.child("hardwareAddress"), _HARDWARE_LIMIT)
    return errors + validate_set(data.ips, _IPS_LIMIT, validate_interface_address, str, path.child("ips"))


def _allocation(
    allocation: AllocationResult, names: RequestNames, path: FieldPath, ctx: Context
) -> list[FieldError]:
    def result(item: DeviceRequestAllocationResult, at: FieldPath) -> list[FieldError]:
        return _result(item, names, at, ctx)

    def config(item: DeviceAllocationConfiguration, at: FieldPath) -> list[FieldError]:
        errors = _source(item.source, at.child("source"))
        errors += validate_set(item.requests, REQUESTS_LIMIT, names.validate, str, at.child("requests"))
        return errors + validate_configuration(item.opaque, at, is_stored=False)

    devices, at = allocation.devices, path.child("devices")
    errors = validate_list(devices.results, REQUESTS_LIMIT, result, at.child("results"))
    errors += validate_list(devices.config, 2 * CONFIG_LIMIT, config, at.child("config"))
    if allocation.node_selector is not None:
        errors += validate_node_selector(allocation.node_selector, path.child("nodeSelector"))
    return errors


def _source(source: str, path: FieldPath) -> list[FieldError]:
    if not source:
        return [required(path)]
    known = ("FromClaim", "FromClass")
    return [] if source in known else [not_supported(path, source, known)]


def _result(
    result: DeviceRequestAllocationResult, names: RequestNames, path: FieldPath, ctx: Context
) -> list[FieldError]:
    errors = names.validate(result.request, path.child("request"))
    errors += validate_driver_declared(result.driver, path.child("driver"))
    errors += validate_pool_declared(result.pool, path.child("pool"))
    errors += validate_label(result.device, path.child("device"))
    errors += validate_binding_conditions(result.binding_conditions, result.binding_failure_conditions, path)
    for i, toleration in enumerate(result.tolerations):
        errors += validate_device_toleration(toleration, path.child("tolerations").index(i), ctx)
    if result.share_id is not None:
        errors += validate_uuid(result.share_id, path.child("shareID"))
    return errors + validate_skipped(result.skip_node_operations, None, path.child("skipNodeOperations"), ctx)


def validate_binding_conditions(
    conditions: list[str], failures: list[str], path: FieldPath
) -> list[FieldError]:
    """Conditions a binding waits for, and those that mean it failed: both or neither, and apart."""
    at, failures_at = path.child("bindingConditions"), path.child("bindingFailureConditions")
    errors = validate_list(conditions, _BINDING_LIMIT, validate_label_name, at)
    errors += validate_list(failures, _BINDING_LIMIT, validate_label_name, failures_at)
    errors += [duplicate(at.index(i), name) for i, name in enumerate(conditions) if name in conditions[:i]]
    for i, name in enumerate(failures):
        if name in failures[:i]:
            errors.append(duplicate(failures_at.index(i), name))
        if name in conditions:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(failures_at.index(i), name, detail))
    if failures and not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(at, None, detail))
    if conditions and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(failures_at, None, detail))
    return errors
