"""Capacity that requests take from a device: rounded as the device's policy asks, and compared with what is left.

A device that allows several allocations is shared: each share takes an amount of every capacity the device has. What a
request does not name is the policy's default, or the whole capacity. On other devices a request for capacity only says
how large the device must be.

Called by the allocator. `CapacityError`: the amount cannot be worked out at all; the allocation ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeward.api.resource_v1 import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from nodeward.base.errors import NodewardError
from nodeward.base.quantity import Quantity

_INT64_MAX: Final = 2**63 - 1
_NANOS_PER_MILLI: Final = 10**6
_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"


class CapacityError(NodewardError):
    """An amount is negative, or larger than Kubernetes can count."""


def consumed_capacity(
    requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> dict[str, Quantity]:
    """Return what a request takes of each capacity of a device. `fractional`: ranges may have fractions."""
    found: dict[str, Quantity] = {}
    for name, available in capacity.items():
        try:
            amount = _consumed(requested.get(name), available, fractional=fractional)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from None
        if amount.nanos < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        found[name] = amount
    return found


def fits_capacity(
    requested: Mapping[str, Quantity],
    capacity: Mapping[str, DeviceCapacity],
    *held: Mapping[str, int],
    fractional: bool,
) -> bool:
    """Tell whether the device has what is requested, beside the nanos per capacity that others hold."""
    if not capacity:
        return not requested
    if any(name not in capacity for name in requested):
        return False
    for name, amount in consumed_capacity(requested, capacity, fractional=fractional).items():
        available = capacity[name]
        if _violates(amount, available.request_policy, fractional=fractional):
            return False
        if amount.nanos + sum(each.get(name, 0) for each in held) > available.value.nanos:
            return False
    return True


def _consumed(requested: Quantity | None, capacity: DeviceCapacity, *, fractional: bool) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_step(requested, policy.valid_range, policy.valid_range.min, fractional=fractional)
    return next((each for each in policy.valid_values if requested <= each), requested)


def _rounded_to_step(
    requested: Quantity, valid: CapacityRequestPolicyRange, least: Quantity, *, fractional: bool
) -> Quantity:
    if requested < least:
        return least
    step = valid.step
    if step is None or step.nanos <= 0:
        return requested
    if fractional and _is_in_milli(valid):
        if requested.nanos % _NANOS_PER_MILLI or requested.milli_value > _INT64_MAX:
            raise CapacityError(
                f"{_NOT_REPRESENTABLE}: request {requested} is not a representable milli value"
            )
        amount = _next_step(requested.milli_value, least.milli_value, step.milli_value)
        if amount > _INT64_MAX:
            passed = f"rounding request {requested} up to the next step passes the milli-value range"
            raise CapacityError(f"{_NOT_REPRESENTABLE}: {passed}")
        return Quantity.of_milli(amount, step.format)
    if requested.value > _INT64_MAX:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested} exceeds MaxInt64")
    amount = _next_step(requested.value, least.value, step.value)
    if amount > _INT64_MAX:
        passed = f"rounding request {requested} up to the next step passes MaxInt64"
        raise CapacityError(f"{_NOT_REPRESENTABLE}: {passed}")
    return Quantity.of_int(amount, step.format)


def _next_step(wanted: int, least: int, step: int) -> int:
    return least + -(-(wanted - least) // step) * step


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, *, fractional: bool) -> bool:
    if policy is None or policy.default == amount:
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and amount not in policy.valid_values
    if valid.max is not None and amount > valid.max:
        return True
    step, least = valid.step, valid.min
    if step is None or step.nanos <= 0 or least is None:
        return False
    if fractional and _is_in_milli(valid):
        if amount.nanos % _NANOS_PER_MILLI:
            return True
        return (amount.milli_value - least.milli_value) % step.milli_value != 0
    return (amount.value - least.value) % step.value != 0


def _is_in_milli(valid: CapacityRequestPolicyRange) -> bool:
    """Tell whether the whole range can be counted in thousandths without loss."""
    return all(
        each.nanos % _NANOS_PER_MILLI == 0 and abs(each.milli_value) <= _INT64_MAX
        for each in (valid.min, valid.max, valid.step)
        if each is not None
    )
