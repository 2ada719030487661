"""The strategy of events.k8s.io/v1 Events, which are stored in the form of core/v1 Events.

Both forms are the same objects; they differ in field names only, so each direction renames fields and leaves the rest
alone. An object written as events.k8s.io/v1 is held to the stricter validation of that form. Called by the writer and
by `apiserver/presenting.py`, like every strategy.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from nodeward.api.codec import from_tree, to_tree
from nodeward.api.core_v1.cluster import Event as CoreEvent
from nodeward.api.events_v1 import Event as EventV1
from nodeward.api.meta import KubeObject
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.base.fielderror import FieldError
from nodeward.validation.core.event import EVENT

#: events.k8s.io name -> core name
_CORE_NAMES: Final = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENTS_NAMES: Final = {core: name for name, core in _CORE_NAMES.items()}

#: Fields of core/v1 Events that field selectors may name.
CORE_EVENT_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)


class CoreEvents(Strategy):
    """The strategy of core/v1 Events."""

    creates_on_update: ClassVar[bool] = True
    has_dependents: ClassVar[bool] = False
    selectable: ClassVar[tuple[str, ...]] = CORE_EVENT_FIELDS


class EventsV1(Strategy):
    """The strategy of events.k8s.io/v1 Events; `kind` is the core kind, in whose form they are stored."""

    creates_on_update: ClassVar[bool] = True
    has_dependents: ClassVar[bool] = False
    selectable: ClassVar[tuple[str, ...]] = (
        *(f"regarding.{name.partition('.')[2]}" for name in CORE_EVENT_FIELDS if "." in name),
        "reason",
        "reportingController",
        "type",
    )

    def to_stored_form(self, obj: KubeObject) -> KubeObject:
        return from_tree(_renamed(to_tree(cast(EventV1, obj)), _CORE_NAMES), CoreEvent)

    def from_stored_form(self, tree: dict[str, Any]) -> dict[str, Any]:
        return _renamed(tree, _EVENTS_NAMES)

    def validate_create(self, obj: CoreEvent, env: Environment) -> list[FieldError]:
        return EVENT.create(_event_v1(obj), env.context)

    def validate_update(self, new: CoreEvent, old: CoreEvent, env: Environment) -> list[FieldError]:
        return EVENT.update(_event_v1(new), _event_v1(old), env.context)


def _event_v1(event: CoreEvent) -> EventV1:
    return from_tree(_renamed(to_tree(event), _EVENTS_NAMES), EventV1)


def _renamed(tree: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in tree.items()}
