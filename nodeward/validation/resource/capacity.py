"""How much of a device's capacity one request may take, for devices that many requests share.

In goes a policy with the capacity it divides, out come field errors. Amounts are exact; steps are counted in whole
units.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.resource_v1 import CapacityRequestPolicy, CapacityRequestPolicyRange
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity
from nodeward.validation.checks import NOT_NEGATIVE, check_count, check_distinct

_VALUES_LIMIT: Final = 10
_LARGEST: Final = Quantity.of_int(2**63 - 1)


def validate_request_policy(
    policy: CapacityRequestPolicy, capacity: Quantity, path: FieldPath
) -> list[FieldError]:
    values, span = policy.valid_values, policy.valid_range
    if values and span is not None:
        detail = (
            "exactly one policy can be specified, "
            'cannot specify "validValues" and "validRange" at the same time'
        )
        return [forbidden(path, detail)]
    if values:
        if policy.default is None:
            return [required(path.child("default"), "required when validValues is defined")]
        return _values(values, policy.default, capacity, path.child("validValues"))
    if span is not None:
        if policy.default is None:
            return [required(path.child("default"), "required when validRange is defined")]
        return _range(span, policy.default, capacity, path.child("validRange"))
    return []


def _values(
    values: list[Quantity], default: Quantity, capacity: Quantity, path: FieldPath
) -> list[FieldError]:
    errors = [
        invalid(path.index(i), str(values[i]), "values must be sorted in ascending order")
        for i in range(1, len(values))
        if values[i - 1] > values[i]
    ]
    too_much = check_count(values, path, _VALUES_LIMIT)
    errors += too_much
    if not too_much:
        detail = f"option is larger than capacity value: {capacity}"
        errors += [
            invalid(path.index(i), str(value), detail) for i, value in enumerate(values) if value > capacity
        ]
        errors += check_distinct([str(value.value) for value in values], path)
    if too_much or default not in values:
        detail = "default value is not valid according to the requestPolicy"
        errors.append(invalid(path, str(default), detail))
    return errors


def _range(
    span: CapacityRequestPolicyRange, default: Quantity, capacity: Quantity, path: FieldPath
) -> list[FieldError]:
    least, most = span.min, span.max
    if least is None:
        return [required(path.child("min"), "required when validRange is defined")]
    errors: list[FieldError] = []
    if least > capacity:
        detail = f"min is larger than capacity value: {capacity}"
        errors.append(invalid(path.child("min"), str(least), detail))
    if default < least:
        errors.append(invalid(path.child("default"), str(default), f"default is less than min: {least}"))
    if most is not None:
        at = path.child("max")
        if least > most:
            errors.append(invalid(at, str(least), f"min is larger than max: {most}"))
        if most > capacity:
            errors.append(invalid(at, str(most), f"max is larger than capacity value: {capacity}"))
        if default > most:
            errors.append(invalid(path.child("default"), str(default), f"default is more than max: {most}"))
    if span.step is not None:
        errors += _step(span.step, least, most, default, capacity, path)
    return errors


def _step(
    step: Quantity,
    least: Quantity,
    most: Quantity | None,
    default: Quantity,
    capacity: Quantity,
    path: FieldPath,
) -> list[FieldError]:
    at = path.child("step")
    if step.sign <= 0:
        return [invalid(at, str(step), "must be greater than zero")]
    errors: list[FieldError] = []
    first = least + step
    if first > capacity:
        detail = f"one step {first} is larger than capacity value: {capacity}"
        errors.append(invalid(at, str(step), detail))
    named = (("default", default), ("min", least), ("max", most), ("step", step))
    unsafe = [
        error
        for field, amount in named
        if amount is not None
        for error in _countable(amount, path.child(field))
    ]
    if unsafe:
        return errors + unsafe
    for amount in (default, most):
        if amount is not None and (amount.value - least.value) % step.value:
            detail = f"value is not a multiple of a given step ({step}) from ({least})"
            errors.append(invalid(at, str(amount), detail))
    return errors


def _countable(amount: Quantity, path: FieldPath) -> list[FieldError]:
    if amount.sign < 0:
        return [invalid(path, str(amount), NOT_NEGATIVE)]
    if amount > _LARGEST:
        return [invalid(path, str(amount), "must not be larger than 9223372036854775807")]
    return []
