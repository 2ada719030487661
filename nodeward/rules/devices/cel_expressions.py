"""Selectors about the driver of a device, until the CEL engine is here: every other expression is refused."""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.resource_v1 import DeviceAttribute
from nodeward.rules.devices.errors import ExpressionError
from nodeward.rules.devices.inventory import PoolDevice

_DRIVER: Final = re.compile(r'device\.driver == "([^"]*)"')


class _DriverIs:
    def __init__(self, name: str) -> None:
        self._name = name

    def matches(self, device: PoolDevice) -> bool:
        return device.id.driver == self._name

    def attribute(self, device: PoolDevice) -> DeviceAttribute:
        raise ExpressionError("not supported")


class CelDeviceExpressions:
    """Compiles expressions about devices."""

    def selector(self, expression: str) -> _DriverIs:
        match = _DRIVER.fullmatch(expression)
        if match is None:
            raise ExpressionError(f"compilation failed: {expression}")
        return _DriverIs(match[1])

    def derived_attribute(self, expression: str) -> _DriverIs:
        raise ExpressionError(f"compilation failed: {expression}")
