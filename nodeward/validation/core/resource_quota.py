"""Resource quotas: what is counted, and for which part of a namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import IMMUTABLE, check_present
from nodeward.validation.kinds import kind
from nodeward.validation.pod.resource_lists import validate_quantity, validate_resource_name

_SPEC: Final = ROOT.child("spec")
_BARE_SCOPES: Final = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)
_SCOPES: Final = (*_BARE_SCOPES, "PriorityClass", "VolumeAttributesClass")
_OF_PODS: Final = frozenset(
    {
        "pods",
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    }
)
_OF_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_NOT_COUNTED: Final = "storage"
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def _is_counted(name: str) -> bool:
    """Standard in a quota: every standard resource but bare storage, which is asked for as `requests.storage`."""
    return "/" not in name and name != _NOT_COUNTED and not validate_resource_name(name, ROOT)


def _resource_name(name: str, path: FieldPath) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if "/" not in name and not _is_counted(name):
        errors.append(invalid(path, name, "must be a standard resource for quota"))
    return errors


def _fits(scope: str, resource: str) -> bool:
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in _OF_CLAIMS
    return resource in _OF_PODS if scope in _SCOPES else True


def _amounts(amounts: dict[str, Quantity], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in amounts.items():
        errors += _resource_name(name, path.key(name))
        errors += validate_quantity(name, amount, path.key(name))
    return errors


def _unfit(scope: str, spec: ResourceQuotaSpec) -> int:
    """How many of the counted resources the scope says nothing about."""
    return sum(_is_counted(name) and not _fits(scope, name) for name in spec.hard)


def _conflicts(scopes: Iterable[str], spec: ResourceQuotaSpec, path: FieldPath) -> list[FieldError]:
    present = set(scopes)
    return [
        invalid(path, spec.scopes, "conflicting scopes") for pair in _OPPOSITES if present.issuperset(pair)
    ]


def _scopes(spec: ResourceQuotaSpec) -> list[FieldError]:
    at = _SPEC.child("scopes")
    errors: list[FieldError] = []
    for scope in spec.scopes:
        if scope not in _SCOPES:
            errors.append(invalid(at, spec.scopes, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        errors += [invalid(at, spec.scopes, detail)] * _unfit(scope, spec)
    return errors + _conflicts(spec.scopes, spec, at)


def _scope_selector(spec: ResourceQuotaSpec) -> list[FieldError]:
    if spec.scope_selector is None:
        return []
    at = _SPEC.child("scopeSelector", "matchExpressions")
    errors: list[FieldError] = []
    requirements = spec.scope_selector.match_expressions
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in _SCOPES:
            errors.append(invalid(at.child("scopeName"), scope, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        errors += [invalid(at, spec.scope_selector, detail)] * _unfit(scope, spec)
        errors += _requirement(requirement, at)
    return errors + _conflicts((r.scope_name for r in requirements), spec, at)


def _requirement(requirement: ScopedResourceSelectorRequirement, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    operator = requirement.operator
    if requirement.scope_name in _BARE_SCOPES and operator != "Exists":
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort "
            "or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        errors.append(invalid(path.child("operator"), operator, detail))
    if operator in ("In", "NotIn"):
        if not requirement.values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.append(required(path.child("values"), detail))
    elif operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.append(invalid(path.child("values"), requirement.values, detail))
    else:
        errors.append(invalid(path.child("operator"), operator, "not a valid selector operator"))
    return errors


def _quota(new: ResourceQuota, old: ResourceQuota | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = _amounts(spec.hard, _SPEC.child("hard")) + _scopes(spec) + _scope_selector(spec)
    if old is None:
        return errors + _status_amounts(new)
    if set(spec.scopes) != set(old.spec.scopes):
        errors.append(invalid(_SPEC.child("scopes"), spec.scopes, IMMUTABLE))
    return errors


def _status_amounts(quota: ResourceQuota) -> list[FieldError]:
    errors = _amounts(quota.status.hard, ROOT.child("status", "hard"))
    return errors + _amounts(quota.status.used, ROOT.child("status", "used"))


def _status(new: ResourceQuota, old: ResourceQuota, ctx: Context) -> list[FieldError]:
    return check_present(new.metadata.resource_version, ROOT.child("resourceVersion")) + _status_amounts(new)


RESOURCE_QUOTA: Final = kind(dns_subdomain, _quota, status=_status)
