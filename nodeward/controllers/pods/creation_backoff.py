"""Backoff after refused creations: growing pauses, whatever happens meanwhile (KEP-5471: no hot loop).

A template that admission or validation refuses is refused the next time too, until somebody changes it or the rules.
Retries by the queue alone are not enough: every event about the owner or one of its pods would be another try. So the
controller asks here before it creates anything.

What must stay true: the waits grow to a cap while nothing about the owner changes; another generation of the owner
starts anew.

Called by the cron job controller, `owners` and `replicaset`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.backoff import RETRY_CURVE, Curve
from nodeward.machinery.clock import Clock

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Refused:
    uid: str
    generation: int
    failures: int
    until_ns: int


class CreationBackoff(Generic[K]):
    """The refused creations of each owner, and how long to wait before the next try."""

    def __init__(self, clock: Clock, curve: Curve = RETRY_CURVE) -> None:
        self._clock = clock
        self._curve = curve
        self._refused: dict[K, _Refused] = {}

    def seconds_left(self, key: K, owner: ObjectMeta) -> float:
        """Return how long not to try for this owner yet; 0: go ahead."""
        found = self._find(key, owner)
        return 0.0 if found is None else max(0.0, (found.until_ns - self._clock.monotonic_ns()) / SECOND_NS)

    def refused(self, key: K, owner: ObjectMeta) -> float:
        """Record another refusal; return the seconds to wait."""
        found = self._find(key, owner)
        failures = 0 if found is None else found.failures
        wait = self._curve.wait(failures)
        until_ns = self._clock.monotonic_ns() + round(wait * SECOND_NS)
        self._refused[key] = _Refused(owner.uid, owner.generation, failures + 1, until_ns)
        return wait

    def forget(self, key: K) -> None:
        """Reset: the creation worked, or the owner is gone."""
        self._refused.pop(key, None)

    def _find(self, key: K, owner: ObjectMeta) -> _Refused | None:
        found = self._refused.get(key)
        if found is None or (found.uid, found.generation) != (owner.uid, owner.generation):
            return None
        return found
