"""Amounts of resources that containers and pods ask for: their names, values and the order between them.

In go `ResourceRequirements` and quantities, out come field errors. Native resources have a fixed list of names, all
others are fully qualified and counted in whole units; what cannot be overcommitted needs a limit equal to its request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.api.core_v1.container import ResourceClaim, ResourceRequirements
from nodeward.base.fielderror import (
    Cause,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import label_key_faults
from nodeward.rules.resource_names import (
    HUGEPAGES,
    is_divisible_hugepages,
    is_extended,
    is_hugepages,
    is_native,
    is_overcommit_allowed,
    is_pod_level,
)
from nodeward.validation.checks import check_label

_QUOTA_HUGEPAGES: Final = "requests.hugepages-"

_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_STANDARD: Final = (
    _CONTAINER_RESOURCES
    | _COUNTED
    | {
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "requests.storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "storage",
    }
)

NameCheck = Callable[[str, FieldPath], list[FieldError]]


def validate_resource_name(name: str, path: FieldPath) -> list[FieldError]:
    """A resource of any kind: standard, or fully qualified."""
    if faults := label_key_faults(name):
        return [invalid(path, name, fault) for fault in faults]
    if "/" in name or name in _STANDARD or name.startswith((HUGEPAGES, _QUOTA_HUGEPAGES)):
        return []
    return [invalid(path, name, "must be a standard resource type or fully qualified")]


def validate_container_resource_name(name: str, path: FieldPath) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_hugepages(name):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_pod_resource_name(name: str, path: FieldPath) -> list[FieldError]:
    if errors := validate_resource_name(name, path):
        return errors
    return [] if is_pod_level(name) else [not_supported(path, name, ("cpu", HUGEPAGES, "memory"))]


def validate_quantity(name: str, quantity: Quantity, path: FieldPath) -> list[FieldError]:
    """Not negative, and whole where the resource is counted."""
    errors: list[FieldError] = []
    if quantity.nanos < 0:
        errors.append(invalid(path, str(quantity), "must be greater than or equal to 0"))
    if (name in _COUNTED or is_extended(name)) and quantity.milli_value % 1000:
        errors.append(invalid(path, quantity, "must be an integer"))
    return errors


def validate_requirements(
    requirements: ResourceRequirements,
    path: FieldPath,
    name_check: NameCheck,
    claim_names: frozenset[str],
    allow_indivisible_hugepages: Callable[[], bool],
) -> list[FieldError]:
    """Limits, requests and claims of a container or of a pod."""
    limits, requests = requirements.limits, requirements.requests
    errors: list[FieldError] = []
    has_compute = has_hugepages = False
    for name, quantity in limits.items():
        if name in ("cpu", "memory"):
            has_compute = True
            if quantity.nanos >= 0:
                continue
        at = path.child("limits").key(name)
        errors += name_check(name, at)
        errors += validate_quantity(name, quantity, at)
        if is_hugepages(name):
            has_hugepages = True
            errors += _hugepages(name, quantity, at, allow_indivisible_hugepages)
    for name, quantity in requests.items():
        limit = limits.get(name)
        if name in ("cpu", "memory"):
            has_compute = True
            if quantity.nanos >= 0 and (limit is None or quantity.nanos <= limit.nanos):
                continue
        at = path.child("requests").key(name)
        errors += name_check(name, at)
        errors += validate_quantity(name, quantity, at)
        errors += _against_limit(name, quantity, limit, path)
        if is_hugepages(name):
            has_hugepages = True
            errors += _hugepages(name, quantity, at, allow_indivisible_hugepages)
    if has_hugepages and not has_compute:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if requirements.claims:
        errors += _claims(requirements.claims, claim_names, path.child("claims"))
    return errors


def _against_limit(
    name: str, quantity: Quantity, limit: Quantity | None, path: FieldPath
) -> list[FieldError]:
    if limit is None:
        if is_overcommit_allowed(name):
            return []
        return [required(path.child("limits"), "Limit must be set for non overcommitable resources")]
    if quantity != limit and not is_overcommit_allowed(name):
        detail = f"must be equal to {name} limit of {limit}"
    elif quantity > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [invalid(path.child("requests"), str(quantity), detail)]


def _hugepages(
    name: str, quantity: Quantity, path: FieldPath, allow_indivisible: Callable[[], bool]
) -> list[FieldError]:
    if is_divisible_hugepages(name, quantity) or allow_indivisible():
        return []
    return [invalid(path, str(quantity), f"{quantity} is not positive integer multiple of {name}")]


def _claims(claims: list[ResourceClaim], pod_claims: frozenset[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    #: how many requests were listed so far, by claim
    requests: dict[str, int] = {}
    for i, claim in enumerate(claims):
        at = path.index(i)
        if not claim.name:
            errors.append(required(at))
            continue
        if claim.name in seen:
            errors.append(duplicate(at, claim.name))
        else:
            errors += check_label(claim.request or None, at.child("request"))
            key = f"{claim.name}/{claim.request}" if claim.request else claim.name
            if key in seen:
                errors.append(duplicate(at, key))
            elif not claim.request:
                errors += [duplicate(at, claim.name)] * requests.get(claim.name, 0)
            if "/" in key and key not in seen:
                listed = key.split("/")[0]
                requests[listed] = requests.get(listed, 0) + 1
            seen.add(key)
        if claim.name not in pod_claims:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
            errors.append(FieldError(Cause.NOT_FOUND, str(at), claim.name, detail))
    return errors
