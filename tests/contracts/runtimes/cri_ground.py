"""Real containers as a ground: one containerd for all tests, emptied by each, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import Runtime
from nodeward.machinery.clock import Clock, RealClock
from tests.contracts.runtimes.ground import Ground
from tests.kubelet.runtime.containerd import IMAGE, Containerd


class CriGround(Ground):
    """Containers of containerd."""

    kind = "cri"
    image = IMAGE

    def __init__(self, directory: Path, containerd: Containerd) -> None:
        super().__init__(directory)
        self._containerd = containerd
        self.socket = containerd.socket

    def make(self, clock: Clock) -> Runtime:
        settings = NodeSettings(cgroup_root=self._containerd.cgroup_root)
        return CriRuntime(self._containerd.socket, clock, settings=settings, host_ips=("127.0.0.1",))

    def run(self, play: Callable[[Clock], Awaitable[None]]) -> None:
        async def main() -> None:
            await play(RealClock())

        asyncio.run(main())
