"""The base class of drivers with a node part: registers with the kubelet, publishes devices, serves both calls.

```python
class GpuDriver(Driver):
    async def prepare(self, claim):
        for result in await self.allocated(claim):
            ...                                   # make the device usable, describe it in a CDI file
        return [ClaimDevice(result.pool, result.device, ("example.com/gpu=gpu-0",))]

    async def unprepare(self, claim):
        ...                                       # take it back; may be called for claims never prepared

driver = GpuDriver(client, load_profile_file(path, "node-1"), "node-1", Path("/var/lib/kubelet"))
await driver.start()
```

What must stay true: devices are published after the kubelet can call the driver, so that no pod waits for it; both
calls may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeward.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim
from nodeward.base.errors import WorldError
from nodeward.dra.device_profile import DeviceProfile
from nodeward.dra.node_server import ClaimDevice, DriverClaim, NodeServer
from nodeward.dra.slice_publisher import SlicePublisher
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock, RealChance, RealClock


class Driver:
    """A driver on one node; `kubelet_root` is the directory of its kubelet."""

    def __init__(
        self,
        client: Client,
        profile: DeviceProfile,
        node: str,
        kubelet_root: Path,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        """`clock`, `chance`: others than the real ones."""
        self.client: Final = client
        self.profile: Final = profile
        self.node: Final = node
        self._clock, self._chance = clock or RealClock(), chance or RealChance()
        self._task: asyncio.Task[None] | None = None
        self._publisher = SlicePublisher(client, node)
        self.server: Final = NodeServer(profile.driver, kubelet_root, self.prepare, self.unprepare)

    async def start(self) -> None:
        """Serve, then publish the devices and keep them published."""
        await self.server.start()
        await self._publisher.publish(self.profile)
        keeping = self._publisher.keep(self.profile, self._clock, self._chance)
        self._task = asyncio.create_task(keeping, name=f"slices of {self.profile.driver}")

    async def stop(self) -> None:
        """Leave the node; published devices stay, as a driver that is upgraded comes back."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.server.stop()

    async def withdraw(self) -> None:
        """Unpublish all devices of the node."""
        await self._publisher.withdraw(self.profile.driver)

    async def prepare(self, claim: DriverClaim) -> Sequence[ClaimDevice]:
        """Make the devices of a claim usable; what is raised is the answer for this claim."""
        raise NotImplementedError

    async def unprepare(self, claim: DriverClaim) -> None:
        """Take back what was done for a claim, if anything was."""
        raise NotImplementedError

    async def allocated(self, claim: DriverClaim) -> list[DeviceRequestAllocationResult]:
        """Return what the claim was allocated of this driver. Raises `WorldError` or `ApiError`."""
        found = await self.client.get(ResourceClaim, claim.name, claim.namespace)
        if found.metadata.uid != claim.uid:
            raise WorldError(
                f"claim {claim.namespace}/{claim.name} is another one: its uid is {found.metadata.uid}"
            )
        if found.status.allocation is None:
            raise WorldError(f"claim {claim.namespace}/{claim.name} is not allocated")
        results = found.status.allocation.devices.results
        return [each for each in results if each.driver == self.profile.driver]
