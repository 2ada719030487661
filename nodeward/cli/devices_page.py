"""The output of `nodeward devices`: pools, their devices, and who has each.

Pure; `nodeward devices` calls it. A pool is shown as the allocator understands it: the slices of its newest generation,
and whether they are all there and agree. Devices that a claim holds and no slice has are shown too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.base.quantity import Quantity
from nodeward.cli.listing import aligned
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.device_id import DeviceID
from nodeward.rules.devices.holders import DeviceHolder, holders_of
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.inventory import Inventory, PoolDevice, SliceDevices, VisiblePool
from nodeward.rules.devices.taint_rules import with_taint_rules

#: Lines of devices, and claims of one device, that the text has. JSON has all.
MOST_LINES: Final = 400
MOST_HOLDERS: Final = 10
#: With more devices than this that nobody has and that are alike, they share a line.
FEW_ALIKE: Final = 8
#: Taints named in one cell.
_MOST_TAINTS: Final = 3

#: A reader knows every field, whatever the scheduler's gates are.
_READER: Final = AllocatorFeatures(compatibility_groups=True)


@dataclass(frozen=True, slots=True)
class ShownDevice:
    """A device and who has it. `device` is None if no slice has it."""

    id: DeviceID
    device: PoolDevice | None
    holders: Sequence[DeviceHolder]
    #: nanos of each capacity that shares take together
    taken: Mapping[str, int]

    @property
    def is_in_use(self) -> bool:
        return any(not each.admin_access for each in self.holders)

    @property
    def nodes(self) -> str:
        """The node of the device, or how nodes are selected."""
        if self.device is None:
            return "not published"
        if self.device.node_name:
            return self.device.node_name
        return "by labels" if self.device.node_selector is not None else "all nodes"


@dataclass(frozen=True, slots=True)
class ShownPool:
    """A pool and its devices."""

    pool: VisiblePool
    slices: Sequence[SliceDevices]
    devices: Sequence[ShownDevice]

    @property
    def slice_count(self) -> int:
        """How many slices the driver says there are."""
        return self.slices[0].slice.spec.pool.resource_slice_count

    @property
    def state(self) -> str:
        if self.pool.is_incomplete:
            return "incomplete"
        return f"invalid: {self.pool.fault}" if self.pool.fault else "complete"

    @property
    def skips(self) -> bool | list[str] | None:
        """What the first slice with `skipNodeOperations` says (KEP-5945)."""
        found = (each.slice.spec.skip_node_operations for each in self.slices)
        return next((operations for operations in found if operations), None)


@dataclass(frozen=True, slots=True)
class DevicesPage:
    """Everything that is shown, of one node or of all."""

    node: str
    pools: Sequence[ShownPool]
    #: devices that claims hold and no pool has
    lost: Sequence[ShownDevice]
    notes: Sequence[str]


def devices_page(
    slices: Iterable[ResourceSlice],
    claims: Sequence[ResourceClaim],
    rules: Iterable[DeviceTaintRule] = (),
    node: Node | None = None,
    notes: Sequence[str] = (),
) -> DevicesPage:
    """Put together what is known of the devices of one node, or of all."""
    ordered = sorted(rules, key=lambda rule: rule.metadata.name)
    inventory = Inventory.of([with_taint_rules(each, ordered) for each in slices], _READER)
    holders = holders_of(claims)
    in_use = DevicesInUse()
    for claim in claims:
        if claim.status.allocation is not None:
            in_use.add(claim.status.allocation.devices.results)

    def shown(id_: DeviceID, device: PoolDevice | None) -> ShownDevice:
        return ShownDevice(id_, device, holders.get(id_, ()), in_use.capacity_of(id_))

    pools = [
        ShownPool(
            pool,
            found,
            [
                shown(device.id, device)
                for each in sorted(found, key=lambda each: each.name)
                for device in each.devices
                if node is None or device.is_on(node)
            ],
        )
        for pool, found in inventory.with_slices(node)
    ]
    # A device that is not published is nowhere, so it is no answer about one node.
    published = {each.id for pool in pools for each in pool.devices}
    lost = [] if node is not None else [shown(id_, None) for id_ in sorted(holders) if id_ not in published]
    return DevicesPage(node.metadata.name if node is not None else "", pools, lost, notes)


# -- text


def as_text(page: DevicesPage) -> str:
    """Format a table of pools and one of devices; the latter is cut where it gets long."""
    where = f"node {page.node} reaches" if page.node else "there are"
    parts = _pool_lines(page.pools) if page.pools else [f"{where} no devices"]
    groups = _alike([*(each for pool in page.pools for each in pool.devices), *page.lost])
    if groups:
        parts += ["", *_device_lines(groups[:MOST_LINES])]
    left = [each for group in groups[MOST_LINES:] for each in group]
    if left:
        held = sum(each.is_in_use for each in left)
        hint = "see -o json" if page.node else "name a node, or see -o json"
        parts.append(f"and {len(left)} more devices, {held} of them in use; {hint}")
    return "\n".join([*parts, *(f"note: {note}" for note in page.notes)])


def _alike(devices: Sequence[ShownDevice]) -> list[list[ShownDevice]]:
    """Return the devices by line: many that nobody has, one after the other and alike, share one."""
    found: list[list[ShownDevice]] = []
    for (_, _, _, _, is_held), run in groupby(devices, lambda each: (*_cells(each), bool(each.holders))):
        alike = list(run)
        found += [[each] for each in alike] if is_held or len(alike) <= FEW_ALIKE else [alike]
    return found


def _cells(each: ShownDevice) -> tuple[str, str, str, str]:
    """Return pool, node, taints and capacity as the table has them."""
    taints = each.device.device.taints if each.device is not None else ()
    return f"{each.id.driver}/{each.id.pool}", each.nodes, _taints(taints), _taken(each)


def _pool_lines(pools: Sequence[ShownPool]) -> list[str]:
    lines = [("DRIVER", "POOL", "GENERATION", "SLICES", "STATE", "DEVICES", "IN USE", "NODE OPERATIONS")]
    for each in pools:
        skips = each.skips
        skipped = ", ".join(skips) if isinstance(skips, list) else "all"
        lines.append(
            (
                *each.pool.id,
                str(each.slices[0].generation),
                f"{len(each.slices)}/{each.slice_count}",
                each.state,
                str(len(each.devices)),
                str(sum(device.is_in_use for device in each.devices)),
                f"skipped: {skipped}" if skips else "called",
            )
        )
    return aligned(lines)


def _device_lines(groups: Sequence[Sequence[ShownDevice]]) -> list[str]:
    lines = [("POOL", "DEVICE", "NODE", "TAINTS", "CAPACITY TAKEN", "CLAIM (PODS)")]
    for group in groups:
        each = group[0]
        pool, node, taints, taken = _cells(each)
        name = each.id.device if len(group) == 1 else f"{each.id.device} to {group[-1].id.device}"
        holders = [_holder(holder) for holder in each.holders[:MOST_HOLDERS]]
        if len(each.holders) > MOST_HOLDERS:
            holders.append(f"and {len(each.holders) - MOST_HOLDERS} more claims")
        first = pool, name, node, taints, taken
        for text in holders or [f"no claim ({len(group)} devices)" if len(group) > 1 else ""]:
            lines.append((*first, text))
            first = "", "", "", "", ""
    return aligned(lines)


def _taints(taints: Sequence[DeviceTaint]) -> str:
    named = [_taint(each) for each in taints[:_MOST_TAINTS]]
    more = [f"{len(taints) - _MOST_TAINTS} more"] if len(taints) > _MOST_TAINTS else []
    return ", ".join([*named, *more])


def _taint(taint: DeviceTaint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def _taken(device: ShownDevice) -> str:
    """Format how much of a shared device is taken: `memory 20Gi/80Gi`."""
    if device.device is None or not device.device.allows_many:
        return ""
    return ", ".join(
        f"{name} {Quantity.of_nanos(device.taken.get(name, 0), each.value.format)}/{each.value}"
        for name, each in sorted(device.device.device.capacity.items())
    )


def _holder(holder: DeviceHolder) -> str:
    share = ", ".join(f"{name} {amount}" for name, amount in sorted(holder.consumed.items()))
    pods = ", ".join(holder.pods[:MOST_HOLDERS]) or "no pod"
    more = f", {len(holder.pods) - MOST_HOLDERS} more" if len(holder.pods) > MOST_HOLDERS else ""
    text = f"{holder.claim} ({pods}{more})"
    if holder.admin_access:
        text += " with admin access"
    return f"{text}: {share}" if share else text


# -- JSON


def as_json(page: DevicesPage) -> str:
    tree: dict[str, Any] = {"pools": [_pool_tree(each) for each in page.pools]}
    if page.node:
        tree = {"node": page.node} | tree
    else:
        tree["notPublished"] = [_device_tree(each) for each in page.lost]
    return msgspec.json.format(msgspec.json.encode(tree | {"notes": page.notes})).decode()


def _pool_tree(pool: ShownPool) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "driver": pool.pool.id.driver,
        "pool": pool.pool.id.pool,
        "generation": pool.slices[0].generation,
        "slices": len(pool.slices),
        "resourceSliceCount": pool.slice_count,
        "state": pool.state,
    }
    if pool.skips:
        tree["skipNodeOperations"] = pool.skips
    return tree | {"devices": [_device_tree(each) for each in pool.devices]}


def _device_tree(shown: ShownDevice) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": shown.id.device}
    device = shown.device
    if device is None:
        tree = {"driver": shown.id.driver, "pool": shown.id.pool} | tree
    else:
        tree["node"] = shown.nodes
        if device.device.taints:
            tree["taints"] = [_taint(each) for each in device.device.taints]
        if device.device.capacity:
            tree["capacity"] = {name: str(each.value) for name, each in device.device.capacity.items()}
        if device.allows_many:
            tree["taken"] = {
                name: str(Quantity.of_nanos(shown.taken.get(name, 0), each.value.format))
                for name, each in device.device.capacity.items()
            }
    return tree | {"claims": [_holder_tree(each) for each in shown.holders]}


def _holder_tree(holder: DeviceHolder) -> dict[str, Any]:
    tree: dict[str, Any] = {"claim": holder.claim, "request": holder.request, "reservedFor": holder.pods}
    if holder.admin_access:
        tree["adminAccess"] = True
    if holder.share_id:
        tree["shareID"] = holder.share_id
    if holder.consumed:
        tree["consumedCapacity"] = {name: str(amount) for name, amount in holder.consumed.items()}
    return tree
