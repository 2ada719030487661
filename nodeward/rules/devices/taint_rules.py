"""DeviceTaintRules, applied: slices in which the devices a rule selects have its taint too.

Called by whoever shows slices to the allocator, and by the device taint eviction controller. A selector that names
nothing selects every device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from nodeward.api.resource_v1 import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice


def with_taint_rules(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """Return the slice with the taints of all rules that select some of its devices; itself if none does."""
    spec = slice_.spec
    found: Sequence[Device] = spec.devices
    for rule in rules:
        wanted = rule.spec.device_selector
        if not selects_pool(wanted, spec.driver, spec.pool.name):
            continue
        name = wanted.device if wanted is not None else None
        found = [
            replace(each, taints=[*each.taints, rule.spec.taint]) if name in (None, each.name) else each
            for each in found
        ]
    if found is spec.devices:
        return slice_
    return replace(slice_, spec=replace(spec, devices=found))


def selects_pool(wanted: DeviceTaintSelector | None, driver: str, pool: str) -> bool:
    """Tell whether a rule with this selector selects devices of the pool, if they are there."""
    return wanted is None or (wanted.driver in (None, driver) and wanted.pool in (None, pool))


def selects_device(wanted: DeviceTaintSelector | None, driver: str, pool: str, device: str) -> bool:
    """Tell whether a rule with this selector selects the device."""
    return selects_pool(wanted, driver, pool) and (wanted is None or wanted.device in (None, device))
