"""Pods that Permit plugins keep waiting between their decision and their binding.

A plugin that answered WAIT later allows the pod or rejects it (through `FrameworkHandle.waiting`); when its time is
over, that is a rejection. Once all plugins allowed it, or one rejected it, the binding goes on or is given up.

Added by the engine, awaited by the binder. What must stay true: the first answer counts; no timer outlives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from nodeward.base.duration import SECOND_NS, format_duration
from nodeward.machinery.clock import Clock, Timer
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, failed, unschedulable

#: Nobody waits longer than this, whatever a plugin says.
MAX_WAIT_SECONDS: Final = 15 * 60.0


class WaitingPod:
    """One pod, and the plugins that have not allowed it yet."""

    def __init__(self, view: PodView, node: str, waits: Mapping[str, float], clock: Clock) -> None:
        self.view: Final = view
        self.node: Final = node
        self._verdict: Status | None = None
        self._is_over = asyncio.Event()
        self._pending: dict[str, Timer] = {}
        for plugin, wanted in waits.items():
            seconds = min(wanted, MAX_WAIT_SECONDS)
            self._pending[plugin] = clock.call_later(seconds, partial(self._is_late, plugin, seconds))

    @property
    def pending(self) -> tuple[str, ...]:
        """The plugins it waits for."""
        return tuple(self._pending)

    def allow(self, plugin: str) -> None:
        """The plugin has nothing against it any more; when none has, it goes on."""
        timer = self._pending.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._pending:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """It shall not go there. Whether that came in time."""
        return self._decide(unschedulable(message).of(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Its place is needed for another: it is tried again, and nobody is blamed. Whether that came in time."""
        return self._decide(failed(message).of(plugin))

    async def verdict(self) -> Status:
        """Wait for it."""
        await self._is_over.wait()
        return self._verdict or SUCCESS

    def _is_late(self, plugin: str, seconds: float) -> None:
        waited = format_duration(int(seconds * SECOND_NS))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _decide(self, status: Status) -> bool:
        if self._verdict is not None:
            return False
        for timer in self._pending.values():
            timer.cancel()
        self._verdict = status
        self._is_over.set()
        return True


class WaitingPods:
    """All of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter([*self._pods.values()])

    def add(self, view: PodView, node: str, waits: Mapping[str, float]) -> WaitingPod:
        """It waits from now on; `waits`: seconds by plugin."""
        found = self._pods[view.uid] = WaitingPod(view, node, waits, self._clock)
        return found

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def remove(self, uid: str) -> None:
        """It waits no more; what timers are left are stopped."""
        found = self._pods.pop(uid, None)
        if found is not None:
            found.reject("", "removed")
