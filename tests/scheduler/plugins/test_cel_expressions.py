"""What CEL expressions see of a device, and what is kept of compiled ones."""

from __future__ import annotations

import pytest

from nodeward.api.resource_v1 import DeviceAttribute
from nodeward.rules.devices.errors import ExpressionError
from nodeward.rules.devices.inventory import PoolDevice
from nodeward.scheduler.plugins.dra.cel_expressions import MOST_COMPILED, CelDeviceExpressions
from tests.rules.devices.allocating import DRIVER, slice_of


def device() -> PoolDevice:
    attributes = {
        "model": {"string": "a100"},
        "numa": {"int": 1},
        "ready": {"bool": True},
        "version": {"version": "1.10.0"},
        "links": {"strings": ["l0", "l1"]},
        "example.com/rack": {"string": "r7"},
    }
    described = {
        "name": "d",
        "attributes": attributes,
        "capacity": {"memory": {"value": "40Gi"}},
        "allowMultipleAllocations": True,
    }
    slice_ = slice_of([described])
    return PoolDevice(slice_, slice_.spec.devices[0])


OWN = f'device.attributes["{DRIVER}"]'


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f'{OWN}.model == "a100" && {OWN}.numa == 1 && {OWN}.ready',
        f'{OWN}.version.isGreaterThan(semver("1.9.0"))',
        f'"l1" in {OWN}.links',
        'device.attributes["example.com"].rack.startsWith("r")',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("30Gi")) > 0',
        "device.allowMultipleAllocations",
        '!has(device.attributes["other.example.com"].rack)',
    ],
)
def test_a_selector_sees_driver_attributes_capacity_and_sharing(expression: str) -> None:
    assert CelDeviceExpressions().selector(expression).matches(device()) is True


def test_an_attribute_that_is_not_there_is_an_error() -> None:
    selector = CelDeviceExpressions().selector(f'{OWN}.nothing == "x"')
    with pytest.raises(ExpressionError, match="no such key: nothing"):
        selector.matches(device())


@pytest.mark.parametrize(
    ("expression", "attribute"),
    [
        (f"{OWN}.model + device.driver", DeviceAttribute(string=f"a100{DRIVER}")),
        (f"{OWN}.numa + 1", DeviceAttribute(int_=2)),
        (f"!{OWN}.ready", DeviceAttribute(bool_=False)),
        (f"{OWN}.version", DeviceAttribute(version="1.10.0")),
        (f"{OWN}.links", DeviceAttribute(strings=["l0", "l1"])),
    ],
)
def test_a_derived_attribute_has_the_type_of_its_expression(
    expression: str, attribute: DeviceAttribute
) -> None:
    assert CelDeviceExpressions().derived_attribute(expression).attribute(device()) == attribute


def test_an_expression_is_compiled_once_and_those_used_last_are_kept() -> None:
    engine = CelDeviceExpressions()
    kept = engine.selector("device.driver == 'kept'")
    for number in range(MOST_COMPILED + 20):
        engine.selector(f"device.driver == '{number}'")
        assert engine.selector("device.driver == 'kept'") is kept
    assert len(engine._kept) == MOST_COMPILED
    for _ in range(2):
        with pytest.raises(ExpressionError, match="compilation failed"):
            engine.selector("device.driver ==")
