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
    too_long,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, qualified_name, size
from nodeward.validation.checks import (
    NOT_NEGATIVE,
    Fields,
    both,
    check_distinct,
    check_immutable,
    check_kept,
    check_present,
    check_qualified,
    check_subdomain,
    given,
    one_of,
    unless_empty,
)
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.labels import is_usable, validate_label_selector

_PARAMETERS_LIMIT: Final = 512
_PARAMETERS_SIZE: Final = 256 * 1024


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


_CLASS: Final = Fields(
    StorageClass,
    provisioner=_provisioner,
    parameters=_parameters,
    reclaim_policy=unless_empty(one_of("Delete", "Retain")),
    volume_binding_mode=both(given, one_of("Immediate", "WaitForFirstConsumer")),
)


def _class(new: StorageClass, old: StorageClass | None, ctx: Context) -> list[FieldError]:
    errors = _CLASS(new, ROOT) + _topologies(new.allowed_topologies)
    return errors + check_present(new.provisioner, ROOT.child("provisioner"))


def _topologies(terms: list[TopologySelectorTerm]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[object] = {frozenset()}  # to upstream, a term that says nothing repeats one that is not there
    for i, term in enumerate(terms):
        at = ROOT.child("allowedTopologies").index(i).child("matchLabelExpressions")
        raw: dict[str, frozenset[str]] = {}
        for j, requirement in enumerate(term.match_label_expressions):
            errors += _topology(requirement, at.index(j))
            if requirement.key in raw:
                errors.append(duplicate(at.index(j).child("key"), requirement.key))
            raw[requirement.key] = frozenset(requirement.values)
        if frozenset(raw.items()) in seen:
            errors.append(duplicate(at, ""))
        seen.add(frozenset(raw.items()))
    return errors


def _topology(requirement: TopologySelectorLabelRequirement, path: FieldPath) -> list[FieldError]:
    at, values = path.child("values"), requirement.values
    errors = check_present(values, at) + check_distinct(values, at)
    return errors + check_qualified(requirement.key, path.child("key"))


def _class_change(new: StorageClass, old: StorageClass, ctx: Context) -> list[FieldError]:
    errors = check_kept(new.provisioner or old.provisioner, old.provisioner, ROOT.child("provisioner"))
    errors += check_kept(new.parameters, old.parameters, ROOT.child("parameters"))
    errors += check_kept(new.reclaim_policy, old.reclaim_policy, ROOT.child("reclaimPolicy"))
    at = ROOT.child("volumeBindingMode")
    return errors + check_kept(new.volume_binding_mode, old.volume_binding_mode, at)


def _attributes(
    new: VolumeAttributesClass, old: VolumeAttributesClass | None, ctx: Context
) -> list[FieldError]:
    at = ROOT.child("driverName")
    errors = check_present(new.driver_name, at) + _provisioner(new.driver_name, at)
    at = ROOT.child("parameters")
    errors += _parameters(new.parameters, at)
    return errors + check_present(new.parameters, at, "must contain at least one key/value pair")


def _attributes_change(
    new: VolumeAttributesClass, old: VolumeAttributesClass, ctx: Context
) -> list[FieldError]:
    fields = (
        ("driverName", new.driver_name, old.driver_name),
        ("parameters", new.parameters, old.parameters),
    )
    return [
        forbidden(ROOT.child(field), f"updates to {field} are forbidden.")
        for field, now, was in fields
        if now != was
    ]


def _capacity(new: CSIStorageCapacity, old: CSIStorageCapacity | None, ctx: Context) -> list[FieldError]:
    is_lenient = old is not None and not is_usable(old.node_topology)
    at = ROOT.child("nodeTopology")
    errors = validate_label_selector(new.node_topology, at, allow_invalid_values=is_lenient)
    errors += check_subdomain(new.storage_class_name, ROOT.child("storageClassName"))
    if new.capacity is not None and new.capacity.sign < 0:
        errors.append(invalid(ROOT.child("capacity"), str(new.capacity), NOT_NEGATIVE))
    return errors


def _capacity_change(new: CSIStorageCapacity, old: CSIStorageCapacity, ctx: Context) -> list[FieldError]:
    errors = check_immutable(new.node_topology, old.node_topology, ROOT.child("nodeTopology"))
    at = ROOT.child("storageClassName")
    return errors + check_immutable(new.storage_class_name, old.storage_class_name, at)


_MADE: Final = made(dns_subdomain, namespaced=False)
STORAGE_CLASS: Final = kind(
    dns_subdomain, _class, namespaced=False, update=(changed, _MADE, _class, _class_change)
)
VOLUME_ATTRIBUTES_CLASS: Final = kind(
    dns_subdomain, _attributes, namespaced=False, update=(changed, _attributes_change, _MADE, _attributes)
)
CSI_STORAGE_CAPACITY: Final = kind(
    dns_subdomain,
    _capacity,
    update=(made(dns_subdomain, namespaced=True), _capacity, changed, _capacity_change),
)
