"""A scheduler: an engine, fed by informers, whose decisions are written to the API.

Called by `nodeward scheduler` and by `cluster/assembly.py`. It is the shell around the scheduling cycle: it runs the
informers, calls `Engine.next` in a loop, and hands attempts to the `Binder` or the `StatusWriter`. `start` fills the
informers; from then on pods that ask for one of its profiles are given nodes, until `stop`. With leader election it
follows the cluster all the time and decides only while it leads; when it no longer does, `run` raises and the process
is expected to end. Between it and the API server there is nothing but the API.

What must stay true: the loop never decides for long without letting watch events and bindings through; a bug in a
plugin costs one attempt, a broken invariant stops this scheduler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from nodeward.base.errors import ConfigError
from nodeward.features.declared import FRAMEWORK, Framework, Version
from nodeward.features.gates import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.informer import InformerFactory
from nodeward.machinery.leader import LeaderElector, LeaderTimes
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import NORMAL, WARNING, EventRecorder
from nodeward.scheduler.attempt import Attempt
from nodeward.scheduler.binder import Binder
from nodeward.scheduler.engine_factory import SchedulerAccess, build_engine
from nodeward.scheduler.event_handlers import EventHandlers
from nodeward.scheduler.framework.context import FrameworkHandle, looked_up
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.informer_listers import InformerListers
from nodeward.scheduler.plugin_guard import guarded_wait
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.settings import SchedulerSettings, default_profile
from nodeward.scheduler.status_writer import StatusWriter

LOG: Final = logging.getLogger(__name__)

#: Decisions between two looks at what else happens.
BATCH: Final = 32
#: Events that wait to be written. Pods are bound faster than that, so that many wait after a burst.
MOST_EVENTS: Final = 20_000
#: What an event can say, in bytes.
_LONGEST_NOTE: Final = 1024
#: Offsets are drawn below this.
_ANYWHERE: Final = 2**30


class Scheduler:
    """One scheduler. Everything happens on the event loop."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        chance: Chance,
        *,
        gates: Gates,
        version: Version,
        settings: SchedulerSettings | None = None,
        metrics: Metrics | None = None,
        registry: Sequence[type[Plugin]] = REGISTRY,
        features: Framework = FRAMEWORK,
        identity: str = "",
    ) -> None:
        """`identity` tells copies of the same scheduler apart when they elect a leader.

        `features` are the declared features that pods may need of nodes (KEP-5328).
        """
        self.metrics: Final = metrics if metrics is not None else Metrics()
        self.settings: Final = settings or SchedulerSettings((default_profile(gates),))
        self._client, self._clock, self._chance = client, clock, chance
        self.identity: Final = identity or chance.uuid()
        self._informers = InformerFactory(client, chance.child("informers"))
        self._recorder = EventRecorder(
            client, chance.child("events"), component=self.settings.profiles[0].name, queue_size=MOST_EVENTS
        )
        self._recorders = {
            profile.name: self._recorder.on_behalf_of(profile.name) for profile in self.settings.profiles
        }
        listers = InformerListers(self._informers, looked_up(registry, self.settings.plugin_names))
        self.engine: Final = build_engine(
            self.settings,
            gates=gates,
            version=version,
            clock=clock,
            metrics=self.metrics,
            listers=listers,
            handle_of=self._handle,
            registry=registry,
            offset=chance.child("ties").randrange(_ANYWHERE),
            features=features,
        )
        for profile in self.engine.profiles.values():
            if not profile.binds:
                raise ConfigError(
                    f'profile "{profile.name}" has no bind plugin; the usual one is DefaultBinder'
                )
        self._wake = asyncio.Event()
        self._binder = Binder(self.engine, self._bound, self._failed, self._break, self._wake.set)
        self._writer = StatusWriter(client, observes=gates.enabled("PodObservedGenerationTracking"))
        self._follower = EventHandlers(self.engine, self._informers, listers, self._wake.set)
        profiles = self.engine.profiles.values()
        self.engine.metrics.follow(
            self.engine.queue, self.engine.table, profiles, lambda: self._binder.under_way
        )
        self._synced = asyncio.Event()
        self._broken: BaseException | None = None
        self._beside: dict[asyncio.Task[object], None] = {}
        self._task: asyncio.Task[None] | None = None

    # -- life

    async def start(self) -> None:
        """Start the informers and the scheduling loop; return when the informers have synced."""
        self._task = asyncio.create_task(self._main(), name="scheduler")
        synced = asyncio.create_task(self._synced.wait())
        try:
            await asyncio.wait((self._task, synced), return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
        if self._task.done():
            self._task.result()

    async def run(self) -> None:
        """Run until cancelled or stopped; raise the error that ends it, such as lost leadership."""
        if self._task is None:
            await self.start()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Stop at once. Decisions that were not written yet are made again by the next scheduler."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._recorder.aclose()

    def is_synced(self) -> bool:
        """Whether the informers have synced."""
        return self._synced.is_set()

    def is_alive(self) -> bool:
        """Whether the scheduler is running."""
        return self._task is not None and not self._task.done()

    async def _main(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._informers.run(), name="scheduler's informers")
                await self._informers.wait_synced()
                self._synced.set()
                await self._lead(self._schedule)
        except BaseExceptionGroup as several:
            error = several.exceptions[0]
            LOG.critical("the scheduler stops: %s", error, exc_info=error)
            raise error from None
        finally:
            await self._binder.stop()
            await self._writer.stop()
            beside = [*self._beside]
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> None:
        chosen = self.settings
        if not chosen.leader_elect:
            await work()
            return
        elector = LeaderElector(
            self._client,
            self._chance.child("leader"),
            name=chosen.resource_name,
            namespace=chosen.resource_namespace,
            identity=self.identity,
            times=LeaderTimes(
                chosen.lease_duration_seconds, chosen.renew_deadline_seconds, chosen.retry_period_seconds
            ),
            on_new_leader=lambda leader: LOG.info("the leader is %s", leader),
        )
        await elector.run(work)

    # -- the loop

    async def _schedule(self) -> None:
        engine, binder, wake = self.engine, self._binder, self._wake
        while True:
            wake.clear()
            self._flush()
            decided = 0
            while decided < BATCH and binder.has_room and (attempt := engine.next()) is not None:
                decided += 1
                if attempt.failure is None:
                    binder.start(attempt)
                else:
                    self._failed(attempt)
            if self._broken is not None:
                raise self._broken
            if decided:
                await self._clock.yield_now()
            else:
                await self._rest()

    def _flush(self) -> None:
        now_ns = self._clock.monotonic_ns()
        self.engine.queue.flush_backoff(now_ns)
        self.engine.queue.flush_unschedulable(now_ns)

    async def _rest(self) -> None:
        """Sleep until an event arrives or a backoff in the queue ends."""
        now_ns = self._clock.monotonic_ns()
        deadline_ns = self.engine.queue.next_deadline_ns(now_ns)
        if deadline_ns is None:
            await self._wake.wait()
            return
        # Whole milliseconds, rounded up: a timer that is early would be set again and again.
        milliseconds = (deadline_ns - now_ns) // 10**6 + 1
        timer = self._clock.call_later(milliseconds / 1000, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    # -- what became of attempts

    def _bound(self, attempt: Attempt) -> None:
        view = attempt.view
        text = f"Successfully assigned {view.key} to {attempt.node}"
        self._recorders[attempt.profile.name].event(view.pod, NORMAL, "Scheduled", text)

    def _failed(self, attempt: Attempt) -> None:
        failure = attempt.failure
        if failure is None or failure.place is Place.GONE:
            return
        pod = attempt.queued.pod.pod
        self._recorders[attempt.profile.name].event(
            pod, WARNING, "FailedScheduling", _shortened(failure.message)
        )
        if failure.reason:
            self._writer.write(pod, failure)
        if failure.work is not None:
            # If that fails, the pod is tried again as any other that waits.
            self._spawn(guarded_wait("making room for", attempt.view.key, failure.work()))
        self._wake.set()

    def _break(self, error: BaseException) -> None:
        self._broken = error
        self._wake.set()

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._beside[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        del self._beside[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._break(error)

    def _handle(self, reach: SchedulerAccess) -> FrameworkHandle:
        def activate(pod: Any) -> None:
            reach.activate(pod)
            self._wake.set()

        return FrameworkHandle(
            client=self._client,
            clock=self._clock,
            chance=self._chance.child("plugins"),
            recorder=self._recorder,
            nominator=reach.nominator,
            metrics=self.metrics,
            filter_plain=lambda cycle, pod, node: reach.filters().filter_plain(cycle, pod, node),
            filters=reach.filters,
            activate=activate,
            spawn=lambda pod, work: self._spawn(guarded_wait("working beside", pod.key, work)),
            set_aside=lambda: self._binder.set_aside(),
            waiting=reach.waiting,
        )


def _shortened(message: str) -> str:
    """Cut a message to the length an event can have."""
    data = message.encode()
    if len(data) <= _LONGEST_NOTE:
        return message
    return data[: _LONGEST_NOTE - 4].decode(errors="ignore") + " ..."
