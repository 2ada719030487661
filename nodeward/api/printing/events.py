"""Printers of events, in both of their forms; they look the same in a table."""

from __future__ import annotations

from nodeward.api.core_v1 import cluster
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.events_v1 import Event
from nodeward.api.printing.cells import since
from nodeward.api.printing.printer import Cells, Column, Printer, wide


def _times_and_count(
    first: str | None,
    last: str | None,
    event_time: str | None,
    series: tuple[str | None, int] | None,
    count: int,
    now_ns: int,
) -> tuple[str, str, int]:
    """Return last seen, first seen, and the count, from the fields of either form or the series."""
    first_seen = since(first or event_time, now_ns)
    last_seen = since(last, now_ns) if last else first_seen
    if series is not None:
        return since(series[0], now_ns), first_seen, series[1]
    return last_seen, first_seen, count or 1


def _target(reference: ObjectReference) -> str:
    kind = reference.kind.lower()
    return f"{kind}/{reference.name}" if reference.name else kind


def _source(component: str, instance: str) -> str:
    return f"{component}, {instance}" if instance else component


def _core_event(event: cluster.Event, now_ns: int) -> Cells:
    series = event.series
    last_seen, first_seen, count = _times_and_count(
        event.first_timestamp,
        event.last_timestamp,
        event.event_time,
        None if series is None else (series.last_observed_time, series.count),
        event.count,
        now_ns,
    )
    return [
        last_seen,
        event.type,
        event.reason,
        _target(event.involved_object),
        event.involved_object.field_path,
        _source(
            event.source.component or event.reporting_component, event.source.host or event.reporting_instance
        ),
        event.message.strip(),
        first_seen,
        count,
        event.metadata.name,
    ]


def _event(event: Event, now_ns: int) -> Cells:
    series, source = event.series, event.deprecated_source
    last_seen, first_seen, count = _times_and_count(
        event.deprecated_first_timestamp,
        event.deprecated_last_timestamp,
        event.event_time,
        None if series is None else (series.last_observed_time, series.count),
        event.deprecated_count,
        now_ns,
    )
    return [
        last_seen,
        event.type,
        event.reason,
        _target(event.regarding),
        event.regarding.field_path,
        _source(source.component or event.reporting_controller, source.host or event.reporting_instance),
        event.note.strip(),
        first_seen,
        count,
        event.metadata.name,
    ]


_COLUMNS = (
    Column("Last Seen", description="Time since it last happened."),
    Column("Type", description="Normal, or a warning."),
    Column("Reason", description="What happened, in one word."),
    Column("Object", description="What it happened to."),
    wide("Subobject", "Which part of the object."),
    wide("Source", "Who says so."),
    Column("Message", description="What happened, in a sentence."),
    wide("First Seen", "Time since it first happened."),
    wide("Count", "How often it happened."),
    Column("Name", format="name", description="Name of the event.", priority=1),
)

CORE_EVENT = Printer(_COLUMNS, _core_event)
EVENT = Printer(_COLUMNS, _event)
