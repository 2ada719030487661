"""Runs the controllers: one set of informers for all, and workers for every queue.

In goes a way to get a client for each controller's name; after `start` the controllers work until `stop`. `settled`
waits until every key known at the start has been tried once: what every namespace must have is there then, unless
the API refused.

What must stay true: a failure costs one key a delay, never the worker; a broken invariant stops the controller that
found it and no other; the last thing left of a stopped runner is a log line.

Started by `cli.controllers` and `cluster.assembly`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from nodeward.api.errors import ApiError
from nodeward.base.errors import NodewardError
from nodeward.base.invariant import InvariantBroken
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.controller import ControllerContext, ControllerDescriptor, Work
from nodeward.features import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.informer import InformerFactory
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.queue_metrics import show_queues
from nodeward.machinery.recorder import EventRecorder

LOG: Final = logging.getLogger(__name__)

#: In whose name the shared informers list and watch.
MANAGER: Final = "kube-controller-manager"


class Runner:
    """All controllers of one process. `client_for` gives the client for `MANAGER` or a controller's name."""

    def __init__(
        self,
        client_for: Callable[[str], Client],
        clock: Clock,
        chance: Chance,
        *,
        gates: Gates,
        root_ca: str | None = None,
        controllers: Sequence[ControllerDescriptor] = CONTROLLERS,
    ) -> None:
        self.metrics: Final = Metrics()
        self._recorders: list[EventRecorder] = []
        self._informers = InformerFactory(client_for(MANAGER), chance.child("informers"))
        self._crews: dict[str, tuple[_Crew, ...]] = {}
        for name, make, component, account in controllers:
            client, luck = client_for(account or name), chance.child(name)
            recorder = EventRecorder(client, luck.child("events"), component=component or name)
            self._recorders.append(recorder)
            controller = make(
                ControllerContext(
                    client, clock, luck, self._informers, recorder, gates, self.metrics, root_ca
                )
            )
            if controller is not None:
                self._crews[name] = tuple(_Crew(name, work) for work in controller.work())
        show_queues(self.metrics, [crew.work.queue for crews in self._crews.values() for crew in crews])
        self._has_begun = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fill the informers, then put everybody to work."""
        self._task = asyncio.create_task(self._run(), name="controllers")
        await self._has_begun.wait()

    async def settled(self) -> None:
        """Wait until everything known at the start has been looked at once, with success or without."""
        for crews in self._crews.values():
            for crew in crews:
                await crew.is_quiet.wait()

    @property
    def has_failed(self) -> bool:
        """Whether no controller works any more although nobody stopped them."""
        return self._task is not None and self._task.done()

    async def ended(self) -> None:
        """Wait until they all have failed, which is not expected."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def stop(self) -> None:
        """Stop at once: work under way is abandoned, and found again at the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await asyncio.gather(*(recorder.aclose() for recorder in self._recorders))

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._informers.run(), name="controllers' informers")
                await self._informers.wait_synced()
                for name, crews in self._crews.items():
                    group.create_task(_run_controller(name, crews), name=name)
                self._has_begun.set()
        except Exception:
            LOG.critical("the informers failed: no controller works any more", exc_info=True)
        finally:
            self._has_begun.set()
            for crews in self._crews.values():
                for crew in crews:
                    crew.is_quiet.set()


class _Crew:
    """The workers of one queue."""

    def __init__(self, name: str, work: Work[Any]) -> None:
        self.name = name
        self.work = work
        #: Set once there has been nothing to do.
        self.is_quiet = asyncio.Event()

    async def run_one(self) -> None:
        """Run one worker until the queue is shut down."""
        queue = self.work.queue
        self._notice_quiet()
        while (key := await queue.get()) is not None:
            try:
                again = await self.work.handle(key)
            except InvariantBroken:
                raise
            except Exception as error:
                # What was raised on purpose says all in its text; anything else is a bug, and its place matters.
                trace = None if isinstance(error, NodewardError) else error
                # Somebody else was faster: part of every day's work, and settled with the next look.
                is_race = isinstance(error, ApiError) and error.reason == "Conflict"
                level = logging.DEBUG if is_race else logging.WARNING
                LOG.log(level, "%s: %s: %s", self.name, key, error or type(error).__name__, exc_info=trace)
                queue.add_rate_limited(key)
            else:
                queue.forget(key)
                if again is not None:
                    queue.add_after(key, again)
            finally:
                queue.done(key)
                self._notice_quiet()

    def _notice_quiet(self) -> None:
        if not self.is_quiet.is_set() and not len(self.work.queue) and not self.work.queue.stats().processing:
            self.is_quiet.set()


async def _run_controller(name: str, crews: Sequence[_Crew]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for crew in crews:
                for number in range(crew.work.workers):
                    group.create_task(crew.run_one(), name=f"{name} {crew.work.queue.name} {number}")
    except* InvariantBroken as broken:
        LOG.critical("%s stops: %s", name, broken.exceptions[0], exc_info=broken)
        for crew in crews:
            crew.work.queue.shut_down()
            crew.is_quiet.set()
