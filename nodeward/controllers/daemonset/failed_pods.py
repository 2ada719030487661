"""When a failed daemon pod may be deleted, and so replaced: later and later on the same node.

A node that turns every daemon pod away would otherwise be sent one after the other without a pause. Another template,
or half an hour without failures, starts anew.

Called by `controller`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.backoff import Curve
from nodeward.machinery.clock import Clock

_CURVE: Final = Curve(initial=1.0, cap=900.0)
_FORGOTTEN_AFTER_SECONDS: Final = 2 * _CURVE.cap


class FailedPods:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: By owner and node: generation, deletions so far, when the last was.
        self._deleted: dict[str, dict[str, tuple[int, int, int]]] = {}

    def seconds_left(self, owner: ObjectMeta, node: str) -> float:
        """Return how long a failed pod has to stay on this node yet."""
        count, since_seconds = self._find(owner, node)
        return max(0.0, _CURVE.wait(count - 1) - since_seconds) if count else 0.0

    def deleted(self, owner: ObjectMeta, node: str) -> None:
        """Record that a failed pod is deleted now."""
        count, _ = self._find(owner, node)
        of_owner = self._deleted.setdefault(owner.uid, {})
        of_owner[node] = (owner.generation, count + 1, self._clock.monotonic_ns())

    def forget(self, uid: str) -> None:
        self._deleted.pop(uid, None)

    def _find(self, owner: ObjectMeta, node: str) -> tuple[int, float]:
        generation, count, at_ns = self._deleted.get(owner.uid, {}).get(node, (0, 0, 0))
        since_seconds = (self._clock.monotonic_ns() - at_ns) / SECOND_NS
        if generation != owner.generation or since_seconds > _FORGOTTEN_AFTER_SECONDS:
            return 0, 0.0
        return count, since_seconds
