"""Devices in a resource slice: attributes, capacities, taints, where they are, and which counters they use up."""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.resource_v1 import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
    late,
    not_found,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, dns_subdomain
from nodeward.rules.resource_names import is_pod_level
from nodeward.validation.checks import (
    Fields,
    check_count,
    check_form,
    check_present,
    check_size,
    each,
    most,
    named,
)
from nodeward.validation.meta.unions import validate_exactly_one
from nodeward.validation.pod.affinity import validate_node_selector
from nodeward.validation.pod.status_claims import validate_amount
from nodeward.validation.resource.capacity import validate_request_policy
from nodeward.validation.resource.claim_status import validate_binding_conditions
from nodeward.validation.resource.names import (
    shortened,
    validate_label,
    validate_list,
    validate_qualified,
    validate_set,
)
from nodeward.validation.resource.taints import validate_device_taint

_ATTRIBUTES_LIMIT: Final = 32
_VALUES_LIMIT: Final = 48
_VALUE_LENGTH: Final = 64
_TAINTS_LIMIT: Final = 16
_CONSUMPTIONS_LIMIT: Final = 2
_GROUPS_LIMIT: Final = 2
COUNTERS_LIMIT: Final = 32
UNSET_OR_TRUE: Final = "must be either unset or set to true"
_EMPTY: Final = ("must not be empty",)
_ONE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = r"[0-9a-zA-Z-]+"
_IS_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE}(\.{_PRE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch


def validate_device(
    device: Device, old: Device | None, path: FieldPath, *, places_itself: bool
) -> list[FieldError]:
    errors = validate_label(device.name, path.child("name"))
    total = len(device.attributes) + len(device.capacity)
    if total > _ATTRIBUTES_LIMIT:
        detail = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_LIMIT}"
        errors.append(invalid(path, total, detail))
    values = sum(_value_count(attribute) for attribute in device.attributes.values())
    if values > _VALUES_LIMIT:
        detail = f"the total number of attribute values must not exceed {_VALUES_LIMIT}"
        errors.append(invalid(path, values, detail))
    at = path.child("attributes")
    for name, attribute in device.attributes.items():
        errors += validate_qualified(name, at)
        errors += _attribute(attribute, at.key(shortened(name)))
    if old is None or old.capacity != device.capacity:
        errors += _capacities(device, path.child("capacity"))
    if old is None or old.taints != device.taints:
        at = path.child("taints")
        errors += validate_list(
            device.taints, _TAINTS_LIMIT, lambda taint, where: validate_device_taint(taint, None, where), at
        )
    at = path.child("consumesCounters")
    counters = device.consumes_counters
    errors += late(
        validate_set(counters, _CONSUMPTIONS_LIMIT, _consumption, lambda item: item.counter_set, at)
    )
    errors += _place(device, path, places_itself=places_itself)
    errors += validate_binding_conditions(device.binding_conditions, device.binding_failure_conditions, path)
    for name, mapping in device.node_allocatable_resources.items():
        at = path.child("nodeAllocatableResources").key(name)
        errors += _allocatable(name, mapping, device.capacity, at)
    return errors


def _value_count(attribute: DeviceAttribute) -> int:
    lists = (attribute.bools, attribute.ints, attribute.strings, attribute.versions)
    return sum(len(values) for values in lists) or 1


def _attribute(attribute: DeviceAttribute, path: FieldPath) -> list[FieldError]:
    members = {
        "int": attribute.int_ is not None,
        "bool": attribute.bool_ is not None,
        "string": attribute.string is not None,
        "version": attribute.version is not None,
        "ints": bool(attribute.ints),
        "bools": bool(attribute.bools),
        "strings": bool(attribute.strings),
        "versions": bool(attribute.versions),
    }
    return _VALUES(attribute, path) + late(validate_exactly_one(path, members))


def _version(text: str | None, path: FieldPath) -> list[FieldError]:
    if text is None:
        return []
    errors = check_size(text, path, _VALUE_LENGTH)
    if not _IS_VERSION(text):
        errors.insert(0, invalid(path, text, "must be a string compatible with semver.org spec 2.0.0"))
    return errors


_VALUES: Final = Fields(
    DeviceAttribute,
    string=most(_VALUE_LENGTH),
    version=_version,
    strings=each(most(_VALUE_LENGTH)),
    versions=each(_version),
)


def _capacities(device: Device, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, capacity in device.capacity.items():
        errors += validate_qualified(name, path)
        if capacity.request_policy is None:
            continue
        at = path.key(shortened(name)).child("requestPolicy")
        if device.allow_multiple_allocations:
            errors += validate_request_policy(capacity.request_policy, capacity.value, at)
        else:
            errors.append(forbidden(at, "allowMultipleAllocations must be true"))
    return errors


_consumption: Final = Fields(
    DeviceCounterConsumption,
    counter_set=named(dns_label),
    counters=lambda counters, path: validate_counters(list(counters), path),
    compatibility_groups=lambda groups, path: validate_set(groups, _GROUPS_LIMIT, validate_label, str, path),
)


def validate_counters(names: list[str], path: FieldPath) -> list[FieldError]:
    """Counters, in a set or used up by a device: at least one, not too many."""
    if errors := check_present(names, path) or check_count(names, path, COUNTERS_LIMIT):
        return errors
    return [error for name in names for error in validate_label(name, path)]


def _place(device: Device, path: FieldPath, *, places_itself: bool) -> list[FieldError]:
    name, selector, everywhere = device.node_name, device.node_selector, device.all_nodes
    if not places_itself:
        if name is None and selector is None and everywhere is None:
            return []
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` "
            "is set to true in the ResourceSlice spec"
        )
        return [invalid(path, None, detail)]
    errors = check_form(name, path.child("nodeName"), lambda text: dns_subdomain(text) if text else _EMPTY)
    if selector is not None:
        errors += validate_node_selector(selector, path.child("nodeSelector"))
    if everywhere is False:
        errors.append(invalid(path.child("allNodes"), everywhere, UNSET_OR_TRUE))
    places = {"`nodeName`": name, "`nodeSelector`": selector is not None, "`allNodes`": everywhere}
    found = [place for place, is_set in places.items() if is_set]
    if not found:
        errors.append(required(path, _ONE_PLACE))
    elif len(found) > 1:
        errors.append(invalid(path, f"{{{', '.join(found)}}}", _ONE_PLACE))
    return errors


def _allocatable(
    name: str, resource: NodeAllocatableResource, capacities: dict[str, DeviceCapacity], path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    if not is_pod_level(name):
        errors.append(invalid(path, name, "must be a node allocatable resource name"))
    if resource.mapping is None and resource.overhead is None:
        errors.append(required(path, "at least one of mapping or overhead must be set"))
    if resource.mapping is not None:
        errors += _mapping(resource.mapping, capacities, path.child("mapping"))
    if resource.overhead is not None:
        errors += _overhead(resource.overhead, path.child("overhead"))
    return errors


def _mapping(
    mapping: NodeAllocatableMapping, capacities: dict[str, DeviceCapacity], path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    key, factor, per_device = mapping.capacity_key, mapping.capacity_multiplier, mapping.device_multiplier
    at = path.child("capacityKey")
    if key == "":
        errors.append(invalid(at, "", "capacityKey must not be an empty string"))
    elif key is not None and key not in capacities:
        errors.append(not_found(at, key))
    for field, amount in (("capacityMultiplier", factor), ("deviceMultiplier", per_device)):
        if amount is not None and amount.sign <= 0 and (field == "deviceMultiplier" or key is not None):
            errors.append(invalid(path.child(field), str(amount), "must be positive"))
    if key is not None and factor is None:
        errors.append(required(path.child("capacityMultiplier"), "must be set when capacityKey is set"))
    members = {"capacityKey": key is not None, "deviceMultiplier": per_device is not None}
    errors += validate_exactly_one(path, members)
    if factor is not None and key is None:
        errors.append(required(at, "must be set when capacityMultiplier is set"))
    return errors


def _overhead(overhead: NodeAllocatableOverhead, path: FieldPath) -> list[FieldError]:
    if overhead.per_pod is None and overhead.per_container is None:
        return [invalid(path, "", "at least one of perPod or perContainer must be set")]
    errors = validate_amount(overhead.per_pod, path.child("perPod"))
    return errors + validate_amount(overhead.per_container, path.child("perContainer"))
