"""Reading from an object's bytes just what selectors ask for: labels, and the fields a kind lets select.

A struct with nothing but those fields is made for each kind, so that a look at a 3 KB object costs a few microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from nodeward.apiserver.item import Item
from nodeward.rules.selectors import Fields, Labels

ALWAYS = ("metadata.name", "metadata.namespace")
#: Names a selector may use for a field that is called otherwise: events are stored in their older form.
ALIASES = {
    "source": "source.component",
    "status.successful": "status.succeeded",
    "reportingController": "reportingComponent",
    **{
        f"regarding.{name}": f"involvedObject.{name}"
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
}
#: Where a value comes from if it is not where it should be.
_OTHERWISE = {"source": "reportingComponent"}


def _struct(name: str, paths: Iterable[tuple[str, ...]]) -> type[msgspec.Struct]:
    """A struct with these paths and nothing else."""
    inner: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        inner.setdefault(first, [])
        if rest:
            inner[first].append(tuple(rest))
    fields: list[tuple[str, Any, Any]] = []
    for field, below in inner.items():
        kind = _struct(f"{name}_{field}", below) | None if below else Any
        fields.append((f"f_{field}", kind, msgspec.field(default=None, name=field)))
    return msgspec.defstruct(name, fields)


class Selecting:
    """What can be selected by in one kind."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = (*ALWAYS, *paths)
        places = (ALIASES.get(path, path) for path in self.paths)
        wanted = [*(tuple(place.split(".")) for place in places), ("metadata", "labels")]
        self._decoder = msgspec.json.Decoder(_struct("Selectable", wanted))

    def read(self, item: Item) -> Selected:
        return Selected(self._decoder.decode(item.data))


class Selected:
    """One object, opened for selection."""

    __slots__ = ("_struct",)

    def __init__(self, struct: msgspec.Struct) -> None:
        self._struct = struct

    def value(self, path: str) -> str:
        """The field as text, as field selectors compare it; absent is empty."""
        value: Any = self._struct
        for part in ALIASES.get(path, path).split("."):
            value = getattr(value, f"f_{part}", None)
            if value is None and path in _OTHERWISE:
                return self.value(_OTHERWISE[path])
            if value is None:
                return _ABSENT.get(path, "")
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else str(value)

    @property
    def labels(self) -> dict[str, str]:
        metadata = getattr(self._struct, "f_metadata", None)
        labels: dict[str, str] | None = getattr(metadata, "f_labels", None)
        return labels or {}

    def matches(self, labels: Labels, fields: Fields) -> bool:
        return labels.matches(self.labels) and fields.matches(self.value)


#: What the absence of a field means.
_ABSENT = {
    "spec.unschedulable": "false",
    "spec.hostNetwork": "false",
    "spec.dryRun": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
