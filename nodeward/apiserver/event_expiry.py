"""Events expire: one that was not written for an hour (`--event-ttl`) is deleted.

Upstream gives events a lease in etcd; here the server does it, so that it works on every store. It follows the cache of
events and keeps the time at which each version runs out, in order. An event that was written again meanwhile has a
later time of its own. After a restart the times in the events themselves count. Several servers on one etcd may all
delete: whoever is late finds nothing.

Started by `server.py`; deletes straight in the store, conditional on the version.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from nodeward.api.core_v1.cluster import Event
from nodeward.apiserver.cache import ChangeBatch
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.item import Item
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import TimestampError, parse_rfc3339
from nodeward.store.interface import StoreUnavailable

LOG: Final = logging.getLogger(__name__)

DEFAULT_TTL_SECONDS: Final = 3600.0
#: Events are looked for this often.
_LOOK_SECONDS: Final = 30.0
#: Deletes under way at a time.
_AT_ONCE: Final = 100


class _Meta(msgspec.Struct, gc=False):
    creation_timestamp: str | None = msgspec.field(default=None, name="creationTimestamp")


class _Series(msgspec.Struct, gc=False):
    last_observed: str | None = msgspec.field(default=None, name="lastObservedTime")


class _Times(msgspec.Struct, gc=False):
    metadata: _Meta
    series: _Series | None = None
    last_timestamp: str | None = msgspec.field(default=None, name="lastTimestamp")
    event_time: str | None = msgspec.field(default=None, name="eventTime")


_DECODE: Final = msgspec.json.Decoder(_Times).decode


class EventExpiry:
    """Deletes the events of one server's store that have run out."""

    def __init__(self, env: Environment, ttl_seconds: float) -> None:
        """Begin to follow the cache. `ttl_seconds` of 0 or less: events stay."""
        self._env = env
        self._ttl_ns = int(ttl_seconds * SECOND_NS)
        self._kind = env.scheme.by_type(Event)
        cache = env.hub.cache(self._kind)
        #: when (wall clock) which version of which event runs out, in that order
        self._due: deque[tuple[int, str, int]] = deque(
            sorted(
                (self._last_written_ns(item) + self._ttl_ns, key, item.revision)
                for key, item in cache.objects.items()
            )
        )
        self._stop = cache.watch(self)

    def changed(self, batch: ChangeBatch) -> None:
        due_ns = self._env.clock.now_ns() + self._ttl_ns
        self._due.extend(
            (due_ns, change.key, change.revision) for change in batch.changes if change.type != "DELETED"
        )

    def relisted(self, batch: ChangeBatch) -> None:
        self.changed(batch)

    async def run(self) -> None:
        """Delete what runs out, for as long as the server runs."""
        try:
            while self._ttl_ns > 0:
                await self._env.clock.sleep(_LOOK_SECONDS)
                try:
                    await self._delete_due()
                except StoreUnavailable as error:
                    LOG.warning("expired events could not be deleted: %s", error)
        finally:
            self._stop()

    async def _delete_due(self) -> None:
        while batch := self._take_due():
            try:
                await asyncio.gather(*(self._delete(key, revision) for _, key, revision in batch))
            except StoreUnavailable:
                self._due.extendleft(reversed(batch))
                raise

    def _take_due(self) -> list[tuple[int, str, int]]:
        """Take some versions that have run out and are still the newest."""
        now_ns, objects = self._env.clock.now_ns(), self._env.hub.cache(self._kind).objects
        found: list[tuple[int, str, int]] = []
        while self._due and self._due[0][0] <= now_ns and len(found) < _AT_ONCE:
            entry = self._due.popleft()
            item = objects.get(entry[1])
            if item is not None and item.revision == entry[2]:
                found.append(entry)
        return found

    async def _delete(self, key: str, revision: int) -> None:
        await self._env.hub.store.delete(self._env.hub.prefix(self._kind) + key, expected=revision)

    def _last_written_ns(self, item: Item) -> int:
        """Return when an event that was there at the start was last written, as far as it says."""
        now_ns = self._env.clock.now_ns()
        try:
            times = _DECODE(item.data)
        except msgspec.DecodeError:
            return now_ns
        observed = times.series.last_observed if times.series is not None else None
        said = (observed, times.last_timestamp, times.event_time, times.metadata.creation_timestamp)
        return min(now_ns, max(_instants(said), default=now_ns))


def _instants(texts: Iterable[str | None]) -> list[int]:
    found: list[int] = []
    for text in texts:
        if text:
            try:
                found.append(parse_rfc3339(text))
            except TimestampError:
                continue
    return found
