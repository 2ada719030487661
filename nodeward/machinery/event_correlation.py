"""Which events are worth telling, and how: the same one again, many alike, or too many altogether.

In goes an event and the time, out comes what to do: create it, raise the count of one that exists, or nothing.

* The same event again (same object, type, reason, message) raises the count of the first.
* Events that differ only in their message: from the tenth within ten minutes on they are combined into one.
* About one object a source may send 25 events in a row, and one more every five minutes.

Pure: no waiting, no I/O. What must stay true: memory is bounded, the least recently used facts are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import msgspec

from nodeward.api.core_v1.cluster import Event
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339

V = TypeVar("V")

COMBINED: Final = "(combined from similar events): "

_MAX_REMEMBERED: Final = 4096
_COMBINE_FROM: Final = 10
_COMBINE_WITHIN_NS: Final = 600 * SECOND_NS
_BURST: Final = 25.0
_NS_PER_TOKEN: Final = 300 * SECOND_NS


@dataclass(slots=True)
class RecordedEvent:
    """An event that was recorded, and its name. `name` is changed by whoever had to store it under another."""

    name: str
    first_timestamp: str | None
    count: int


@dataclass(slots=True)
class CorrelationResult:
    """Create `event`, or, with a `patch`, change the one called `recorded.name` (and create it if it is gone)."""

    event: Event
    recorded: RecordedEvent
    patch: dict[str, Any] | None = None


class _Recent(Generic[V]):
    """A dictionary that forgets what has not been used for longest."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: str, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _MAX_REMEMBERED:
            self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(slots=True)
class _Alike:
    """Messages seen of events that are alike otherwise."""

    messages: dict[str, None] = field(default_factory=dict)
    last_ns: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_ns: int


class EventCorrelator:
    """The memory of one recorder."""

    def __init__(self) -> None:
        self._alike: _Recent[_Alike] = _Recent()
        self._recorded: _Recent[RecordedEvent] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()

    def correlate(self, event: Event, name: str, now_ns: int) -> CorrelationResult | None:
        """Decide what to do about `event`; None: nothing. `name`: for a new event. `event` is not changed."""
        source = _source(event)
        combined_key = f"{source}\0{event.reason}"
        key = f"{combined_key}\0{event.involved_object.field_path}\0{event.message}"
        event = msgspec.structs.replace(event, metadata=msgspec.structs.replace(event.metadata, name=name))
        if self._is_one_of_many(combined_key, event.message, now_ns):
            now = rfc3339(now_ns)
            event.message = COMBINED + event.message
            event.first_timestamp = event.last_timestamp = now
            key = combined_key
        result = self._count(event, key)
        return result if self._may_pass(source, now_ns) else None

    def _is_one_of_many(self, key: str, message: str, now_ns: int) -> bool:
        alike = self._alike.get(key)
        if alike is None or now_ns - alike.last_ns > _COMBINE_WITHIN_NS:
            alike = _Alike()
            self._alike.put(key, alike)
        alike.messages[message] = None
        alike.last_ns = now_ns
        if len(alike.messages) < _COMBINE_FROM:
            return False
        # Not remembered: the next of many is then one too many again.
        del alike.messages[message]
        return True

    def _count(self, event: Event, key: str) -> CorrelationResult:
        recorded = self._recorded.get(key)
        if recorded is None:
            recorded = RecordedEvent(event.metadata.name, event.first_timestamp, event.count)
            self._recorded.put(key, recorded)
            return CorrelationResult(event, recorded)
        recorded.count += 1
        event.first_timestamp = recorded.first_timestamp
        event.count = recorded.count
        patch = {"count": event.count, "lastTimestamp": event.last_timestamp, "message": event.message}
        return CorrelationResult(event, recorded, patch)

    def _may_pass(self, key: str, now_ns: int) -> bool:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(_BURST, now_ns)
            self._buckets.put(key, bucket)
        bucket.tokens = min(_BURST, bucket.tokens + (now_ns - bucket.at_ns) / _NS_PER_TOKEN)
        bucket.at_ns = now_ns
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _source(event: Event) -> str:
    about = event.involved_object
    return "\0".join(
        (
            event.source.component,
            event.source.host,
            about.api_version,
            about.kind,
            about.namespace,
            about.name,
            about.uid,
            event.type,
        )
    )
