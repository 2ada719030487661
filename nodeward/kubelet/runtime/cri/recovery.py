"""What is in the runtime from before: pods and containers with the kubelet's labels, whoever started them.

In goes the runtime, out come pods as they are found. Containers that were made and never started are removed: nobody
waits for them, and they keep their name from the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.endings import found_container, found_pod, newest
from nodeward.kubelet.runtime.cri.labels import CONTAINER_NAME, POD_UID
from nodeward.kubelet.runtime.cri.messages import CREATED, RUNNING, SANDBOX_READY
from nodeward.kubelet.runtime.cri.sandboxes import Sandbox, Sandboxes
from nodeward.kubelet.runtime.interface import FoundPod

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveredPod:
    """A pod that was found, and its sandbox."""

    pod: FoundPod
    #: None: it has none that is ready
    sandbox: Sandbox | None


async def recover(call: Calls, sandboxes: Sandboxes, under_way: AbstractSet[str]) -> list[RecoveredPod]:
    """All of it. `under_way`: uids of pods in which something is being started. Raises `CriError`."""
    by_pod: dict[str, list[Any]] = {}
    for each in (await call("ListPodSandbox")).items:
        if POD_UID in each.labels:
            by_pod.setdefault(each.labels[POD_UID], []).append(each)
    containers: dict[str, list[Any]] = {}
    for each in (await call("ListContainers")).containers:
        if POD_UID in each.labels and CONTAINER_NAME in each.labels:
            containers.setdefault(each.labels[POD_UID], []).append(each)
    return [
        await _found(call, sandboxes, newest(boxes), containers.get(uid, []), uid in under_way)
        for uid, boxes in by_pod.items()
    ]


async def _found(
    call: Calls, sandboxes: Sandboxes, listed: Any, containers: list[Any], is_starting: bool
) -> RecoveredPod:
    sandbox = None
    if listed.state == SANDBOX_READY:
        sandbox = await sandboxes.known(listed)
    elif any(each.state == RUNNING for each in containers):
        # Containers without their sandbox have lost their network and their namespaces: they have ended.
        for box in sorted({each.pod_sandbox_id for each in containers}):
            await call("StopPodSandbox", pod_sandbox_id=box)
    if not is_starting:
        for each in containers:
            if each.state == CREATED:
                await _remove(call, each.id)
    answers = await asyncio.gather(*(_status(call, each.id) for each in containers if each.state != CREATED))
    known = [found_container(each) for each in answers if each is not None and each.status.started_at]
    return RecoveredPod(found_pod(listed, sandbox.ips if sandbox is not None else (), known), sandbox)


async def _status(call: Calls, container_id: str) -> Any | None:
    try:
        return await call("ContainerStatus", container_id=container_id, verbose=True)
    except CriError as error:
        if error.is_not_found:
            return None
        raise


async def _remove(call: Calls, container_id: str) -> None:
    try:
        await call("RemoveContainer", container_id=container_id)
    except CriError as error:
        LOG.warning("container %s was never started and is not removed: %s", container_id, error)
