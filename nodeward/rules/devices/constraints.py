"""Constraints of a claim: an attribute that all its devices share, or in which all differ.

A constraint is told of every device that is tried and of every device that is taken back, in reverse order. It refuses
a device as soon as no further device could make it hold. A device that lacks the attribute is always refused.

With list attributes (DRAListTypeAttributes) a value is a set: devices match while one value is common to all, and
differ if no two have a value in common. Without, an attribute that is a list compares with nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from nodeward.api.resource_v1 import DeviceAttribute, DeviceConstraint

if TYPE_CHECKING:
    from nodeward.rules.devices.inventory import PoolDevice
    from nodeward.rules.devices.requests import RequestToAllocate

#: (kind of value, value or values)
AttributeValue: TypeAlias = "tuple[str, object]"
#: The attribute of this name that a device has for a request, if it has one.
AttributeLookup: TypeAlias = "Callable[[RequestToAllocate, PoolDevice, str], DeviceAttribute | None]"


class ClaimConstraint(ABC):
    """One constraint of one claim during one search."""

    def __init__(self, requests: list[str], attribute: str, lookup: AttributeLookup, *, lists: bool) -> None:
        self._requests: Final = frozenset(requests)
        self._attribute: Final = attribute
        self._lookup: Final = lookup
        self._lists: Final = lists

    def covers(self, request: RequestToAllocate) -> bool:
        """Tell whether devices of the request must obey. A request may be named with or without its sub-request."""
        return not self._requests or request.full_name in self._requests or request.parent in self._requests

    def add(self, request: RequestToAllocate, device: PoolDevice) -> bool:
        """Accept the device, or refuse it (False) and stay as before."""
        if not self.covers(request):
            return True
        attribute = self._lookup(request, device, self._attribute)
        return attribute is not None and self._accept(attribute)

    def remove(self, request: RequestToAllocate) -> None:
        """Take back the device that was added last for a request."""
        if self.covers(request):
            self._drop_last()

    @abstractmethod
    def _accept(self, attribute: DeviceAttribute) -> bool: ...

    @abstractmethod
    def _drop_last(self) -> None: ...


class MatchAttribute(ClaimConstraint):
    """All devices have the attribute in common."""

    def __init__(self, requests: list[str], attribute: str, lookup: AttributeLookup, *, lists: bool) -> None:
        super().__init__(requests, attribute, lookup, lists=lists)
        #: what is common to the devices so far, one entry per device
        self._common: Final[list[AttributeValue | None]] = []

    def _accept(self, attribute: DeviceAttribute) -> bool:
        value: AttributeValue | None
        if self._lists:
            values = values_of(attribute)
            if values is None:
                return False
            if self._common:
                values = _intersection(self._common[-1], values)
            value = values
            if value is None:
                return False
        else:
            value = scalar_of(attribute)
            if self._common and (value is None or value != self._common[-1]):
                return False
        self._common.append(value)
        return True

    def _drop_last(self) -> None:
        self._common.pop()


class DistinctAttribute(ClaimConstraint):
    """No two devices have the attribute in common."""

    def __init__(self, requests: list[str], attribute: str, lookup: AttributeLookup, *, lists: bool) -> None:
        super().__init__(requests, attribute, lookup, lists=lists)
        self._taken: Final[list[AttributeValue | None]] = []

    def _accept(self, attribute: DeviceAttribute) -> bool:
        value: AttributeValue | None
        if self._lists:
            value = values_of(attribute)
            if value is None or any(_intersection(each, value) is not None for each in self._taken):
                return False
        else:
            value = scalar_of(attribute)
            if self._taken and (value is None or value in self._taken):
                return False
        self._taken.append(value)
        return True

    def _drop_last(self) -> None:
        self._taken.pop()


def make_constraint(
    constraint: DeviceConstraint, lookup: AttributeLookup, *, lists: bool
) -> ClaimConstraint | None:
    """Return the constraint at the start of a search; None if it is of a kind nobody knows."""
    if constraint.match_attribute is not None:
        return MatchAttribute(constraint.requests, constraint.match_attribute, lookup, lists=lists)
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(constraint.requests, constraint.distinct_attribute, lookup, lists=lists)
    return None


def published_attribute(device: PoolDevice, name: str) -> DeviceAttribute | None:
    """Return the attribute a driver published under a name, or under its short name in the driver's own domain."""
    attributes = device.device.attributes
    found = attributes.get(name)
    if found is None:
        domain, _, short = name.partition("/")
        if short and domain == device.id.driver:
            found = attributes.get(short)
    return found


def scalar_of(attribute: DeviceAttribute) -> AttributeValue | None:
    """Return the one value of an attribute with its kind; None if it is a list."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    return ("version", attribute.version) if attribute.version is not None else None


def values_of(attribute: DeviceAttribute) -> AttributeValue | None:
    """Return the values of an attribute as a set with its kind, also if it is only one; None if it has none."""
    for kind, values in (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    ):
        if values:
            return kind, frozenset(values)
    found = scalar_of(attribute)
    return (found[0], frozenset((found[1],))) if found is not None else None


def _intersection(one: AttributeValue | None, other: AttributeValue) -> AttributeValue | None:
    if one is None or one[0] != other[0]:
        return None
    mine, theirs = one[1], other[1]
    if not isinstance(mine, frozenset) or not isinstance(theirs, frozenset):
        return None
    common = mine & theirs
    return (one[0], common) if common else None
