"""CEL expressions about devices, as the allocator calls them, and the errors users see when one fails.

The CEL engine itself is given to the allocator (`DeviceExpressions`). An answer of a selector depends on the device and
the expression only, so each device remembers its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from nodeward.api.resource_v1 import DeviceAttribute, DeviceClass, DeviceSelector
from nodeward.rules.devices.errors import AllocationError, ExpressionError
from nodeward.rules.devices.inventory import PoolDevice

_MISSING_KEY: Final = "no such key:"
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
    "optional fields"
)


class DeviceExpression(Protocol):
    """A compiled expression. Both methods raise `ExpressionError`."""

    def matches(self, device: PoolDevice) -> bool:
        """Tell whether a selector selects the device."""
        ...

    def attribute(self, device: PoolDevice) -> DeviceAttribute:
        """Return the attribute that an expression derives from a device."""
        ...


class DeviceExpressions(Protocol):
    """Compiles expressions; equal texts are compiled once. Both methods raise `ExpressionError`."""

    def selector(self, expression: str) -> DeviceExpression: ...

    def derived_attribute(self, expression: str) -> DeviceExpression: ...


def selects_device(
    expressions: DeviceExpressions, selectors: Sequence[DeviceSelector], device: PoolDevice, owner: str
) -> bool:
    """Tell whether all selectors select the device. `owner`: whose they are, for errors: `class gpu`, `claim a/b`."""
    for number, selector in enumerate(selectors):
        text = selector.cel.expression if selector.cel is not None else ""
        answer = device.answers.get(text)
        if answer is None:
            answer = device.remember(
                text, _evaluate(expressions, text, device, f"{owner}: selector #{number}")
            )
        if not answer:
            return False
    return True


def selects_of_class(expressions: DeviceExpressions, class_: DeviceClass, device: PoolDevice) -> bool:
    """Tell whether the device is one of the class."""
    return selects_device(expressions, class_.spec.selectors, device, f"class {class_.metadata.name}")


def _evaluate(expressions: DeviceExpressions, text: str, device: PoolDevice, where: str) -> bool:
    try:
        program = expressions.selector(text)
    except ExpressionError as error:
        raise AllocationError(f"{where}: CEL compile error: {error}") from None
    try:
        return program.matches(device)
    except ExpressionError as error:
        hint = _HINT if _MISSING_KEY in str(error) else ""
        raise AllocationError(f"{where} on device {device.id}: CEL runtime error: {error}{hint}") from None


def derive(expressions: DeviceExpressions, name: str, text: str, device: PoolDevice) -> DeviceAttribute:
    """Return the value of a derived attribute of a request for one device."""
    try:
        program = expressions.derived_attribute(text)
    except ExpressionError as error:
        raise AllocationError(f"compile derived attribute {name} failed: {error}") from None
    try:
        return program.attribute(device)
    except ExpressionError as error:
        where = f"evaluate derived attribute {name} on device {device.id} failed"
        raise AllocationError(f"{where}: {error}") from None
