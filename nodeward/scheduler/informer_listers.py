"""Objects beside nodes and pods, as informers have them: the `Listers` plugins look things up in.

One informer per kind that a plugin of some profile reads; a version per kind that changes with every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from nodeward.api.meta import KubeObject
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.informer import Informer, InformerFactory
from nodeward.scheduler.framework.listers import OnChange

T = TypeVar("T", bound=KubeObject)


class InformerListers:
    """What is known of the given kinds."""

    def __init__(self, informers: InformerFactory, kinds: Iterable[type[KubeObject]]) -> None:
        self._informers: Final[dict[type[KubeObject], Informer[Any]]] = {}
        self._versions: dict[type[KubeObject], int] = {}
        for kind in kinds:
            if kind in self._informers:
                continue
            self._informers[kind] = informer = informers.informer(kind)
            self._versions[kind] = 0
            self._count(kind, informer)

    @property
    def kinds(self) -> tuple[type[KubeObject], ...]:
        return tuple(self._informers)

    def tell(self, kind: type[KubeObject], told: OnChange) -> None:
        """Call back for every change of the kind, after its version has changed."""
        self._informer(kind).add_handler(lambda new: told(None, new), told, lambda old: told(old, None))

    def get(self, kind: type[T], name: str, namespace: str = "") -> T | None:
        found: T | None = self._informer(kind).get(name, namespace)
        return found

    def list(self, kind: type[T], namespace: str = "") -> Sequence[T]:
        found: Sequence[T] = self._informer(kind).list(namespace)
        return found

    def version(self, kind: type[KubeObject]) -> int:
        self._informer(kind)
        return self._versions[kind]

    def _count(self, kind: type[KubeObject], informer: Informer[Any]) -> None:
        def changed(*_: object) -> None:
            self._versions[kind] += 1

        informer.add_handler(changed, changed, changed)

    def _informer(self, kind: type[KubeObject]) -> Informer[Any]:
        found = self._informers.get(kind)
        if found is None:
            raise InvariantBroken(f"a plugin looks up {kind.__name__}, which is not in its `objects`")
        return found
