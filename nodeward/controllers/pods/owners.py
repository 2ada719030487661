"""The owners of one kind, and the work queue of those to reconcile.

Listens to owners and, through a `PodEventHandlers`, to pods, and puts keys ("namespace/name") into `queue`. What a
controller of pods keeps by key is here too: what it waits for (`expectations`), and how long it waits after a refusal
(`creation_backoff`).

What must stay true: another object by the same name starts with nothing kept; news of one owner that comes in quick
succession is one look, except for what the controller waits for.

Called by the workload controllers; calls `creation_backoff`, `expectations`, `index` and `pod_event_handlers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import KubeObject, OwnerReference
from nodeward.controllers.controller import ControllerContext
from nodeward.controllers.pods.creation_backoff import CreationBackoff
from nodeward.controllers.pods.expectations import Expectations
from nodeward.controllers.pods.index import NamespaceIndex, OwnerIndex
from nodeward.controllers.pods.pod_event_handlers import PodEventHandlers, settle_seconds
from nodeward.machinery.informer import Informer
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.selectors import LabelRequirements

W = TypeVar("W", bound=KubeObject)


def key_of(owner: KubeObject) -> str:
    return f"{owner.metadata.namespace}/{owner.metadata.name}"


class OwnerQueue(Generic[W]):
    def __init__(
        self,
        context: ControllerContext,
        type_: type[W],
        queue_name: str,
        *,
        selector_of: Callable[[W], LabelRequirements | None],
        size_of: Callable[[W], int],
        forget: Callable[[W], None] = lambda owner: None,
    ) -> None:
        """`size_of(owner)`: about how many pods it has. `forget(owner)` is told of owners that are gone."""
        self.queue: Final[WorkQueue[str]] = WorkQueue(context.clock, name=queue_name)
        self.owners: Final[Informer[W]] = context.informers.informer(type_)
        self.pods: Final = OwnerIndex(context.informers, Pod)
        self.expectations: Final[Expectations[str]] = Expectations(context.clock)
        self.creation_backoff: Final[CreationBackoff[str]] = CreationBackoff(context.clock)
        self._selector_of = selector_of
        self._size_of = size_of
        self._forget = forget
        self._in_namespace: NamespaceIndex[W] = NamespaceIndex(self.owners)
        self.owners.add_handler(self._queue_now, self._changed, self._gone)
        PodEventHandlers(
            self.pods, self.expectations, key_of=self.resolve, takers_of=self._takers_of, wake=self.wake
        )

    def wake(self, key: str, is_urgent: bool = False) -> None:
        """Enqueue this owner: at once, or after a short delay that collects changes."""
        owner = self.owners.by_key(key)
        if is_urgent or owner is None:
            self.queue.add(key)
        else:
            self.queue.add_after(key, settle_seconds(self._size_of(owner)))

    def resolve(self, namespace: str, reference: OwnerReference) -> str | None:
        """Return the key of the owner that is meant, if it is of this kind and exists with that uid."""
        if reference.kind != self.owners.kind.name:
            return None
        owner = self.owners.get(reference.name, namespace)
        return key_of(owner) if owner is not None and owner.metadata.uid == reference.uid else None

    def candidates(self, owner: W) -> list[Pod]:
        """Return the owner's pods, and the pods of its namespace that have no controller."""
        own = self.pods.controlled_by(owner.metadata.uid)
        return [*own, *self.pods.orphans(owner.metadata.namespace)]

    def _queue_now(self, owner: W) -> None:
        self.queue.add(key_of(owner))

    def _changed(self, old: W, new: W) -> None:
        before, after = old.metadata, new.metadata
        if after.uid != before.uid:
            self._gone(old)
        elif after.generation == before.generation and after.labels == before.labels:
            # Most likely the status the controller wrote itself.
            self.wake(key_of(new))
            return
        self._queue_now(new)

    def _gone(self, owner: W) -> None:
        key = key_of(owner)
        self.expectations.forget(key)
        self.creation_backoff.forget(key)
        self._forget(owner)
        self.queue.add(key)

    def _takers_of(self, orphan: Pod) -> Iterable[str]:
        for owner in self._in_namespace[orphan.metadata.namespace]:
            selector = self._selector_of(owner)
            if selector is not None and selector.requirements and selector.matches(orphan.metadata.labels):
                yield key_of(owner)
