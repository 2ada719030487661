"""Pools of devices: which ResourceSlices count, and which devices a node can reach, in the order they are tried.

`Inventory` is made from all slices; `on(node)` gives the pools of one node. Of each pool only the slices of its newest
generation count. A pool whose slices are not all there is incomplete, one that contradicts itself is invalid; neither
gives devices. Which node sees which slices is decided by the slice, or by each device where the slice says so.

What must stay true: the order of devices depends on names only (driver, pool, slice, then the order in the slice; pools
with binding conditions last), so the same slices give the same allocation whatever order they became known in.

Called by the allocator and whoever explains it or shows devices; calls `affinity` for node selectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import NodeSelector
from nodeward.api.resource_v1 import Device, ResourceSlice
from nodeward.rules.affinity import selects
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.device_id import DeviceID, PoolID
from nodeward.rules.taints import BLOCKING, with_effect

#: Of so many expressions a device remembers the answer; more than that are evaluated again.
REMEMBERED_EXPRESSIONS: Final = 64


class PoolDevice:
    """A device of a slice, with what the allocator wants to know of it quickly. Shared by all nodes that see it."""

    __slots__ = ("allows_many", "answers", "consumes", "device", "id", "slice", "taints")

    def __init__(self, slice_: ResourceSlice, device: Device) -> None:
        self.id: Final = DeviceID(slice_.spec.driver, slice_.spec.pool.name, device.name)
        self.device: Final = device
        self.slice: Final = slice_
        self.allows_many: Final = bool(device.allow_multiple_allocations)
        #: (counter set, nanos per counter, compatibility groups)
        self.consumes: Final = tuple(
            (
                each.counter_set,
                {name: counter.value.nanos for name, counter in each.counters.items()},
                frozenset(each.compatibility_groups),
            )
            for each in device.consumes_counters
        )
        #: the taints that keep claims away
        self.taints: Final = with_effect(device.taints, *BLOCKING)
        #: what selectors said of the device, by expression
        self.answers: Final[dict[str, bool]] = {}

    def remember(self, expression: str, is_match: bool) -> bool:
        """Keep the answer of a selector; give it back."""
        if len(self.answers) >= REMEMBERED_EXPRESSIONS:
            self.answers.clear()
        self.answers[expression] = is_match
        return is_match

    @property
    def node_name(self) -> str | None:
        """The only node that has the device, if there is one."""
        spec = self.slice.spec
        return self.device.node_name if spec.per_device_node_selection else spec.node_name

    @property
    def node_selector(self) -> NodeSelector | None:
        """The nodes that reach the device, if they are selected by labels."""
        spec = self.slice.spec
        return self.device.node_selector if spec.per_device_node_selection else spec.node_selector

    def is_on(self, node: Node) -> bool:
        """Tell whether the node reaches the device, where each device of the slice says so itself."""
        if not self.slice.spec.per_device_node_selection:
            return True
        device = self.device
        return _reaches(node, device.node_name, device.all_nodes, device.node_selector)


class SliceDevices:
    """A slice and its devices."""

    __slots__ = ("devices", "name", "pool", "slice", "uses_groups")

    def __init__(self, slice_: ResourceSlice) -> None:
        self.slice: Final = slice_
        self.name: Final = slice_.metadata.name
        self.pool: Final = PoolID(slice_.spec.driver, slice_.spec.pool.name)
        self.devices: Final = tuple(PoolDevice(slice_, device) for device in slice_.spec.devices)
        self.uses_groups: Final = any(groups for device in self.devices for _, _, groups in device.consumes)

    @property
    def generation(self) -> int:
        return self.slice.spec.pool.generation

    def is_usable(self, features: AllocatorFeatures) -> bool:
        """Tell whether an allocator with these features understands the slice. One it does not makes a gap."""
        spec = self.slice.spec
        if not features.partitionable_devices and (
            spec.per_device_node_selection is not None or spec.shared_counters
        ):
            return False
        return features.compatibility_groups or not self.uses_groups

    def is_on(self, node: Node) -> bool:
        """Tell whether the node reaches some device of the slice. A slice that says nothing of nodes is nowhere."""
        spec = self.slice.spec
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return _reaches(node, spec.node_name, spec.all_nodes, spec.node_selector)
        return bool(spec.per_device_node_selection) and any(each.is_on(node) for each in self.devices)


def _reaches(node: Node, name: str | None, is_everywhere: bool | None, selector: NodeSelector | None) -> bool:
    if name:
        return node.metadata.name == name
    return bool(is_everywhere) or (selector is not None and selects(selector, node))


@dataclass(frozen=True, slots=True, eq=False)
class VisiblePool:
    """A pool as one node sees it."""

    id: PoolID
    is_incomplete: bool = False
    #: what contradicts what; empty if nothing does
    fault: str = ""
    #: devices of the slices that the node sees, in the order they are tried
    devices: tuple[PoolDevice, ...] = ()
    #: devices of the pool that only other nodes see: they may draw on the same counters
    elsewhere: tuple[PoolDevice, ...] = ()
    #: nanos per counter, by counter set
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def gives_devices(self) -> bool:
        return not self.is_incomplete and not self.fault


@dataclass(frozen=True, slots=True, eq=False)
class NodePools:
    """All pools of a node, in the order they are tried."""

    pools: tuple[VisiblePool, ...]
    #: the devices of all pools that give devices, each with its pool
    devices: tuple[tuple[PoolDevice, VisiblePool], ...]

    @property
    def has_invalid(self) -> bool:
        return any(pool.fault for pool in self.pools)


class Inventory:
    """All slices of the cluster as one allocator understands them. Never changes; nodes are worked out when asked."""

    def __init__(self, slices: Iterable[SliceDevices], features: AllocatorFeatures) -> None:
        self._features: Final = features
        self._local: dict[str, list[SliceDevices]] = {}
        self._shared: list[SliceDevices] = []
        self._by_pool: dict[PoolID, list[SliceDevices]] = {}
        for each in slices:
            name = each.slice.spec.node_name
            (self._local.setdefault(name, []) if name else self._shared).append(each)
            self._by_pool.setdefault(each.pool, []).append(each)
        self._only_nodes: dict[PoolID, frozenset[str]] = {}
        self._by_id: dict[DeviceID, PoolDevice] | None = None
        #: by what a node sees: the names of the slices, and its own where devices select nodes
        self._views: dict[tuple[str, ...], NodePools] = {}
        #: by node name: the labels the pools were worked out for, and the pools
        self._known: dict[str, tuple[Mapping[str, str], NodePools]] = {}

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice], features: AllocatorFeatures) -> Inventory:
        """Return the inventory of these slices."""
        return cls([SliceDevices(each) for each in slices], features)

    def on(self, node: Node) -> NodePools:
        """Return the pools of a node. They are kept until its labels change."""
        name, labels = node.metadata.name, node.metadata.labels
        known = self._known.get(name)
        if known is not None and (known[0] is labels or known[0] == labels):
            return known[1]
        found = self._gather(node)
        self._known[name] = labels, found
        return found

    def with_slices(self, node: Node | None = None) -> list[tuple[VisiblePool, Sequence[SliceDevices]]]:
        """Return the pools of a node, by name, with the slices that count; without a node, as if one saw all slices."""
        everything = (each for slices in self._by_pool.values() for each in slices)
        seen = self._newest(everything) if node is None else self._visible(node)
        found = ((self._pool(id_, slices), slices) for id_, slices in sorted(seen.items()))
        return [(pool, slices) for pool, slices in found if pool is not None]

    def device(self, id_: DeviceID) -> PoolDevice | None:
        """Return a device of any slice, whatever its generation; None if there is none of this name."""
        if self._by_id is None:
            self._by_id = {
                device.id: device
                for slices in self._by_pool.values()
                for each in slices
                for device in each.devices
            }
        return self._by_id.get(id_)

    def only_nodes_of(self, pool: PoolID) -> frozenset[str] | None:
        """Return the nodes that can see a pool, if its slices name them; None: other nodes may see it too."""
        found = self._only_nodes.get(pool)
        if found is None:
            names = [each.slice.spec.node_name or "" for each in self._by_pool.get(pool, ())]
            # No node has an empty name: that is for a pool that nodes select.
            found = self._only_nodes[pool] = frozenset(names)
        return None if "" in found else found

    def _gather(self, node: Node) -> NodePools:
        """Return the pools of a node; nodes that see the same slices share one object."""
        visible = self._visible(node)
        seen = [each for slices in visible.values() for each in slices]
        # Where devices select their nodes one by one, seeing the same slices is not seeing the same devices.
        is_own = any(each.slice.spec.per_device_node_selection for each in seen)
        key = node.metadata.name if is_own else "", *sorted(each.name for each in seen)
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = self._pools(visible)
        return found

    def _pools(self, visible: Mapping[PoolID, list[SliceDevices]]) -> NodePools:
        plain: list[VisiblePool] = []
        binding: list[VisiblePool] = []
        for id_, slices in visible.items():
            pool = self._pool(id_, slices)
            if pool is not None:
                (binding if _has_binding_conditions(pool) else plain).append(pool)
        pools = (*sorted(plain, key=_pool_order), *sorted(binding, key=_pool_order))
        devices = tuple((device, pool) for pool in pools if pool.gives_devices for device in pool.devices)
        return NodePools(pools, devices)

    def _visible(self, node: Node) -> dict[PoolID, list[SliceDevices]]:
        """Return the slices that the node sees, of the newest generation among them."""
        candidates = (*self._local.get(node.metadata.name, ()), *self._shared)
        return self._newest(each for each in candidates if each.is_on(node))

    def _newest(self, slices: Iterable[SliceDevices]) -> dict[PoolID, list[SliceDevices]]:
        """Return, by pool, the usable ones of these slices that are of the newest generation."""
        found: dict[PoolID, list[SliceDevices]] = {}
        for each in slices:
            if not each.is_usable(self._features):
                continue
            siblings = found.setdefault(each.pool, [])
            if siblings and siblings[0].generation < each.generation:
                siblings.clear()
            if not siblings or siblings[0].generation == each.generation:
                siblings.append(each)
        return found

    def _pool(self, id_: PoolID, visible: list[SliceDevices]) -> VisiblePool | None:
        """Return the pool these slices make; None: a newer generation, on other nodes only, is about to replace it."""
        wanted = visible[0].slice.spec.pool.resource_slice_count
        if len(visible) == wanted:
            return self._built(id_, visible, ())
        # The rest may belong to other nodes.
        generation = visible[0].generation
        everywhere = self._by_pool[id_]
        if any(each.generation > generation for each in everywhere):
            return None
        current = [
            each
            for each in everywhere
            if each.generation == generation and (self._features.compatibility_groups or not each.uses_groups)
        ]
        if len(current) != wanted:
            return VisiblePool(id_, is_incomplete=True)
        seen = {each.name for each in visible}
        return self._built(id_, visible, [each for each in current if each.name not in seen])

    def _built(
        self, id_: PoolID, visible: Sequence[SliceDevices], others: Sequence[SliceDevices]
    ) -> VisiblePool:
        ordered = sorted(visible, key=lambda each: each.name)
        is_partitionable = self._features.partitionable_devices

        def has_counters(each: SliceDevices) -> bool:
            return is_partitionable and bool(each.slice.spec.shared_counters)

        devices = tuple(device for each in ordered if not has_counters(each) for device in each.devices)
        fault = _repeated_device(devices)
        if fault or not is_partitionable:
            return VisiblePool(id_, fault=fault, devices=() if fault else devices)
        elsewhere = tuple(device for each in others if not has_counters(each) for device in each.devices)
        counters: dict[str, dict[str, int]] = {}
        for each in (*ordered, *others):
            for counter_set in each.slice.spec.shared_counters:
                if counter_set.name in counters:
                    return VisiblePool(id_, fault=f"duplicate counter set name {counter_set.name}")
                counters[counter_set.name] = {
                    name: counter.value.nanos for name, counter in counter_set.counters.items()
                }
        fault = _missing_counter(counters, (*devices, *elsewhere))
        return (
            VisiblePool(id_, fault=fault)
            if fault
            else VisiblePool(id_, False, "", devices, elsewhere, counters)
        )


def _pool_order(pool: VisiblePool) -> PoolID:
    return pool.id


def _has_binding_conditions(pool: VisiblePool) -> bool:
    return any(each.device.binding_conditions for each in pool.devices)


def _repeated_device(devices: Iterable[PoolDevice]) -> str:
    seen: set[str] = set()
    for each in devices:
        if each.id.device in seen:
            return f"duplicate device name {each.id.device}"
        seen.add(each.id.device)
    return ""


def _missing_counter(counters: Mapping[str, Mapping[str, int]], devices: Iterable[PoolDevice]) -> str:
    for name, amounts in _consumed(devices):
        if name not in counters:
            return f"counter set {name} not found"
        for counter in amounts:
            if counter not in counters[name]:
                return f"counter {counter} not found in counter set {name}"
    return ""


def _consumed(devices: Iterable[PoolDevice]) -> Iterator[tuple[str, Mapping[str, int]]]:
    for device in devices:
        for name, amounts, _ in device.consumes:
            yield name, amounts
