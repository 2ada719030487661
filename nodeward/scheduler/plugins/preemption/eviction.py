"""Carries out a preemption: clears nominations of other pods, marks the victims and deletes them.

Started by DefaultPreemption; runs beside the scheduling loop. The preemptor must not be tried again before all victims
are on their way out, or it would choose others too: `is_running` says so. All victims but the last are deleted
together; once the last one is seen to go, the pod may be tried even if the answer to its deletion is still missing, so
that the event of its going is not lost on a pod that is still kept out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import PatchType
from nodeward.machinery.recorder import NORMAL
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.preemption.candidate import Candidate

if TYPE_CHECKING:
    from nodeward.scheduler.framework.context import FrameworkHandle

_log: Final = logging.getLogger(__name__)

DISRUPTION_TARGET: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"

_DURATIONS: Final = tuple(0.01 * 2**power for power in range(20))
_VICTIMS: Final = tuple(float(2**power) for power in range(7))


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Whether the pod is on its way out because another needs its room."""
    if pod.metadata.deletion_timestamp is None:
        return False
    condition = next((each for each in pod.status.conditions if each.type == DISRUPTION_TARGET), None)
    return condition is not None and condition.status == "True" and condition.reason == BY_SCHEDULER


class Evictions:
    """The preemptions of one profile. `seen` gives a running pod's newest version, None once it is gone."""

    def __init__(self, plugin: str, handle: FrameworkHandle, seen: Callable[[str], PodView | None]) -> None:
        self._plugin = plugin
        self._handle = handle
        self._seen = seen
        #: by the pod that room is made for: the victim that is left, or None while there are several
        self._running: dict[str, str | None] = {}
        metrics = handle.metrics
        self._victims = metrics.histogram(
            "scheduler_preemption_victims", "Victims of one preemption.", _VICTIMS
        )
        self._durations = metrics.histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "How long the API was told about a preemption.",
            _DURATIONS,
            ("result",),
        )
        self._ended = metrics.counter(
            "scheduler_preemption_goroutines_execution_total", "Preemptions told to the API.", ("result",)
        )

    def is_running(self, uid: str) -> bool:
        if uid not in self._running:
            return False
        last = self._running[uid]
        victim = self._seen(last) if last is not None else None
        if last is None:
            return True
        return victim is not None and victim.pod.metadata.deletion_timestamp is None

    def begin(self, pod: PodView, candidate: Candidate) -> Callable[[], Any] | None:
        """What is to be done, as something to run; from now on the pod is kept out. None: nothing is left to do."""
        self._victims.observe(len(candidate.victims))
        victims = [each for each in candidate.victims if each.pod.metadata.deletion_timestamp is None]
        outdone = [
            each
            for each in self._handle.nominator.for_node(candidate.node)
            if each.priority < pod.priority and each.uid != pod.uid
        ]
        if not victims and not outdone:
            return None
        if victims:
            self._running[pod.uid] = None

        async def work() -> None:
            await self._run(pod, candidate.node, victims, outdone)

        return work

    async def _run(self, pod: PodView, node: str, victims: list[PodView], outdone: list[PodView]) -> None:
        clock = self._handle.clock
        start = clock.monotonic_ns()
        is_done = False
        try:
            is_done = await self._tell(pod, node, victims, outdone)
        finally:
            self._running.pop(pod.uid, None)
            result = "success" if is_done else "error"
            self._durations.observe((clock.monotonic_ns() - start) / SECOND_NS, result)
            self._ended.inc(result)
        if not is_done:
            # No victim's going may ever wake it.
            self._handle.activate(pod)

    async def _tell(self, pod: PodView, node: str, victims: list[PodView], outdone: list[PodView]) -> bool:
        cleared = await self._all([self._take_back(each) for each in outdone])
        if not victims:
            return cleared
        if not await self._all([self._preempt(pod, node, victim) for victim in victims[:-1]]):
            return False
        self._running[pod.uid] = victims[-1].uid
        return await self._all([self._preempt(pod, node, victims[-1])]) and cleared

    async def _all(self, calls: list[Any]) -> bool:
        """Whether all calls succeeded; what did not is told to whoever reads the log."""
        answers = await asyncio.gather(*calls, return_exceptions=True)
        errors = [each for each in answers if isinstance(each, BaseException)]
        for error in errors:
            if not isinstance(error, (ApiError, WorldError)):
                raise error
            _log.warning("preemption: %s", error)
        return not errors

    async def _take_back(self, pod: PodView) -> None:
        """The node is no longer promised to the pod."""
        self._handle.nominator.add(pod, "")
        if pod.pod.status.nominated_node_name:
            await self._patch(pod, {"nominatedNodeName": None}, PatchType.MERGE)

    async def _preempt(self, pod: PodView, node: str, victim: PodView) -> None:
        handle, meta = self._handle, victim.pod.metadata
        text = f"Preempted by pod {pod.uid} on node {node}"
        waiting = handle.waiting.get(victim.uid) if handle.waiting is not None else None
        if waiting is not None and waiting.preempt(self._plugin, "preempted"):
            # It was not bound yet: it goes back to the queue, and giving its place up wakes the pod.
            handle.recorder.event(victim.pod, NORMAL, "Preempted", f"{text} (in kube-scheduler memory).")
            return
        try:
            condition = self._condition(pod, victim)
            if condition is not None:
                await self._patch(victim, {"conditions": [condition]}, PatchType.STRATEGIC)
            await handle.client.delete(Pod, meta.name, meta.namespace, uid=meta.uid)
        except ApiError as error:
            if error.code == 404 or (error.code == 409 and await self._is_gone(victim)):
                return
            raise
        handle.recorder.event(victim.pod, NORMAL, "Preempted", text)

    async def _is_gone(self, victim: PodView) -> bool:
        """Whether there is no such pod any more, or another under its name."""
        try:
            left = await self._handle.client.get(Pod, victim.name, victim.namespace)
        except ApiError as error:
            if error.code == 404:
                return True
            raise
        return left.metadata.uid != victim.uid

    def _condition(self, pod: PodView, victim: PodView) -> dict[str, Any] | None:
        """Why the victim goes; None if it says so already."""
        name = pod.pod.spec.scheduler_name
        wanted = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": BY_SCHEDULER,
            "message": f"{name}: preempting to accommodate a higher priority pod",
        }
        since = rfc3339(self._handle.clock.now_ns())
        for each in victim.pod.status.conditions:
            if each.type == DISRUPTION_TARGET and each.status == "True":
                if (each.reason, each.message) == (wanted["reason"], wanted["message"]):
                    return None
                since = each.last_transition_time or since
        generation = victim.pod.metadata.generation
        return {
            **wanted,
            "lastTransitionTime": since,
            **({"observedGeneration": generation} if generation else {}),
        }

    async def _patch(self, pod: PodView, status: dict[str, Any], patch_type: PatchType) -> None:
        # Unlike upstream the uid goes along: a pod that came later under the same name is left alone.
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._handle.client.patch(
            Pod, pod.name, body, namespace=pod.namespace, patch_type=patch_type, subresource="status"
        )
