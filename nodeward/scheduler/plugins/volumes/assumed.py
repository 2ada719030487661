"""Volumes and claims as they will be: what the API told, with the bindings that were decided and are not told yet.

An assumption lives as long as the object it was made from is the newest known; when the API tells of a newer one, be
it because the binding was written or because somebody else came first, that one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.meta import KubeObject
from nodeward.rules.volumes import class_of_volume
from nodeward.scheduler.framework.listers import Listers

T = TypeVar("T", bound=KubeObject)


class _Assumed(Generic[T]):
    """Objects of one kind."""

    def __init__(self, listers: Listers, kind: type[T]) -> None:
        self._listers = listers
        self._kind = kind
        #: the version an assumption was made from, and the object as it will be
        self._held: dict[tuple[str, str], tuple[str, T]] = {}
        #: counts assumptions made and given up
        self.version = 0

    def get(self, name: str, namespace: str = "") -> T | None:
        known = self._listers.get(self._kind, name, namespace)
        return self.over(known) if known is not None else None

    def over(self, known: T) -> T:
        """The object as it is assumed to be."""
        key = known.metadata.namespace, known.metadata.name
        held = self._held.get(key)
        if held is None:
            return known
        version, assumed = held
        if version == known.metadata.resource_version and assumed.metadata.uid == known.metadata.uid:
            return assumed
        del self._held[key]
        self.version += 1
        return known

    def assume(self, changed: T) -> None:
        """`changed` was made from the newest version and still has its number."""
        meta = changed.metadata
        self._held[meta.namespace, meta.name] = meta.resource_version, changed
        self.version += 1

    def restore(self, changed: T) -> None:
        """Give up an assumption; nothing happens if it is not this one any more."""
        key = changed.metadata.namespace, changed.metadata.name
        held = self._held.get(key)
        if held is not None and held[1] is changed:
            del self._held[key]
            self.version += 1


class AssumedVolumes:
    """Volumes and claims of one scheduler."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self.volumes: Final = _Assumed(listers, PersistentVolume)
        self.claims: Final = _Assumed(listers, PersistentVolumeClaim)
        self._by_class: dict[str, list[PersistentVolume]] = {}
        self._version: int | None = None

    def of_class(self, name: str) -> Sequence[PersistentVolume]:
        """The volumes of a storage class, sorted by name."""
        version = self._listers.version(PersistentVolume)
        if version != self._version:
            self._by_class = {}
            for each in self._listers.list(PersistentVolume):
                self._by_class.setdefault(class_of_volume(each), []).append(each)
            for volumes in self._by_class.values():
                volumes.sort(key=lambda each: each.metadata.name)
            self._version = version
        return [self.volumes.over(each) for each in self._by_class.get(name, ())]
