"""Selectors and derived attributes of devices, compiled by the CEL engine: the `DeviceExpressions` of the scheduler.

Expressions are compiled in the environment for stored objects, which accepts all that an API server of this or an
earlier version accepted. What was compiled last is kept, errors too, so that the expressions of classes and templates
that are in use are compiled once. Each evaluation has the cost limit of Kubernetes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from nodeward.api.resource_v1 import Device, DeviceAttribute
from nodeward.cel.device import (
    COST_LIMIT,
    as_attribute,
    compile_derived_attribute,
    compile_selector,
    device_variables,
    matches,
    parse_version,
)
from nodeward.cel.library.semvers import Semver
from nodeward.cel.program import CompileErrors, Program
from nodeward.cel.values import EvaluationError, Value
from nodeward.rules.devices.errors import ExpressionError
from nodeward.rules.devices.inventory import PoolDevice

#: Expressions that are kept compiled: those used last.
MOST_COMPILED: Final = 256


class CelExpression:
    """A compiled expression about one device."""

    def __init__(self, program: Program, variables: Callable[[PoolDevice], dict[str, Value]]) -> None:
        self._program = program
        self._variables = variables

    def matches(self, device: PoolDevice) -> bool:
        """Tell whether a selector selects the device; raises `ExpressionError`."""
        try:
            return matches(self._program, self._variables(device))
        except EvaluationError as error:
            raise ExpressionError(str(error)) from None

    def attribute(self, device: PoolDevice) -> DeviceAttribute:
        """Return the attribute that is derived from the device; raises `ExpressionError`."""
        try:
            value = as_attribute(self._program.evaluate(self._variables(device), COST_LIMIT))
        except EvaluationError as error:
            raise ExpressionError(str(error)) from None
        return _as_device_attribute(value)


class CelDeviceExpressions:
    """Compiles expressions; of one scheduler."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bool, str], CelExpression | ExpressionError] = OrderedDict()
        #: the device that was looked at last, and what expressions see of it: several look at one device in turn
        self._last: tuple[PoolDevice, dict[str, Value]] | None = None

    def selector(self, expression: str) -> CelExpression:
        """Return a selector; raises `ExpressionError` if it does not compile."""
        return self._compiled(expression, is_selector=True)

    def derived_attribute(self, expression: str) -> CelExpression:
        """Return the expression of a derived attribute; raises `ExpressionError` if it does not compile."""
        return self._compiled(expression, is_selector=False)

    def _compiled(self, expression: str, *, is_selector: bool) -> CelExpression:
        key = is_selector, expression
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._compile(expression, is_selector=is_selector)
            if len(self._kept) > MOST_COMPILED:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        if isinstance(found, ExpressionError):
            raise found
        return found

    def _compile(self, expression: str, *, is_selector: bool) -> CelExpression | ExpressionError:
        compile_ = compile_selector if is_selector else compile_derived_attribute
        try:
            return CelExpression(compile_(expression), self._variables)
        except CompileErrors as error:
            return ExpressionError(str(error))

    def _variables(self, device: PoolDevice) -> dict[str, Value]:
        last = self._last
        if last is None or last[0] is not device:
            last = self._last = device, _variables_of(device.id.driver, device.device)
        return last[1]


def _variables_of(driver: str, device: Device) -> dict[str, Value]:
    capacity = {name: each.value for name, each in device.capacity.items()}
    attributes = {name: _value_of(each) for name, each in device.attributes.items()}
    return device_variables(driver, attributes, capacity, device.allow_multiple_allocations)


def _value_of(attribute: DeviceAttribute) -> Value:
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values:
            return [*values]
    if attribute.versions:
        return [parse_version(each) for each in attribute.versions]
    if attribute.version is not None:
        return parse_version(attribute.version)
    for value in (attribute.string, attribute.int_, attribute.bool_):
        if value is not None:
            return value
    raise EvaluationError("unsupported attribute value")


def _as_device_attribute(value: Value) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_=value)
    if isinstance(value, int):
        return DeviceAttribute(int_=value)
    if isinstance(value, str):
        return DeviceAttribute(string=value)
    if isinstance(value, Semver):
        return DeviceAttribute(version=str(value))
    if not value:
        return DeviceAttribute()
    if isinstance(value[0], bool):
        return DeviceAttribute(bools=value)
    if isinstance(value[0], int):
        return DeviceAttribute(ints=value)
    if isinstance(value[0], str):
        return DeviceAttribute(strings=value)
    return DeviceAttribute(versions=[str(each) for each in value])
