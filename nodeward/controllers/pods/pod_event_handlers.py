"""Which owners need a look when a pod appears, changes or goes; and what can be crossed off.

One `PodEventHandlers` for each kind of owner listens to the shared pods. It knows owners by key ("namespace/name") and
calls `wake(key, is_urgent)`: urgent if the controller has been waiting for just this (the last expectation was met),
else within `settle_seconds`, since more news of the same owner usually comes with it.

What must stay true: a pod that begins to terminate counts as deleted; a pod whose labels or owner change wakes the
old owner and the new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import OwnerReference
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.expectations import Expectations
from nodeward.controllers.pods.index import OwnerIndex

_SHORTEST_SECONDS: Final = 0.02
_SECONDS_PER_POD: Final = 50e-6
_LONGEST_SECONDS: Final = 1.0


def settle_seconds(pods: int) -> float:
    """Return how long to gather news of an owner of so many pods before looking at them all.

    A look costs time in proportion to the pods, so at a thousand news a second one for each would take all there is.
    """
    return min(_SHORTEST_SECONDS + pods * _SECONDS_PER_POD, _LONGEST_SECONDS)


class PodEventHandlers:
    """Listens for the owners of one kind, as long as the informer lives."""

    def __init__(
        self,
        pods: OwnerIndex[Pod],
        expectations: Expectations[str],
        *,
        key_of: Callable[[str, OwnerReference], str | None],
        takers_of: Callable[[Pod], Iterable[str]],
        wake: Callable[[str, bool], None],
    ) -> None:
        """`key_of(namespace, reference)`: the owner, if it is of this kind and exists with that uid.
        `takers_of(orphan)`: the owners that would adopt it.
        """
        self._expectations = expectations
        self._key_of = key_of
        self._takers_of = takers_of
        self._wake = wake
        pods.informer.add_handler(self._added, self._updated, self._deleted)

    def _added(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            # Known for the first time, and going already: somebody may wait for that.
            self._deleted(pod)
            return
        reference = controller_of(pod)
        if reference is None:
            self._offer(pod)
        elif (key := self._key_of(pod.metadata.namespace, reference)) is not None:
            self._wake(key, self._expectations.creation_seen(key))

    def _updated(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._deleted(old)
            self._added(new)
            return
        reference, before = controller_of(new), controller_of(old)
        if before is not None and (reference is None or reference.uid != before.uid):
            key = self._key_of(old.metadata.namespace, before)
            if key is not None:
                self._wake(key, self._expectations.deletion_seen(key, old.metadata.uid))
        if new.metadata.deletion_timestamp is not None:
            self._deleted(new)
        elif reference is not None:
            key = self._key_of(new.metadata.namespace, reference)
            if key is not None:
                self._wake(key, False)
        elif before is not None or new.metadata.labels != old.metadata.labels:
            self._offer(new)

    def _deleted(self, pod: Pod) -> None:
        reference = controller_of(pod)
        if reference is None:
            return
        key = self._key_of(pod.metadata.namespace, reference)
        if key is not None:
            self._wake(key, self._expectations.deletion_seen(key, pod.metadata.uid))

    def _offer(self, orphan: Pod) -> None:
        for key in self._takers_of(orphan):
            self._wake(key, False)
