"""The event recorder: events about objects, written to the API in the background.

`recorder.event(pod, NORMAL, "Scheduled", "...")` returns at once. Repeats are counted and floods are cut
(`event_correlation`); what is left is written by short-lived tasks, which exist only while there is something to
write, so that a recorder costs nothing while it is silent.

What must stay true: the caller never waits and never sees an error; memory is bounded, and what does not fit is
dropped and counted; events about one object are written in order; closing writes what is left, within a time limit.

Called by the scheduler, controllers, the kubelet and the cluster assembly; calls `client` and `event_correlation`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import zlib
from collections import deque
from typing import Final

from nodeward.api.core_v1.cluster import Event, EventSource
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.base.errors import WorldError
from nodeward.base.invariant import invariant
from nodeward.base.timestamp import rfc3339
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Chance
from nodeward.machinery.event_correlation import CorrelationResult, EventCorrelator

_log: Final = logging.getLogger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

#: Events that wait to be written; further ones are dropped and counted.
QUEUE_SIZE: Final = 1000
_MAX_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0
_MAX_NAME: Final = 253
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def reference(obj: KubeObject, client: Client, field_path: str = "") -> ObjectReference:
    """Return what an event says it is about."""
    kind, api_version = obj.kind, obj.api_version
    if not kind:
        known = client.kind_of(type(obj))
        kind, api_version = known.name, known.api_version
    meta = obj.metadata
    return ObjectReference(
        kind=kind,
        api_version=api_version,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        field_path=field_path,
    )


class EventRecorder:
    """Records events as `component` on `host`. Use on the event loop only."""

    def __init__(
        self, client: Client, chance: Chance, *, component: str, host: str = "", queue_size: int = QUEUE_SIZE
    ) -> None:
        self._client = client
        self._source = EventSource(component=component, host=host)
        self._writer = EventWriter(client, chance, queue_size)

    def on_behalf_of(self, component: str, host: str = "") -> EventRecorder:
        """Return a recorder for another source with the same memory and queue: thousands of nodes need one writer."""
        other = EventRecorder.__new__(EventRecorder)
        other._client = self._client
        other._source = EventSource(component=component, host=host)
        other._writer = self._writer
        return other

    @property
    def dropped(self) -> int:
        """Events lost because the queue was full, the server refused them, or could not be reached for long."""
        return self._writer.dropped

    def event(
        self,
        about: KubeObject | ObjectReference,
        type_: str,
        reason: str,
        message: str,
        *,
        annotations: dict[str, str] | None = None,
        action: str = "",
    ) -> None:
        """Tell that `reason` happened to an object; `type_` is NORMAL or WARNING, `action` what was done about it."""
        invariant(type_ in (NORMAL, WARNING), f"an event is Normal or Warning, not {type_!r}")
        target = about if isinstance(about, ObjectReference) else reference(about, self._client)
        now = rfc3339(self._client.clock.now_ns())
        self._writer.record(
            Event(
                kind="Event",
                api_version="v1",
                metadata=ObjectMeta(namespace=target.namespace or "default", annotations=annotations or {}),
                involved_object=target,
                reason=reason,
                message=message,
                action=action,
                source=self._source,
                first_timestamp=now,
                last_timestamp=now,
                count=1,
                type=type_,
                reporting_component=self._source.component,
                reporting_instance=self._source.host,
            )
        )

    async def flush(self) -> None:
        """Wait until everything recorded so far is written or given up."""
        await self._writer.flush()

    async def aclose(self, timeout: float = 5.0) -> None:
        """Write what is left, for at most `timeout` seconds; what is recorded afterwards is dropped."""
        await self._writer.aclose(timeout)


class EventWriter:
    """The queue and the tasks that empty it. Events about one object always go through the same lane."""

    LANES: Final = 4

    def __init__(self, client: Client, chance: Chance, queue_size: int) -> None:
        self._client = client
        self._clock = client.clock
        self._chance = chance
        self._correlator = EventCorrelator()
        self._queue_size = queue_size
        self._lanes: list[deque[CorrelationResult]] = [deque() for _ in range(self.LANES)]
        self._tasks: list[asyncio.Task[None] | None] = [None] * self.LANES
        self._waiting = 0
        self._last_name_ns = 0
        self._is_closed = False
        self.dropped = 0

    def record(self, event: Event) -> None:
        if self._is_closed or self._waiting >= self._queue_size:
            self.dropped += 1
            return
        about = event.involved_object
        result = self._correlator.correlate(event, self._name(about.name), self._clock.now_ns())
        if result is None:
            return
        lane = zlib.crc32(f"{about.kind}/{about.namespace}/{about.name}".encode()) % self.LANES
        self._lanes[lane].append(result)
        self._waiting += 1
        if self._tasks[lane] is None:
            self._tasks[lane] = asyncio.create_task(self._empty(lane), name=f"events {lane}")

    def _name(self, about: str) -> str:
        """Return `<object>.<nanoseconds in hex>`; each moment is used once, since virtual time may stand still."""
        self._last_name_ns = max(self._clock.now_ns(), self._last_name_ns + 1)
        name = f"{about}.{self._last_name_ns:x}"
        if len(name) > _MAX_NAME or not _SUBDOMAIN.fullmatch(name):
            return self._chance.uuid()
        return name

    async def flush(self) -> None:
        while tasks := [task for task in self._tasks if task is not None]:
            await asyncio.wait(tasks)

    async def aclose(self, timeout: float) -> None:
        self._is_closed = True
        try:
            async with self._clock.timeout(timeout):
                await self.flush()
        except TimeoutError:
            tasks = [task for task in self._tasks if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.dropped += self._waiting
            _log.warning("%d events were not written in time", self._waiting)
            self._waiting = 0

    async def _empty(self, lane: int) -> None:
        queue = self._lanes[lane]
        try:
            while queue:
                # It stays in the queue while it is written: `_waiting` counts it, and a cancelled task loses nothing.
                await self._write(queue[0])
                queue.popleft()
                self._waiting -= 1
        finally:
            self._tasks[lane] = None

    async def _write(self, result: CorrelationResult) -> None:
        for tries in range(1, _MAX_TRIES + 1):
            try:
                await self._send(result, is_repeat=tries > 1)
                return
            except ApiError as error:
                if tries > 1 and error.reason == "AlreadyExists":
                    return  # an earlier try had arrived after all
                self.dropped += 1
                _log.info("the server refused event %s: %s", result.recorded.name, error)
                return
            except WorldError as error:
                _log.warning("event %s: %s", result.recorded.name, error)
            if tries < _MAX_TRIES:
                # The first wait is random, so that not everybody returns at the same time after an outage.
                share = self._chance.uniform(0.0, 1.0) if tries == 1 else 1.0
                await self._clock.sleep(_RETRY_SECONDS * share)
        self.dropped += 1

    async def _send(self, result: CorrelationResult, *, is_repeat: bool) -> None:
        event, recorded = result.event, result.recorded
        if result.patch is not None:
            try:
                await self._client.patch(
                    bytes,
                    recorded.name,
                    result.patch,
                    namespace=event.metadata.namespace,
                    patch_type=PatchType.STRATEGIC,
                    kind=self._client.kind_of(Event),
                )
                return
            except ApiError as error:
                if error.code != 404:
                    raise
        event.metadata.name = recorded.name
        try:
            await self._client.create(event)
        except ApiError as error:
            if error.reason != "AlreadyExists" or is_repeat:
                raise
            # Unlike upstream: another component recorded an event about the same object in the same nanosecond, which
            # is common in virtual time. Told again under a name nobody else makes.
            about = event.involved_object.name
            event.metadata.name = recorded.name = self._name(f"{about}.{self._chance.name_suffix()}")
            await self._client.create(event)
