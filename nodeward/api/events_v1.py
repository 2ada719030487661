"""Events: events.k8s.io/v1. Stored in their core/v1 form."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.cluster import EventSource
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.fields import REQUIRED, Int32, KubeStruct, MicroTime, Time, always, always_null, nested
from nodeward.api.meta import KubeObject


class EventSeries(KubeStruct):
    count: Annotated[Int32, REQUIRED] = always(0)
    last_observed_time: Annotated[MicroTime | None, REQUIRED] = always_null()


class Event(KubeObject):
    event_time: Annotated[MicroTime | None, REQUIRED] = always_null()
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = nested(ObjectReference)
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = nested(EventSource)
    deprecated_first_timestamp: Time | None = always_null()
    deprecated_last_timestamp: Time | None = always_null()
    deprecated_count: Int32 = 0
