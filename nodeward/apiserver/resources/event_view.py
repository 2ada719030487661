"""Events have two faces, core/v1 and events.k8s.io/v1, and one body: what is stored is the core form.

The two differ in names only, so each direction renames fields and leaves the rest alone.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.codec import encode, from_tree, parse_tree, to_tree
from nodeward.api.core_v1.cluster import Event as CoreEvent
from nodeward.api.events_v1 import Event as NewEvent

#: events.k8s.io name -> core name
_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_NAMES = {core: new for new, core in _NAMES.items()}


def _renamed(tree: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in tree.items()}


def tree_to_view(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree of a stored event as that of the same event in events.k8s.io/v1."""
    return _renamed(tree, _CORE_NAMES)


def core_to_view(data: bytes) -> bytes:
    """A stored event as events.k8s.io/v1 shows it."""
    return encode(_renamed(parse_tree(data), _CORE_NAMES))


def view_to_core(event: NewEvent) -> CoreEvent:
    """An events.k8s.io/v1 event as it is stored."""
    return from_tree(_renamed(to_tree(event), _NAMES), CoreEvent)


def core_to_new(event: CoreEvent) -> NewEvent:
    """A stored event, opened as events.k8s.io/v1."""
    return from_tree(_renamed(to_tree(event), _CORE_NAMES), NewEvent)
