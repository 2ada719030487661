"""Resource claims and their templates: which devices are asked for, and what must hold between them.

The spec of a claim never changes once it exists. `resource_claim_status` has the rules for allocations.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.resource_v1 import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimTemplate,
)
from nodeward.base.fielderror import FieldError, invalid, late, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import (
    check_immutable,
    check_kept,
    check_name,
    check_positive,
)
from nodeward.validation.kinds import Step, changed, kind, made
from nodeward.validation.pod.volume_claim import validate_template_metadata
from nodeward.validation.resource.cel import (
    validate_derived_expression,
    validate_selector_expression,
    validate_total_cost,
)
from nodeward.validation.resource.names import (
    validate_driver_declared,
    validate_fully_qualified,
    validate_label,
    validate_list,
    validate_raw_object,
    validate_set,
)
from nodeward.validation.resource.taints import validate_device_toleration
from nodeward.validation.validator import Validator

REQUESTS_LIMIT: Final = 32
CONFIG_LIMIT: Final = 32
_SUBREQUESTS_LIMIT: Final = 8
_PARAMETERS_LIMIT: Final = 10 * 1024
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


class RequestNames:
    """The requests of a claim, with the alternatives each one lists."""

    def __init__(self, claim: DeviceClaim) -> None:
        self._names = {
            request.name: frozenset(sub.name for sub in request.first_available) for request in claim.requests
        }

    def validate(self, name: str, path: FieldPath) -> list[FieldError]:
        """Is it the name of a request, or of a request and one of its alternatives?"""
        request, slash, sub = name.partition("/")
        if "/" in sub:
            return [invalid(path, name, _NO_REQUEST)]
        errors = [error for part in name.split("/") for error in validate_label(part, path)]
        known = self._names.get(request)
        is_known = known is not None and (not slash or sub in known)
        return errors if is_known else [*errors, invalid(path, name, _NO_REQUEST)]


class _DerivedAttributes:
    """What the derived attributes of one claim are judged by.

    `constrained`: which attribute of which request the claim's constraints look at; "" stands for every request.
    `cost`: what all expressions together cost at most.
    """

    def __init__(self, claim: DeviceClaim) -> None:
        self.constrained: set[tuple[str, str]] = set()
        self.cost = 0
        for constraint in claim.constraints:
            attribute = constraint.match_attribute
            if attribute is None:
                attribute = constraint.distinct_attribute
            if attribute is not None:
                self.constrained.update((request, attribute) for request in constraint.requests or [""])


def validate_device_claim(claim: DeviceClaim, path: FieldPath, ctx: Context) -> list[FieldError]:
    names, derived = RequestNames(claim), _DerivedAttributes(claim)

    def request(item: DeviceRequest, at: FieldPath) -> list[FieldError]:
        return _request(item, at, derived, ctx)

    def constraint(item: DeviceConstraint, at: FieldPath) -> list[FieldError]:
        return _constraint(item, at, names, ctx)

    def config(item: DeviceClaimConfiguration, at: FieldPath) -> list[FieldError]:
        errors = validate_set(item.requests, REQUESTS_LIMIT, names.validate, str, at.child("requests"))
        return errors + validate_configuration(item.opaque, at, is_stored=False)

    errors = validate_set(
        claim.requests, REQUESTS_LIMIT, request, lambda item: item.name, path.child("requests")
    )
    errors += validate_list(claim.constraints, REQUESTS_LIMIT, constraint, path.child("constraints"))
    errors += validate_list(claim.config, CONFIG_LIMIT, config, path.child("config"))
    return errors + validate_total_cost(derived.cost, path)


def _request(
    request: DeviceRequest, path: FieldPath, derived: _DerivedAttributes, ctx: Context
) -> list[FieldError]:
    errors = validate_label(request.name, path.child("name"))
    for i, alternative in enumerate(request.first_available):
        at = path.child("firstAvailable").index(i).child("deviceClassName")
        errors += late(check_name(alternative.device_class_name, at, dns_subdomain))
    if request.exactly is not None and request.first_available:
        return [*errors, invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")]
    if request.exactly is not None:
        at = path.child("exactly")
        return errors + _wish(request.exactly, request.name, at, derived, ctx)
    if not request.first_available:
        return [*errors, required(path, _ONE_REQUEST)]

    def sub(item: DeviceSubRequest, at: FieldPath) -> list[FieldError]:
        named = validate_label(item.name, at.child("name"))
        return named + _wish(item, f"{request.name}/{item.name}", at, derived, ctx)

    at = path.child("firstAvailable")
    return errors + validate_set(request.first_available, _SUBREQUESTS_LIMIT, sub, lambda item: item.name, at)


def _wish(
    wish: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    path: FieldPath,
    derived: _DerivedAttributes,
    ctx: Context,
) -> list[FieldError]:
    errors: list[FieldError] = []
    if isinstance(wish, ExactDeviceRequest):
        errors += check_name(wish.device_class_name, path.child("deviceClassName"), dns_subdomain)
    errors += validate_selectors(wish.selectors, path.child("selectors"), ctx)

    def attribute(item: DeviceDerivedAttribute, at: FieldPath) -> list[FieldError]:
        return _derived(item, name, at, derived, ctx)

    at = path.child("derivedAttributes")
    errors += validate_set(wish.derived_attributes, REQUESTS_LIMIT, attribute, lambda item: item.name, at)
    errors += _count(wish, path)
    for i, toleration in enumerate(wish.tolerations):
        errors += validate_device_toleration(toleration, path.child("tolerations").index(i), ctx)
    return errors


def _count(wish: ExactDeviceRequest | DeviceSubRequest, path: FieldPath) -> list[FieldError]:
    at, count = path.child("count"), wish.count
    match wish.allocation_mode:
        case "All":
            detail = "must not be specified when allocationMode is 'All'"
            return [invalid(at, count, detail)] if count else []
        case "ExactCount":
            return check_positive(count, at, "must be greater than zero")
        case mode:
            return [not_supported(path.child("allocationMode"), mode, ("All", "ExactCount"))]


def _derived(
    attribute: DeviceDerivedAttribute,
    request: str,
    path: FieldPath,
    derived: _DerivedAttributes,
    ctx: Context,
) -> list[FieldError]:
    at, errors = path.child("name"), []
    if not attribute.name:
        errors.append(required(at))
    else:
        parent = request.partition("/")[0]
        if not any((where, attribute.name) in derived.constrained for where in ("", request, parent)):
            detail = (
                "must be referenced by at least one matchAttribute or distinctAttribute constraint "
                "targeting this request"
            )
            errors.append(invalid(at, attribute.name, detail))
        errors += validate_fully_qualified(attribute.name, at)
    at = path.child("expression")
    if not attribute.expression:
        return [*errors, required(at)]
    faults, cost = validate_derived_expression(attribute.expression, at, ctx)
    derived.cost += cost
    return errors + faults


def validate_selectors(
    selectors: list[DeviceSelector], path: FieldPath, ctx: Context, *, is_stored: bool = False
) -> list[FieldError]:
    """Expressions that choose devices; stored ones were fine when they were new."""

    def selector(item: DeviceSelector, at: FieldPath) -> list[FieldError]:
        if item.cel is None:
            return [required(at.child("cel"))]
        where = at.child("cel", "expression")
        return [] if is_stored else validate_selector_expression(item.cel.expression, where, ctx)

    return validate_list(selectors, REQUESTS_LIMIT, selector, path)


def _constraint(
    constraint: DeviceConstraint, path: FieldPath, names: RequestNames, ctx: Context
) -> list[FieldError]:
    errors = validate_set(constraint.requests, REQUESTS_LIMIT, names.validate, str, path.child("requests"))
    match, distinct = constraint.match_attribute, constraint.distinct_attribute
    if match is not None:
        errors += validate_fully_qualified(match, path.child("matchAttribute"))
    if distinct is not None:
        errors += validate_fully_qualified(distinct, path.child("distinctAttribute"))
    if match is not None or distinct is not None:
        return errors
    if not ctx.on("DRAConsumableCapacity"):
        return [*errors, required(path.child("matchAttribute"))]
    detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*errors, required(path, detail)]


def validate_configuration(
    opaque: OpaqueDeviceConfiguration | None, path: FieldPath, *, is_stored: bool
) -> list[FieldError]:
    at = path.child("opaque")
    if opaque is None:
        return [required(at)]
    errors = validate_driver_declared(opaque.driver, at.child("driver"))
    where = at.child("parameters")
    return errors + validate_raw_object(opaque.parameters, where, _PARAMETERS_LIMIT, is_stored=is_stored)


def _claim(new: ResourceClaim, old: ResourceClaim | None, ctx: Context) -> list[FieldError]:
    return validate_device_claim(new.spec.devices, ROOT.child("spec", "devices"), ctx)


def _same_claim(new: ResourceClaim, old: ResourceClaim, ctx: Context) -> list[FieldError]:
    return check_kept(new.spec, old.spec, ROOT.child("spec"))


def _template(
    new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, ctx: Context
) -> list[FieldError]:
    errors = validate_template_metadata(new.spec.metadata, ROOT.child("spec", "metadata"))
    errors += validate_device_claim(new.spec.spec.devices, ROOT.child("spec", "spec", "devices"), ctx)
    return errors if old is None else errors + check_immutable(new.spec, old.spec, ROOT.child("spec"))


_MADE: Final = made(dns_subdomain, namespaced=True)
RESOURCE_CLAIM_TEMPLATE: Final = kind(dns_subdomain, _template, update=(changed, _MADE, _template))


def claim_kind(status: Step) -> Validator:
    """The rules of claims; those for what is reported about one stand in `resource/claim_status.py`."""
    return kind(dns_subdomain, _claim, update=(_MADE, changed, _same_claim), status=status)
