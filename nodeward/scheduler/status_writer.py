"""What a pod is told about its scheduling: the PodScheduled condition and the nominated node, written to its status.

In go pods and failures; patches go out beside the scheduling, a few at a time, and only if they change something. Of
several changes to one pod that wait, only the last is written.

What must stay true: a patch reaches only the pod it was meant for (its uid goes with it); a patch that fails is not
repeated, since the pod's next attempt will write again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import Client, PatchType
from nodeward.scheduler.attempt import Failure

LOG: Final = logging.getLogger(__name__)

POD_SCHEDULED: Final = "PodScheduled"
#: Patches under way at the same time.
MOST: Final = 16


class StatusWriter:
    """Writes for one scheduler. `observes`: whether conditions say which generation they are about."""

    def __init__(self, client: Client, *, observes: bool) -> None:
        self._client = client
        self._observes = observes
        self._wanted: dict[str, tuple[Pod, dict[str, Any]]] = {}
        self._writing: set[str] = set()
        self._tasks: dict[asyncio.Task[None], None] = {}

    def write(self, pod: Pod, failure: Failure) -> None:
        """Tell the pod how its attempt ended."""
        uid = pod.metadata.uid
        is_known = uid not in self._wanted and uid not in self._writing
        body = status_patch(
            pod, failure, self._client.clock.now_ns(), observes=self._observes, is_known=is_known
        )
        if body is None:
            return
        self._wanted[uid] = (pod, body)
        if len(self._tasks) < MOST:
            task = asyncio.create_task(self._work(), name="pod conditions")
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    async def stop(self) -> None:
        """At once; what is not written is written by whoever schedules next."""
        self._wanted.clear()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            uid = next((each for each in self._wanted if each not in self._writing), None)
            if uid is None:
                return
            pod, body = self._wanted.pop(uid)
            self._writing.add(uid)
            try:
                await self._client.patch(
                    bytes,
                    pod.metadata.name,
                    body,
                    namespace=pod.metadata.namespace,
                    patch_type=PatchType.STRATEGIC,
                    kind=self._client.kind_of(Pod),
                    subresource="status",
                )
            except (ApiError, WorldError) as error:
                LOG.info("the status of pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
            finally:
                self._writing.discard(uid)


def status_patch(
    pod: Pod, failure: Failure, now_ns: int, *, observes: bool, is_known: bool = True
) -> dict[str, Any] | None:
    """What is to change; None if nothing is. `is_known` is False if the pod's status is about to change anyway."""
    status: dict[str, Any] = {}
    before = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED), None)
    generation = pod.metadata.generation
    if not observes and (before is None or not before.observed_generation):
        generation = 0
    wanted = ("False", failure.reason, failure.message, generation)
    if not is_known or _says(before) != wanted:
        is_same = before is not None and before.status == "False" and before.last_transition_time
        condition: dict[str, Any] = {
            "type": POD_SCHEDULED,
            "status": "False",
            "reason": failure.reason,
            "message": failure.message,
            "lastProbeTime": None,
            "lastTransitionTime": before.last_transition_time if before and is_same else rfc3339(now_ns),
        }
        if generation:
            condition["observedGeneration"] = generation
        status["conditions"] = [condition]
    if failure.nominated is not None and (
        not is_known or pod.status.nominated_node_name != failure.nominated
    ):
        status["nominatedNodeName"] = failure.nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status} if status else None


def _says(condition: PodCondition | None) -> tuple[str, str, str, int] | None:
    if condition is None:
        return None
    return condition.status, condition.reason, condition.message, condition.observed_generation
