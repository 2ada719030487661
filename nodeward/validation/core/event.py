"""Events: the loose rules of core/v1 and the strict ones of events.k8s.io/v1.

Both forms are views of the same stored objects. Field paths are those of the core form, but for the reporting
controller, as Kubernetes reports them.
"""

from __future__ import annotations

from typing import Any, Final

from nodeward.api import events_v1
from nodeward.api.context import Context
from nodeward.api.core_v1 import cluster
from nodeward.api.core_v1.references import ObjectReference
from nodeward.base.fielderror import FieldError, invalid, required
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain, path_segment_name, size
from nodeward.validation.checks import check_immutable, check_present, check_qualified
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import Validator

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


def _core(event: cluster.Event) -> list[FieldError]:
    about = event.involved_object
    return _legacy(event, about, event.message, event.reporting_component, "reportingComponent")


def _create_core(event: cluster.Event, ctx: Context) -> list[FieldError]:
    return _core(event) + validate_metadata(event.metadata, path_segment_name, namespaced=True)


def _update_core(new: cluster.Event, old: cluster.Event, ctx: Context) -> list[FieldError]:
    return validate_metadata_update(new.metadata, old.metadata) + _core(new)


def _newer(event: events_v1.Event) -> list[FieldError]:
    return _legacy(event, event.regarding, event.note, event.reporting_controller, "reportingController")


def _series(event: events_v1.Event) -> list[FieldError]:
    if event.series is None:
        return []
    errors: list[FieldError] = []
    if event.series.count < 2:
        errors.append(invalid(ROOT.child("series.count"), "", "should be at least 2"))
    if event.series.last_observed_time is None:
        errors.append(required(ROOT.child("series.lastObservedTime")))
    return errors


def _create_newer(event: events_v1.Event, ctx: Context) -> list[FieldError]:
    errors = _newer(event)
    errors += validate_metadata(event.metadata, dns_subdomain, namespaced=True)
    errors += _series(event)
    if event.event_time is None:
        errors.append(required(ROOT.child("eventTime")))
    if event.type not in ("Normal", "Warning"):
        errors.append(invalid(ROOT.child("type"), "", f"has invalid value: {event.type}"))
    source = event.deprecated_source
    unwanted = {
        "firstTimestamp": event.deprecated_first_timestamp is not None,
        "lastTimestamp": event.deprecated_last_timestamp is not None,
        "count": event.deprecated_count != 0,
        "source": bool(source.component or source.host),
    }
    for field, is_set in unwanted.items():
        if is_set:
            errors.append(invalid(ROOT.child(field), "", "needs to be unset"))
    return errors


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


def _update_newer(new: events_v1.Event, old: events_v1.Event, ctx: Context) -> list[FieldError]:
    errors = _newer(new)
    errors += validate_metadata_update(new.metadata, old.metadata)
    if new.series != old.series:
        errors += _series(new)
    for name, field in _FIXED.items():
        value: Any = getattr(new, name)
        errors += check_immutable(value, getattr(old, name), ROOT.child(field))
    return errors


CORE_EVENT: Final = Validator(create=_create_core, update=_update_core, status=None, name=path_segment_name)
EVENT: Final = Validator(create=_create_newer, update=_update_newer, status=None, name=dns_subdomain)
