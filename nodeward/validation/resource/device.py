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
    too_long,
    too_many,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import size
from nodeward.rules.resource_names import is_pod_level
from nodeward.validation.checks import check_each, check_size, check_subdomain
from nodeward.validation.meta.unions import validate_exactly_one
from nodeward.validation.pod.affinity import validate_node_selector
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
    errors: list[FieldError] = []
    if attribute.string is not None and size(attribute.string) > _VALUE_LENGTH:
        errors.append(too_long(path.child("string"), _VALUE_LENGTH))
    if attribute.version is not None:
        errors += _version(attribute.version, path.child("version"))
    for i, text in enumerate(attribute.strings):
        errors += check_size(text, path.child("strings").index(i), _VALUE_LENGTH)
    errors += check_each(attribute.versions, path.child("versions"), _version)
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
    return errors + late(validate_exactly_one(path, members))


def _version(text: str, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not _IS_VERSION(text):
        errors.append(invalid(path, text, "must be a string compatible with semver.org spec 2.0.0"))
    return [*errors, too_long(path, _VALUE_LENGTH)] if size(text) > _VALUE_LENGTH else errors


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


def _consumption(consumption: DeviceCounterConsumption, path: FieldPath) -> list[FieldError]:
    at = path.child("counterSet")
    name = consumption.counter_set
    errors = validate_label(name, at) if name else [required(at)]
    errors += validate_counters(list(consumption.counters), path.child("counters"))
    at = path.child("compatibilityGroups")
    groups = consumption.compatibility_groups
    return errors + validate_set(groups, _GROUPS_LIMIT, validate_label, str, at)


def validate_counters(names: list[str], path: FieldPath) -> list[FieldError]:
    """Counters, in a set or used up by a device: at least one, not too many."""
    if not names:
        return [required(path)]
    if len(names) > COUNTERS_LIMIT:
        return [too_many(path, len(names), COUNTERS_LIMIT)]
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
    errors: list[FieldError] = []
    found: list[str] = []
    if name is not None:
        at = path.child("nodeName")
        if name:
            found.append("`nodeName`")
            errors += check_subdomain(name, at)
        else:
            errors.append(invalid(at, name, "must not be empty"))
    if selector is not None:
        found.append("`nodeSelector`")
        errors += validate_node_selector(selector, path.child("nodeSelector"))
    if everywhere is not None:
        if everywhere:
            found.append("`allNodes`")
        else:
            errors.append(invalid(path.child("allNodes"), everywhere, "must be either unset or set to true"))
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
    amounts = {"perPod": overhead.per_pod, "perContainer": overhead.per_container}
    return [
        invalid(path.child(field), str(amount), "must be non-negative")
        for field, amount in amounts.items()
        if amount is not None and amount.sign < 0
    ]
