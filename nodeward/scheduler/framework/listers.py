"""Objects beside nodes and pods that plugins look up: volumes, classes, namespaces, disruption budgets.

A plugin declares in `objects` which kinds it reads; the scheduler runs informers for them, wakes waiting pods with
their changes, and puts a `Listers` into the `PluginContext`. `FixedListers` holds a given set of objects, for
explanations and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from nodeward.api.meta import KubeObject

T = TypeVar("T", bound=KubeObject)

#: (object before or None, object after or None)
OnChange: TypeAlias = "Callable[[Any, Any], None]"


class Listers(Protocol):
    """What is known now. Nothing handed out may be changed."""

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...

    def list(self, kind: type[T], namespace: str = "") -> Sequence[T]:
        """All of a kind, or those in one namespace."""
        ...

    def version(self, kind: type[KubeObject]) -> int:
        """Changes whenever something of the kind does: what was worked out from it is old then."""
        ...

    def tell(self, kind: type[KubeObject], told: OnChange) -> None:
        """Call back for every further change of the kind, after its version has changed."""
        ...


class FixedListers:
    """A given set of objects; `put` and `remove` change it."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        self._objects: Final[dict[type[KubeObject], dict[tuple[str, str], KubeObject]]] = {}
        self._versions: dict[type[KubeObject], int] = {}
        self._told: Final[dict[type[KubeObject], list[OnChange]]] = {}
        for each in objects:
            self.put(each)

    def put(self, obj: KubeObject) -> None:
        kind = type(obj)
        known = self._objects.setdefault(kind, {})
        key = obj.metadata.namespace, obj.metadata.name
        before = known.get(key)
        known[key] = obj
        self._changed(kind, before, obj)

    def remove(self, obj: KubeObject) -> None:
        kind = type(obj)
        gone = self._objects.get(kind, {}).pop((obj.metadata.namespace, obj.metadata.name), None)
        if gone is not None:
            self._changed(kind, gone, None)

    def tell(self, kind: type[KubeObject], told: OnChange) -> None:
        self._told.setdefault(kind, []).append(told)

    def _changed(self, kind: type[KubeObject], before: KubeObject | None, after: KubeObject | None) -> None:
        self._versions[kind] = self._versions.get(kind, 0) + 1
        for told in self._told.get(kind, ()):
            told(before, after)

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        found = self._objects.get(kind, {}).get((namespace, name))
        return found if isinstance(found, kind) else None

    def list(self, kind: type[T], namespace: str = "") -> Sequence[T]:
        known = self._objects.get(kind, {}).items()
        return [
            obj
            for (inside, _), obj in known
            if isinstance(obj, kind) and (not namespace or inside == namespace)
        ]

    def version(self, kind: type[KubeObject]) -> int:
        return self._versions.get(kind, 0)
