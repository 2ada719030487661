"""Which containers run, and telling once of each that it has ended.

Runtimes up to containerd 1.6 have no stream of events, so the list of containers is asked for every second, and sooner
after something has changed. Whoever stops or removes a container has a look at it at once (`look`).

What must stay true: a container that was added is told to have ended exactly once, whoever sees it first; one that
vanished has ended, too. While the runtime does not answer, nothing has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.endings import exited, lost
from nodeward.kubelet.runtime.cri.messages import EXITED, RUNNING
from nodeward.kubelet.runtime.interface import ContainerExited
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)

#: Between two looks at the list, when nothing happens; and right after something has happened.
POLL_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """A container that was told to have started and not told to have ended."""

    uid: str
    name: str
    id: str
    started_ns: int


class Watcher:
    """The containers that run."""

    def __init__(self, calls: Calls, clock: Clock, tell: Callable[[ContainerExited], None]) -> None:
        self._call = calls
        self._clock = clock
        self._tell = tell
        self._running: dict[str, Running] = {}
        self._has_news = asyncio.Event()
        self._is_silent = False

    def add(self, running: Running) -> None:
        self._running[running.id] = running
        self._has_news.set()

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._running

    def get(self, uid: str, name: str) -> Running | None:
        """The latest of that name."""
        mine = [each for each in self._running.values() if each.uid == uid and each.name == name]
        return mine[-1] if mine else None

    def of_pod(self, uid: str) -> list[Running]:
        return [each for each in self._running.values() if each.uid == uid]

    def ended(self, event: ContainerExited) -> None:
        """Tell of it, unless that was done."""
        if self._running.pop(event.id, None) is not None:
            self._has_news.set()
            self._tell(event)

    def forget(self, container_id: str) -> None:
        """It has ended, and whoever wants to know has seen it."""
        self._running.pop(container_id, None)

    async def look(self, container_id: str) -> None:
        """Ask about one container, and tell if it has ended. Raises `CriError` when nobody answers."""
        running = self._running.get(container_id)
        if running is None:
            return
        try:
            status = (await self._call("ContainerStatus", container_id=container_id)).status
        except CriError as error:
            if not error.is_not_found:
                raise
            now_ns = self._clock.now_ns()
            self.ended(lost(running.uid, running.name, running.id, running.started_ns, now_ns))
            return
        if status.state == EXITED:
            self.ended(exited(status))

    async def poll(self) -> None:
        """Look at all of them. Raises `CriError`."""
        before = list(self._running)
        if not before:
            return
        listed = await self._call("ListContainers")
        running = {each.id for each in listed.containers if each.state == RUNNING}
        for container_id in before:
            if container_id not in running:
                await self.look(container_id)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        pause = POLL_SECONDS
        while True:
            try:
                async with self._clock.timeout(pause):
                    await self._has_news.wait()
                pause = _SOON_SECONDS
            except TimeoutError:
                pause = min(pause * 2, POLL_SECONDS)
            self._has_news.clear()
            try:
                await self.poll()
            except CriError as error:
                if not self._is_silent:
                    LOG.warning("the container runtime does not answer: %s", error)
                self._is_silent = True
            else:
                self._is_silent = False
