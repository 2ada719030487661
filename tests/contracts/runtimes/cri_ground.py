"""Real containers as a ground: a containerd of its own for every test, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import Runtime
from nodeward.machinery.clock import Clock, RealClock
from tests.contracts.runtimes.ground import Ground
from tests.kubelet.runtime.containerd import IMAGE, Containerd, running_containerd, why_not


class CriGround(Ground):
    """containerd, with nothing in it but the images of the tests."""

    kind = "cri"
    image = IMAGE

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        reason = why_not()
        if reason:
            pytest.skip(reason)
        self._containerd: Containerd | None = None

    def make(self, clock: Clock) -> Runtime:
        assert self._containerd is not None
        settings = NodeSettings(cgroup_root=self._containerd.cgroup_root)
        return CriRuntime(self._containerd.socket, clock, settings=settings, host_ips=("127.0.0.1",))

    def run(self, play: Callable[[Clock], Awaitable[None]]) -> None:
        async def main() -> None:
            await play(RealClock())

        home = self.directory / "containerd"
        home.mkdir()
        with running_containerd(home) as self._containerd:
            asyncio.run(main())
