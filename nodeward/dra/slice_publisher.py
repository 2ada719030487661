"""Publishes the devices of a driver as ResourceSlices and keeps them as they should be.

A driver without a node part needs nothing else (KEP-5945). In goes a profile, out come slices of at most 128 devices.
A pool whose devices change gets a new generation, in all of its slices, so that nobody allocates from half of it.

What must stay true: slices that are right are not written; only slices of this driver, and of this node if it has a
node part, are changed or deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.api.resource_v1 import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from nodeward.base.errors import WorldError
from nodeward.dra.device_profile import DeviceProfile, ProfilePool
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.informer import Informer

LOG: Final = logging.getLogger(__name__)

#: As the API allows it; half as many where devices have taints or take from counters.
DEVICES_PER_SLICE: Final = 128
_LONGEST_NAME: Final = 200
#: Between two looks at the slices in the API.
_QUIET_SECONDS: Final = 1.0


class SlicePublisher:
    """Publishes for one driver; `node` is the node of a driver with a node part."""

    def __init__(self, client: Client, node: str = "") -> None:
        self._client = client
        self._node = node

    async def publish(self, profile: DeviceProfile) -> int:
        """Make the slices in the API those of a profile; return how many were written or deleted."""
        present = await self._present(profile.driver)
        written, kept = 0, set[str]()
        for pool in profile.pools:
            mine = {each.metadata.name: each for each in present if each.spec.pool.name == pool.name}
            wanted = _slices(profile, pool)
            kept.update(wanted)
            if {name: _said(each.spec) for name, each in mine.items()} == {
                name: _said(spec) for name, spec in wanted.items()
            }:
                continue
            generation = max((each.spec.pool.generation for each in mine.values()), default=0) + 1
            for name, spec in wanted.items():
                spec.pool.generation = generation
                written += 1
                await self._write(name, spec, mine.get(name))
        for each in present:
            if each.metadata.name not in kept:
                written += 1
                await self._client.delete(ResourceSlice, each.metadata.name)
        if written:
            LOG.info("driver %s: %d slices written", profile.driver, written)
        return written

    async def keep(self, profile: DeviceProfile, clock: Clock, chance: Chance) -> None:
        """Publish again whenever somebody changes or deletes a slice, until cancelled.

        A real kubelet deletes the slices of its node whenever it starts.
        """
        changed = asyncio.Event()

        def on_change(*_: ResourceSlice) -> None:
            changed.set()

        informer = Informer(
            self._client, ResourceSlice, chance, field_selector=self._selector(profile.driver)
        )
        informer.add_handler(on_add=on_change, on_update=on_change, on_delete=on_change)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            while True:
                await changed.wait()
                changed.clear()
                try:
                    await self.publish(profile)
                except (ApiError, WorldError) as error:
                    LOG.warning("driver %s: %s; tried again", profile.driver, error)
                    changed.set()
                # Many changes at once are one look.
                await clock.sleep(_QUIET_SECONDS)

    async def withdraw(self, driver: str) -> None:
        """Delete all slices: nothing can be allocated from the driver any more."""
        for each in await self._present(driver):
            await self._client.delete(ResourceSlice, each.metadata.name)

    async def _present(self, driver: str) -> Sequence[ResourceSlice]:
        return (await self._client.list(ResourceSlice, field_selector=self._selector(driver))).items

    def _selector(self, driver: str) -> str:
        return f"spec.driver={driver}" + (f",spec.nodeName={self._node}" if self._node else "")

    async def _write(self, name: str, spec: ResourceSliceSpec, before: ResourceSlice | None) -> None:
        if before is None:
            await self._client.create(ResourceSlice(metadata=ObjectMeta(name=name), spec=spec))
        else:
            await self._client.update(replace(before, spec=spec))


def _slices(profile: DeviceProfile, pool: ProfilePool) -> dict[str, ResourceSliceSpec]:
    """Return the slices of a pool by name; their generation is still to be said."""
    size = DEVICES_PER_SLICE
    if any(each.taints or each.consumes_counters for each in pool.devices):
        size //= 2
    parts: list[tuple[Device, ...]] = [
        pool.devices[start : start + size] for start in range(0, len(pool.devices), size)
    ]
    return {
        _name(profile.driver, pool, number): replace(
            pool.place,
            driver=profile.driver,
            pool=ResourcePool(name=pool.name, resource_slice_count=len(parts)),
            devices=[*devices],
            skip_node_operations=profile.skip_node_operations,
        )
        for number, devices in enumerate(parts)
    }


def _name(driver: str, pool: ProfilePool, number: int) -> str:
    """Name a slice after pool and driver; a hash keeps apart names that were cut, and pools of several nodes."""
    whole = f"{pool.name}/{driver}"
    digest = hashlib.sha256(f"{pool.place.node_name or ''}/{whole}".encode()).hexdigest()[:8]
    return f"{whole.replace('/', '-')[:_LONGEST_NAME].strip('-.')}-{digest}-{number}"


def _said(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    """What a slice says, whatever its generation."""
    return replace(spec, pool=replace(spec.pool, generation=0))
