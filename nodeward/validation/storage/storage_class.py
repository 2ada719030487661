"""Storage classes, classes of volume attributes, and the capacity drivers report for a class.

Fields of a storage class that never change are checked by declaration: their fault shows no value and comes last.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.references import TopologySelectorLabelRequirement, TopologySelectorTerm
from nodeward.api.storage_v1 import CSIStorageCapacity, StorageClass, VolumeAttributesClass
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, qualified_name, size
from nodeward.validation.checks import IMMUTABLE, NOT_NEGATIVE, check_immutable, check_one_of, check_subdomain
from nodeward.validation.meta.labels import validate_label_name, validate_label_selector
from nodeward.validation.meta.metadata import (
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.validator import Validator

_PARAMETERS_LIMIT: Final = 512
_PARAMETERS_SIZE: Final = 256 * 1024
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")


def _provisioner(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return []
    shown = name.lower()
    return [invalid(path, shown, fault) for fault in qualified_name(shown)]


def _parameters(parameters: dict[str, str], path: FieldPath) -> list[FieldError]:
    if len(parameters) > _PARAMETERS_LIMIT:
        return [too_long(path, _PARAMETERS_LIMIT)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if sum(size(key) + size(value) for key, value in parameters.items()) > _PARAMETERS_SIZE:
        errors.append(too_long(path, _PARAMETERS_SIZE))
    return errors


def _create(storage: StorageClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(storage.metadata, dns_subdomain, namespaced=False)
    errors += _provisioner(storage.provisioner, ROOT.child("provisioner"))
    errors += _parameters(storage.parameters, ROOT.child("parameters"))
    policy = storage.reclaim_policy
    errors += check_one_of(policy or None, ROOT.child("reclaimPolicy"), ("Delete", "Retain"))
    at, mode = ROOT.child("volumeBindingMode"), storage.volume_binding_mode
    if mode is None:
        errors.append(required(at))
    elif mode not in _BINDING_MODES:
        errors.append(not_supported(at, mode, _BINDING_MODES))
    errors += _topologies(storage.allowed_topologies)
    return errors if storage.provisioner else [*errors, required(ROOT.child("provisioner"))]


def _topologies(terms: list[TopologySelectorTerm]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[dict[str, frozenset[str]]] = []
    for i, term in enumerate(terms):
        at = ROOT.child("allowedTopologies").index(i).child("matchLabelExpressions")
        raw: dict[str, frozenset[str]] = {}
        for j, requirement in enumerate(term.match_label_expressions):
            errors += _topology(requirement, at.index(j))
            if requirement.key in raw:
                errors.append(duplicate(at.index(j).child("key"), requirement.key))
            raw[requirement.key] = frozenset(requirement.values)
        if raw in seen or not raw:  # to upstream, a term that says nothing repeats one that is not there
            errors.append(duplicate(at, ""))
        seen.append(raw)
    return errors


def _topology(requirement: TopologySelectorLabelRequirement, path: FieldPath) -> list[FieldError]:
    at, values = path.child("values"), requirement.values
    errors = [] if values else [required(at)]
    errors += [duplicate(at.index(i), value) for i, value in enumerate(values) if value in values[:i]]
    return errors + validate_label_name(requirement.key, path.child("key"))


def _update(new: StorageClass, old: StorageClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata) + _create(new, ctx)
    for field, is_same in (
        ("provisioner", new.provisioner in (old.provisioner, "")),
        ("parameters", new.parameters == old.parameters),
        ("reclaimPolicy", new.reclaim_policy == old.reclaim_policy),
        ("volumeBindingMode", new.volume_binding_mode == old.volume_binding_mode),
    ):
        if not is_same:
            errors.append(invalid(ROOT.child(field), None, IMMUTABLE))
    return errors


def _attributes(attributes: VolumeAttributesClass) -> list[FieldError]:
    errors = validate_metadata(attributes.metadata, dns_subdomain, namespaced=False)
    at = ROOT.child("driverName")
    errors += _provisioner(attributes.driver_name, at) if attributes.driver_name else [required(at)]
    errors += _parameters(attributes.parameters, ROOT.child("parameters"))
    if not attributes.parameters:
        errors.append(required(ROOT.child("parameters"), "must contain at least one key/value pair"))
    return errors


def _create_attributes(attributes: VolumeAttributesClass, ctx: Context) -> list[FieldError]:
    return _attributes(attributes)


def _update_attributes(
    new: VolumeAttributesClass, old: VolumeAttributesClass, ctx: Context
) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    if new.driver_name != old.driver_name:
        errors.append(forbidden(ROOT.child("driverName"), "updates to driverName are forbidden."))
    if new.parameters != old.parameters:
        errors.append(forbidden(ROOT.child("parameters"), "updates to parameters are forbidden."))
    return errors + _attributes(new)


def _capacity(capacity: CSIStorageCapacity, *, allow_invalid_values: bool) -> list[FieldError]:
    errors = validate_metadata(capacity.metadata, dns_subdomain, namespaced=True)
    at = ROOT.child("nodeTopology")
    errors += validate_label_selector(capacity.node_topology, at, allow_invalid_values=allow_invalid_values)
    name = capacity.storage_class_name
    errors += check_subdomain(name, ROOT.child("storageClassName"))
    if capacity.capacity is not None and capacity.capacity.sign < 0:
        errors.append(invalid(ROOT.child("capacity"), str(capacity.capacity), NOT_NEGATIVE))
    return errors


def _create_capacity(capacity: CSIStorageCapacity, ctx: Context) -> list[FieldError]:
    return _capacity(capacity, allow_invalid_values=False)


def _update_capacity(new: CSIStorageCapacity, old: CSIStorageCapacity, ctx: Context) -> list[FieldError]:
    is_lenient = bool(validate_label_selector(old.node_topology, ROOT))
    errors = _capacity(new, allow_invalid_values=is_lenient)
    errors += validate_metadata_update(new.metadata, old.metadata)
    errors += check_immutable(new.node_topology, old.node_topology, ROOT.child("nodeTopology"))
    errors += check_immutable(new.storage_class_name, old.storage_class_name, ROOT.child("storageClassName"))
    return errors


STORAGE_CLASS: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)
VOLUME_ATTRIBUTES_CLASS: Final = Validator(
    create=_create_attributes, update=_update_attributes, status=None, name=dns_subdomain
)
CSI_STORAGE_CAPACITY: Final = Validator(
    create=_create_capacity, update=_update_capacity, status=None, name=dns_subdomain
)
