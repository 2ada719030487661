"""The binding cycle: binds pods that have a node, while further pods are decided about.

`Scheduler` calls `start` for every attempt that found a node. Each of them is one task: wait for Permit plugins, then
PreBind, Bind and PostBind. Many are under way at once, but no more than `MOST`, so that a slow API server slows
decisions down instead of piling them up.

What must stay true: every attempt ends in `Engine.finish` or `Engine.give_up`, unless the scheduler stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.attempt import Attempt
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.status import SUCCESS, Status, failed
from nodeward.scheduler.plugin_guard import guarded, guarded_wait

#: Bindings under way at the same time. Pods that wait for a Permit plugin, or for something outside, do not count.
MOST: Final = 256


class Binder:
    """Binds for one scheduler."""

    def __init__(
        self,
        engine: Engine,
        on_bound: Callable[[Attempt], None],
        on_failed: Callable[[Attempt], None],
        on_broken: Callable[[BaseException], None],
        wake: Callable[[], None],
    ) -> None:
        """`on_bound`: the API accepted the binding. `on_failed`: the pod went back to the queue. `on_broken`: an
        invariant is broken. `wake`: a binding ended, so that another one may start."""
        self._engine = engine
        self._on_bound, self._on_failed, self._on_broken = on_bound, on_failed, on_broken
        self._wake = wake
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._set_aside = 0

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    @property
    def has_room(self) -> bool:
        return len(self._tasks) - self._set_aside < MOST

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """While a binding waits for something outside, others may take its place."""
        self._set_aside += 1
        self._wake()
        try:
            yield
        finally:
            self._set_aside -= 1

    def start(self, attempt: Attempt) -> None:
        """Bind the pod of an attempt in a task of its own."""
        task = asyncio.create_task(self._bind(attempt))
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Cancel all bindings under way. Whether the API accepted one is found out at the next start."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._wake()

    async def _bind(self, attempt: Attempt) -> None:
        try:
            verdict = await self._permitted(attempt)
            if not verdict.is_success:
                self._engine.give_up(attempt, verdict, is_verdict=True)
                self._on_failed(attempt)
                return
            status = await self._run_bind_plugins(attempt)
            if not status.is_success:
                self._engine.give_up(attempt, status, is_verdict=False)
                self._on_failed(attempt)
                return
            self._engine.finish(attempt)
            self._on_bound(attempt)
            self._run_post_bind(attempt)
        except InvariantBroken as error:
            self._on_broken(error)

    async def _permitted(self, attempt: Attempt) -> Status:
        waiting = attempt.waiting
        if waiting is None:
            return SUCCESS
        began_ns = self._engine.clock.monotonic_ns()
        try:
            with self.set_aside():
                status = await waiting.verdict()
        finally:
            self._engine.waiting.remove(attempt.view.uid)
        seconds = (self._engine.clock.monotonic_ns() - began_ns) / SECOND_NS
        self._engine.metrics.permit_seconds.observe(seconds, status.code.value)
        if status.is_success or status.is_rejected:
            return status
        return failed(f"waiting on permit for pod: {status.message}").of(status.plugin)

    async def _run_bind_plugins(self, attempt: Attempt) -> Status:
        """Run PreBind and Bind plugins."""
        profile, view, node = attempt.profile, attempt.view, attempt.node
        cycle = attempt.cycle or CycleState(view)
        for acting in attempt.acting.pre_binds if attempt.acting is not None else ():
            status = await self._asked("PreBind", attempt, acting.pre_bind(cycle, view, node))
            if not status.is_success and not status.is_skip:
                return _by(status, acting.name, "PreBind")
        for plugin in profile.binds:
            status = await self._asked("Bind", attempt, plugin.bind(cycle, view, node))
            if not status.is_skip:
                return status if status.is_success else _by(status, plugin.name, "Bind")
        return failed(f'no bind plugin of profile "{profile.name}" took the pod')

    async def _asked(self, point: str, attempt: Attempt, call: Awaitable[Status]) -> Status:
        clock = self._engine.clock
        began_ns = clock.monotonic_ns()
        answer = await guarded_wait("binding", attempt.view.key, call)
        status = failed(answer) if isinstance(answer, str) else answer
        self._engine.metrics.point_seconds.observe(
            (clock.monotonic_ns() - began_ns) / SECOND_NS, point, status.code.value, attempt.profile.name
        )
        return status

    def _run_post_bind(self, attempt: Attempt) -> None:
        """Run PostBind plugins. The pod stays bound whatever they do."""
        cycle = attempt.cycle
        for plugin in attempt.acting.post_binds if attempt.acting is not None else ():
            guarded("after binding", attempt.view.key, plugin.post_bind, cycle, attempt.view, attempt.node)


def _by(status: Status, plugin: str, point: str) -> Status:
    if status.is_rejected:
        return status.of(plugin)
    return failed(f'running {point} plugin "{plugin}": {status.message}').of(plugin)
