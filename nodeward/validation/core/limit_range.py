"""Limit ranges: the least, the most and the usual that pods, containers and claims may ask for."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import LimitRange, LimitRangeItem
from nodeward.base.fielderror import FieldError, duplicate, forbidden, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import dns_subdomain, qualified_name
from nodeward.rules.resource_names import is_overcommit_allowed
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_resource_name
from nodeward.validation.validator import Validator

_ONE: Final = Quantity.of_int(1)


def _type(kind: str, path: FieldPath) -> list[FieldError]:
    if faults := qualified_name(kind):
        return [invalid(path, kind, fault) for fault in faults]
    if "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
        return [invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _names(kind: str, amounts: dict[str, Quantity], path: FieldPath) -> list[FieldError]:
    check = validate_container_resource_name if kind in ("Pod", "Container") else validate_resource_name
    return [error for name in amounts for error in check(name, path.key(name))]


def _limits(limits: list[LimitRangeItem]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, item in enumerate(limits):
        at = ROOT.child("spec", "limits").index(i)
        errors += _type(item.type, at.child("type"))
        if item.type in seen:
            errors.append(duplicate(at.child("type"), item.type))
        seen.add(item.type)
        errors += _item(item, at)
    return errors


def _item(item: LimitRangeItem, path: FieldPath) -> list[FieldError]:
    errors = _names(item.type, item.max, path.child("max"))
    errors += _names(item.type, item.min, path.child("min"))
    default, default_request = item.default, item.default_request
    if item.type == "Pod":
        detail = "may not be specified when `type` is 'Pod'"
        if default:
            errors.append(forbidden(path.child("default"), detail))
        if default_request:
            errors.append(forbidden(path.child("defaultRequest"), detail))
        default, default_request = {}, {}
    errors += _names(item.type, default, path.child("default"))
    errors += _names(item.type, default_request, path.child("defaultRequest"))
    if item.type == "PersistentVolumeClaim" and "storage" not in item.min and "storage" not in item.max:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(path.child("limits"), detail))
    errors += _names(item.type, item.max_limit_request_ratio, path.child("maxLimitRequestRatio"))
    names = dict.fromkeys((*item.max, *item.min, *default, *default_request, *item.max_limit_request_ratio))
    for name in names:
        errors += _together(
            name,
            path,
            least=item.min.get(name),
            most=item.max.get(name),
            usual=default.get(name),
            usual_request=default_request.get(name),
            ratio=item.max_limit_request_ratio.get(name),
        )
    return errors


def _together(
    name: str,
    path: FieldPath,
    *,
    least: Quantity | None,
    most: Quantity | None,
    usual: Quantity | None,
    usual_request: Quantity | None,
    ratio: Quantity | None,
) -> list[FieldError]:
    errors: list[FieldError] = []
    request_at, default_at = path.child("defaultRequest").key(name), path.child("default").key(name)
    if least is not None and most is not None and least > most:
        detail = f"min value {least} is greater than max value {most}"
        errors.append(invalid(path.child("min").key(name), least, detail))
    if usual_request is not None:
        if least is not None and least > usual_request:
            detail = f"min value {least} is greater than default request value {usual_request}"
            errors.append(invalid(request_at, usual_request, detail))
        if most is not None and usual_request > most:
            detail = f"default request value {usual_request} is greater than max value {most}"
            errors.append(invalid(request_at, usual_request, detail))
        if usual is not None and usual_request > usual:
            detail = f"default request value {usual_request} is greater than default limit value {usual}"
            errors.append(invalid(request_at, usual_request, detail))
    if usual is not None:
        if least is not None and least > usual:
            detail = f"min value {least} is greater than default value {usual}"
            errors.append(invalid(default_at, least, detail))
        if most is not None and usual > most:
            detail = f"default value {usual} is greater than max value {most}"
            errors.append(invalid(default_at, most, detail))
    if ratio is not None:
        errors += _ratio(ratio, least, most, path.child("maxLimitRequestRatio").key(name))
    if usual is None or usual_request is None or is_overcommit_allowed(name):
        return errors
    if usual != usual_request:
        detail = f"default value {usual} must equal to defaultRequest value {usual_request} in {name}"
        errors.append(invalid(request_at, usual_request, detail))
    return errors


def _ratio(
    ratio: Quantity, least: Quantity | None, most: Quantity | None, path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    if ratio < _ONE:
        errors.append(invalid(path, ratio, f"ratio {ratio} is less than 1"))
    if least is not None and most is not None:
        possible = most.nanos / least.nanos if least else float("inf")
        if ratio.nanos / _ONE.nanos > possible:
            errors.append(invalid(path, ratio, f"ratio {ratio} is greater than max/min = {possible:f}"))
    return errors


def _create(limits: LimitRange, ctx: Context) -> list[FieldError]:
    return validate_metadata(limits.metadata, dns_subdomain, namespaced=True) + _limits(limits.spec.limits)


def _update(new: LimitRange, old: LimitRange, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _create(new, ctx)


LIMIT_RANGE: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)
