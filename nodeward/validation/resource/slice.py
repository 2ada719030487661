"""Resource slices: the devices of a driver, on which nodes, and in which pool."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.resource_v1 import (
    CounterSet,
    Device,
    DeviceAttribute,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from nodeward.base.fielderror import FieldError, forbidden, invalid, late, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import check_immutable, check_subdomain
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.resource.device import validate_counters, validate_device
from nodeward.validation.resource.names import (
    validate_driver_name,
    validate_fully_qualified,
    validate_label,
    validate_pool_name,
    validate_set,
)
from nodeward.validation.resource.taints import validate_skipped

_SPEC: Final = ROOT.child("spec")
_DEVICES_LIMIT: Final = 128
_RICH_DEVICES_LIMIT: Final = 64
_COUNTER_SETS_LIMIT: Final = 8
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_UNSET_OR_TRUE: Final = "must be either unset or set to true"


def _pool(pool: ResourcePool, path: FieldPath) -> list[FieldError]:
    errors = validate_pool_name(pool.name, path.child("name"))
    if pool.resource_slice_count <= 0:
        at = path.child("resourceSliceCount")
        errors.append(invalid(at, pool.resource_slice_count, "must be greater than zero"))
    if pool.generation < 0:
        at = path.child("generation")
        errors.append(invalid(at, pool.generation, "must be greater than or equal to zero"))
    return errors


def _place(spec: ResourceSliceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    found: list[str] = []
    if spec.node_name is not None:
        at = _SPEC.child("nodeName")
        if spec.node_name:
            found.append("`nodeName`")
            errors += check_subdomain(spec.node_name, at)
        else:
            detail = "must be either unset or set to a non-empty string"
            errors.append(invalid(at, spec.node_name, detail))
    if spec.node_selector is not None:
        found.append("`nodeSelector`")
        at = _SPEC.child("nodeSelector")
        errors += validate_node_selector(spec.node_selector, at)
        terms = spec.node_selector.node_selector_terms
        if len(terms) != 1:
            at = at.child("nodeSelectorTerms")
            errors.append(invalid(at, terms, "must have exactly one node selector term"))
    for field, value in (
        ("allNodes", spec.all_nodes),
        ("perDeviceNodeSelection", spec.per_device_node_selection),
    ):
        if value:
            found.append(f"`{field}`")
        elif value is not None:
            errors.append(invalid(_SPEC.child(field), value, _UNSET_OR_TRUE))
    if not found:
        errors.append(required(_SPEC, _ONE_PLACE))
    elif len(found) > 1:
        detail = f"{_ONE_PLACE}, but multiple fields are set"
        errors.append(invalid(_SPEC, f"{{{', '.join(found)}}}", detail))
    return errors


def _is_rich(device: Device) -> bool:
    """Devices with taints, counters or lists are dear to schedule; a slice holds fewer of them."""
    if device.taints or device.consumes_counters:
        return True
    return any(a.bools or a.ints or a.strings or a.versions for a in device.attributes.values())


def _counter_set(counters: CounterSet, path: FieldPath) -> list[FieldError]:
    at = path.child("name")
    errors = validate_label(counters.name, at) if counters.name else [required(at)]
    return errors + validate_counters(list(counters.counters), path.child("counters"))


def _partition_type(spec: ResourceSliceSpec, ctx: Context) -> list[FieldError]:
    at, name = _SPEC.child("partitionTypeAttribute"), spec.partition_type_attribute
    if name is None:
        return []
    if not ctx.on("DRAPartitionableDevicesType"):
        return [forbidden(at, "")]
    if not any(device.consumes_counters for device in spec.devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        return [invalid(at, name, detail)]
    if faults := validate_fully_qualified(name, at):
        return faults
    errors: list[FieldError] = []
    short = name.removeprefix(f"{spec.driver}/")
    for i, device in enumerate(spec.devices):
        if device.consumes_counters:
            where = _SPEC.child("devices").index(i).child("attributes").key(name)
            attribute = device.attributes.get(name) or device.attributes.get(short)
            errors += _partition_value(attribute, where)
    return errors


def _partition_value(attribute: DeviceAttribute | None, path: FieldPath) -> list[FieldError]:
    if attribute is None:
        detail = (
            "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
        )
        return [required(path, detail)]
    if attribute.string is None:
        detail = "must be a string value because `partitionTypeAttribute` names this attribute"
        return [invalid(path, attribute, detail)]
    return []


def _spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, ctx: Context) -> list[FieldError]:
    errors = validate_driver_name(spec.driver, _SPEC.child("driver"))
    errors += _pool(spec.pool, _SPEC.child("pool"))
    if old is not None:
        errors += check_immutable(spec.pool.name, old.pool.name, _SPEC.child("pool", "name"))
        errors += check_immutable(spec.driver, old.driver, _SPEC.child("driver"))
        errors += check_immutable(spec.node_name, old.node_name, _SPEC.child("nodeName"))
    errors += _place(spec)
    if spec.shared_counters and spec.devices:
        errors.append(invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    before = {device.name: device for device in old.devices} if old else {}
    places_itself = bool(spec.per_device_node_selection)

    def device(item: Device, at: FieldPath) -> list[FieldError]:
        return validate_device(item, before.get(item.name), at, places_itself=places_itself)

    limit = _RICH_DEVICES_LIMIT if any(_is_rich(item) for item in spec.devices) else _DEVICES_LIMIT
    errors += validate_set(spec.devices, limit, device, lambda item: item.name, _SPEC.child("devices"))
    at = _SPEC.child("sharedCounters")
    counters = spec.shared_counters
    errors += late(validate_set(counters, _COUNTER_SETS_LIMIT, _counter_set, lambda item: item.name, at))
    errors += _partition_type(spec, ctx)
    skipped = old.skip_node_operations if old else None
    at = _SPEC.child("skipNodeOperations")
    return errors + validate_skipped(spec.skip_node_operations, skipped, at, ctx)


def create_slice(devices: ResourceSlice, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(devices.metadata, dns_subdomain, namespaced=False)
    return errors + _spec(devices.spec, None, ctx)


def update_slice(new: ResourceSlice, old: ResourceSlice, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _spec(new.spec, old.spec, ctx)
