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
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.validation.checks import (
    Fields,
    check_immutable,
    check_name,
    check_not_negative,
    check_positive,
    check_subdomain,
)
from nodeward.validation.kinds import kind
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.resource.device import UNSET_OR_TRUE, validate_counters, validate_device
from nodeward.validation.resource.names import (
    validate_driver_name,
    validate_fully_qualified,
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
_POOL: Final = Fields(
    ResourcePool,
    name=validate_pool_name,
    resource_slice_count=lambda number, path: check_positive(number, path, "must be greater than zero"),
    generation=lambda number, path: check_not_negative(number, path, "must be greater than or equal to zero"),
)


def _place(spec: ResourceSliceSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    found: list[str] = []
    if spec.node_name is not None:
        at = _SPEC.child("nodeName")
        found += ["`nodeName`"] if spec.node_name else []
        detail = "must be either unset or set to a non-empty string"
        errors += check_subdomain(spec.node_name, at) if spec.node_name else [invalid(at, "", detail)]
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
            errors.append(invalid(_SPEC.child(field), value, UNSET_OR_TRUE))
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
    errors = check_name(counters.name, path.child("name"), dns_label)
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


def _slice(new: ResourceSlice, old: ResourceSlice | None, ctx: Context) -> list[FieldError]:
    spec, was = new.spec, old.spec if old else None
    errors = validate_driver_name(spec.driver, _SPEC.child("driver")) + _POOL(spec.pool, _SPEC.child("pool"))
    if was is not None:
        errors += check_immutable(spec.pool.name, was.pool.name, _SPEC.child("pool", "name"))
        errors += check_immutable(spec.driver, was.driver, _SPEC.child("driver"))
        errors += check_immutable(spec.node_name, was.node_name, _SPEC.child("nodeName"))
    errors += _place(spec)
    if spec.shared_counters and spec.devices:
        errors.append(invalid(_SPEC, "", "only one of `sharedCounters` or `devices` is allowed"))
    before = {device.name: device for device in was.devices} if was else {}
    places_itself = bool(spec.per_device_node_selection)

    def device(item: Device, at: FieldPath) -> list[FieldError]:
        return validate_device(item, before.get(item.name), at, places_itself=places_itself)

    limit = _RICH_DEVICES_LIMIT if any(_is_rich(item) for item in spec.devices) else _DEVICES_LIMIT
    errors += validate_set(spec.devices, limit, device, lambda item: item.name, _SPEC.child("devices"))
    at, counters = _SPEC.child("sharedCounters"), spec.shared_counters
    errors += late(validate_set(counters, _COUNTER_SETS_LIMIT, _counter_set, lambda item: item.name, at))
    errors += _partition_type(spec, ctx)
    skipped = was.skip_node_operations if was else None
    return errors + validate_skipped(
        spec.skip_node_operations, skipped, _SPEC.child("skipNodeOperations"), ctx
    )


RESOURCE_SLICE: Final = kind(dns_subdomain, _slice, namespaced=False)
