"""Events: the loose rules of core/v1 and the strict ones of events.k8s.io/v1.

Both forms are views of the same stored objects. Field paths are those of the core form, but for the reporting
controller, as Kubernetes reports them.
"""

from __future__ import annotations

from typing import Final

from nodeward.api import events_v1
from nodeward.api.context import Context
from nodeward.api.core_v1 import cluster
from nodeward.api.core_v1.references import ObjectReference
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain, path_segment_name, size
from nodeward.validation.checks import check_immutable, check_present, check_qualified, given
from nodeward.validation.kinds import changed, kind, made

_SHORT: Final = 128
_NOTE: Final = 1024


def _legacy(
    event: cluster.Event | events_v1.Event, about: ObjectReference, message: str, controller: str, field: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    namespace = event.metadata.namespace
    at = ROOT.child("involvedObject", "namespace")
    elsewhere = invalid(at, about.namespace, "does not match event.namespace")
    if event.event_time is None:
        if about.namespace:
            fits = namespace == about.namespace
        else:
            fits = namespace in ("", "default")
        return [] if fits else [elsewhere]
    if not about.namespace and namespace not in ("default", "kube-system"):
        errors.append(elsewhere)
    errors += check_present(controller, ROOT.child(field))
    errors += check_qualified(controller, ROOT.child(field))
    errors += _needed("reportingInstance", event.reporting_instance)
    errors += _needed("action", event.action)
    errors += _needed("reason", event.reason)
    if size(message) > _NOTE:
        errors.append(invalid(ROOT.child("message"), "", f"can have at most {_NOTE} characters"))
    return errors


def _needed(field: str, text: str) -> list[FieldError]:
    if not text:
        return [required(ROOT.child(field))]
    if size(text) > _SHORT:
        return [invalid(ROOT.child(field), "", f"can have at most {_SHORT} characters")]
    return []


def _core_event(new: cluster.Event, old: cluster.Event | None, ctx: Context) -> list[FieldError]:
    about = new.involved_object
    return _legacy(new, about, new.message, new.reporting_component, "reportingComponent")


def _newer(new: events_v1.Event, old: events_v1.Event | None, ctx: Context) -> list[FieldError]:
    return _legacy(new, new.regarding, new.note, new.reporting_controller, "reportingController")


def _series(event: events_v1.Event) -> list[FieldError]:
    if event.series is None:
        return []
    errors: list[FieldError] = []
    if event.series.count < 2:
        errors.append(invalid(ROOT.child("series.count"), "", "should be at least 2"))
    return errors + given(event.series.last_observed_time, ROOT.child("series.lastObservedTime"))


def _new_event(new: events_v1.Event, old: None, ctx: Context) -> list[FieldError]:
    errors = _series(new) + given(new.event_time, ROOT.child("eventTime"))
    if new.type not in ("Normal", "Warning"):
        errors.append(invalid(ROOT.child("type"), "", f"has invalid value: {new.type}"))
    source = new.deprecated_source
    unwanted = {
        "firstTimestamp": new.deprecated_first_timestamp is not None,
        "lastTimestamp": new.deprecated_last_timestamp is not None,
        "count": new.deprecated_count != 0,
        "source": bool(source.component or source.host),
    }
    return errors + [
        invalid(ROOT.child(field), "", "needs to be unset") for field, is_set in unwanted.items() if is_set
    ]


#: The fields of the newer form that never change, and how the error names them.
_FIXED: Final = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    "deprecated_source": "source",
    "deprecated_first_timestamp": "firstTimestamp",
    "deprecated_last_timestamp": "lastTimestamp",
    "deprecated_count": "count",
    "type": "type",
    "event_time": "eventTime",
    "action": "action",
    "related": "related",
    "reporting_controller": "reportingController",
    "reporting_instance": "reportingInstance",
}


def _change(new: events_v1.Event, old: events_v1.Event, ctx: Context) -> list[FieldError]:
    errors = _series(new) if new.series != old.series else []
    for name, field in _FIXED.items():
        errors += check_immutable(getattr(new, name), getattr(old, name), ROOT.child(field))
    return errors


CORE_EVENT: Final = kind(
    path_segment_name, _core_event, create=(_core_event, made(path_segment_name, namespaced=True))
)
EVENT: Final = kind(
    dns_subdomain,
    _newer,
    create=(_newer, made(dns_subdomain, namespaced=True), _new_event),
    update=(_newer, changed, _change),
)
