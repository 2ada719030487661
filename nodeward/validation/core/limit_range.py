"""Limit ranges: the least, the most and the usual that pods, containers and claims may ask for."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.cluster import LimitRange, LimitRangeItem
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import dns_subdomain, qualified_name
from nodeward.rules.resource_names import is_overcommit_allowed
from nodeward.validation.checks import Distinct, check_unset
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_resource_name

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


def _limits(new: LimitRange, old: LimitRange | None, ctx: Context) -> list[FieldError]:
    types = Distinct()
    errors: list[FieldError] = []
    for i, item in enumerate(new.spec.limits):
        at = ROOT.child("spec", "limits").index(i)
        errors += _type(item.type, at.child("type")) + types.add(item.type, at.child("type"))
        errors += _item(item, at)
    return errors


def _item(item: LimitRangeItem, path: FieldPath) -> list[FieldError]:
    errors = _names(item.type, item.max, path.child("max"))
    errors += _names(item.type, item.min, path.child("min"))
    default, default_request = item.default, item.default_request
    if item.type == "Pod":
        detail = "may not be specified when `type` is 'Pod'"
        errors += check_unset(path, detail, default=default, defaultRequest=default_request)
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
    #: which field is refused, the value shown, then the smaller of two amounts and the larger one with their names
    orders = (
        ("min", least, "min value", least, "max value", most),
        ("defaultRequest", usual_request, "min value", least, "default request value", usual_request),
        ("defaultRequest", usual_request, "default request value", usual_request, "max value", most),
        (
            "defaultRequest",
            usual_request,
            "default request value",
            usual_request,
            "default limit value",
            usual,
        ),
        ("default", least, "min value", least, "default value", usual),
        ("default", most, "default value", usual, "max value", most),
    )
    for field, shown, what, low, other, high in orders:
        if low is not None and high is not None and low > high:
            detail = f"{what} {low} is greater than {other} {high}"
            errors.append(invalid(path.child(field).key(name), shown, detail))
    if ratio is not None:
        errors += _ratio(ratio, least, most, path.child("maxLimitRequestRatio").key(name))
    if usual is None or usual_request is None or is_overcommit_allowed(name) or usual == usual_request:
        return errors
    detail = f"default value {usual} must equal to defaultRequest value {usual_request} in {name}"
    return [*errors, invalid(path.child("defaultRequest").key(name), usual_request, detail)]


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


LIMIT_RANGE: Final = kind(
    dns_subdomain, _limits, update=(changed, made(dns_subdomain, namespaced=True), _limits)
)
