"""The objects of one owner, those of nobody, and those of one namespace, without looking at all there are.

All controllers share one informer for each kind, and so one index: by the uid of the controller, or for orphans by
their namespace. `OwnerIndex(informers, Pod)` is what every workload controller counts by.

Called by the workload controllers; calls `controller_ref_manager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from nodeward.api.meta import KubeObject
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.machinery.informer import Informer, InformerFactory

T = TypeVar("T", bound=KubeObject)

_OWNER: Final = "controller"
_ORPHANS: Final = "orphans in "
_NAMESPACE: Final = "namespace"


class OwnerIndex(Generic[T]):
    """The shared objects of one kind, by owner."""

    def __init__(self, informers: InformerFactory, type_: type[T]) -> None:
        self.informer: Final[Informer[T]] = informers.informer(type_)
        if not self.informer.has_index(_OWNER):
            self.informer.add_index(_OWNER, _owner)

    def controlled_by(self, uid: str) -> Sequence[T]:
        """Return everything whose controller this is, whatever its state."""
        return self.informer.by_index(_OWNER, uid)

    def orphans(self, namespace: str) -> Sequence[T]:
        """Return everything in the namespace that has no controller."""
        return self.informer.by_index(_OWNER, _ORPHANS + namespace)


class NamespaceIndex(Generic[T]):
    """The shared objects of one kind, by namespace."""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        if not informer.has_index(_NAMESPACE):
            informer.add_index(_NAMESPACE, lambda obj: (obj.metadata.namespace,))

    def __getitem__(self, namespace: str) -> Sequence[T]:
        return self._informer.by_index(_NAMESPACE, namespace)


def _owner(obj: KubeObject) -> Iterable[str]:
    reference = controller_of(obj)
    return (_ORPHANS + obj.metadata.namespace if reference is None else reference.uid,)
