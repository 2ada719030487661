"""The runtimes there are, each as a ground for the suite."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.runtime.interface import Runtime
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.contracts.runtimes.ground import Ground


class SimGround(Ground):
    """Simulated containers, in virtual time. They run no commands and see no files."""

    kind = "sim"
    is_real = False

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._runtime: SimRuntime | None = None

    def make(self, clock: Clock) -> Runtime:
        # It outlives its agents, as a container runtime does.
        if self._runtime is None:
            self._runtime = SimRuntime(clock)
            # Pods of the suite have no node; it is as large as this machine.
            self._runtime.describe_cpus("", CPUSet(os.sched_getaffinity(0)))
        return self._runtime

    def run(self, play: Callable[[Clock], Awaitable[None]]) -> None:
        async def main(clock: Clock) -> None:
            await play(clock)

        run_virtual(main)


class ProcessGround(Ground):
    """Local processes, in real time."""

    kind = "process"

    def make(self, clock: Clock) -> Runtime:
        return ProcessRuntime(self.directory / "runtime", clock, RealChance())

    def run(self, play: Callable[[Clock], Awaitable[None]]) -> None:
        async def main() -> None:
            await play(RealClock())

        asyncio.run(main())


#: Every runtime. One that needs what a machine may lack skips in its `__init__`, loudly.
GROUNDS: tuple[type[Ground], ...] = (SimGround, ProcessGround)
#: Those that run commands.
REAL_GROUNDS = tuple(each for each in GROUNDS if each.is_real)
