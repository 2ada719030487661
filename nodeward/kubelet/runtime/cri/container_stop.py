"""Ending containers and pods: tried until it has happened, whatever the runtime says meanwhile.

What must stay true: a container is not killed before its grace period is over, and is killed then; what has ended is
told by the watcher before anything of it is removed.
"""

from __future__ import annotations

import logging
import math
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.cgroups import remove_group
from nodeward.kubelet.runtime.cri.sandboxes import Sandboxes
from nodeward.kubelet.runtime.cri.watching import Watcher
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)

#: Between tries.
_AGAIN_SECONDS: Final = 0.5


class Stopper:
    """Ends what runs. `cgroup_root`: where the groups of pods are."""

    def __init__(
        self, calls: Calls, clock: Clock, watcher: Watcher, sandboxes: Sandboxes, cgroup_root: str
    ) -> None:
        self._call = calls
        self._clock = clock
        self._watcher = watcher
        self._sandboxes = sandboxes
        self._cgroup_root = cgroup_root

    async def stop(self, container_id: str, kill_ns: int) -> None:
        """Ask a container to end, kill it at `kill_ns` (monotonic); returns when it has ended."""
        while container_id in self._watcher:
            left = (kill_ns - self._clock.monotonic_ns()) / SECOND_NS
            try:
                if left > 0:
                    # The runtime counts whole seconds only, so the end of the grace period is kept here.
                    async with self._clock.timeout(left):
                        seconds = math.ceil(left)
                        await self._call(
                            "StopContainer", seconds=2.0 * seconds, container_id=container_id, timeout=seconds
                        )
                else:
                    await self._call("StopContainer", container_id=container_id)
                await self._watcher.look(container_id)
            except TimeoutError:
                continue
            except CriError as error:
                if not error.is_not_found:
                    LOG.warning("container %s does not stop: %s", container_id, error)
            if container_id in self._watcher:
                await self._clock.sleep(_AGAIN_SECONDS)
                await self._look(container_id)

    async def remove_container(self, container_id: str) -> None:
        """Forget a dead one, if that goes."""
        try:
            await self._call("RemoveContainer", container_id=container_id)
        except CriError as error:
            # Nothing is lost: it goes with its pod.
            LOG.info("container %s is not removed: %s", container_id, error)

    async def remove_pod(self, uid: str) -> None:
        """All of it; returns when nothing is left."""
        while True:
            try:
                await self._remove_all(uid)
                break
            except CriError as error:
                LOG.warning("pod %s is not removed: %s", uid, error)
            await self._clock.sleep(_AGAIN_SECONDS)
        remove_group(self._cgroup_root, uid)

    async def _remove_all(self, uid: str) -> None:
        sandboxes = await self._sandboxes.of_pod(uid)
        for each in sandboxes:
            await self._call("StopPodSandbox", pod_sandbox_id=each.id)
        for running in self._watcher.of_pod(uid):
            await self._watcher.look(running.id)
        for each in sandboxes:
            await self._sandboxes.remove(each.id)
        for running in self._watcher.of_pod(uid):
            await self._watcher.look(running.id)

    async def _look(self, container_id: str) -> None:
        try:
            await self._watcher.look(container_id)
        except CriError as error:
            LOG.info("container %s: %s", container_id, error)
