"""What a controller has asked of the API and not yet seen happen.

An informer lags behind: right after pods were created, it does not know them, and whoever counts pods then makes them
twice. So a controller notes down what it is about to do, crosses off what it sees, and does nothing more while
something is open.

What must stay true: deletions are crossed off by uid, so that a pod seen dying twice counts once; what is open for
five minutes is given up, since a watch may have missed it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock

K = TypeVar("K", bound=Hashable)

TIMEOUT_SECONDS: Final = 300.0


@dataclass(slots=True)
class _Open:
    creations: int
    deletions: dict[str, None]
    since_ns: int

    @property
    def is_met(self) -> bool:
        return self.creations <= 0 and not self.deletions


class Expectations(Generic[K]):
    """The creations and deletions of each owner that have not been observed yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[K, _Open] = {}

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Wait from now on for this many new pods and the deletion of these (uids); replaces earlier expectations."""
        self._open[key] = _Open(creations, dict.fromkeys(deletions), self._clock.monotonic_ns())

    def creation_seen(self, key: K, count: int = 1) -> bool:
        """Return a pod of `key` appeared, or will not. True if that was the last thing waited for."""
        found = self._open.get(key)
        if found is None or found.creations <= 0:
            return False
        found.creations -= count
        return found.is_met

    def deletion_seen(self, key: K, uid: str) -> bool:
        """Record that a pod of `key` is terminating, gone, or was not deleted. True: nothing is waited for now."""
        found = self._open.get(key)
        if found is None or uid not in found.deletions:
            return False
        del found.deletions[uid]
        return found.is_met

    def are_met(self, key: K) -> bool:
        """Tell whether the informer can be believed about `key`."""
        return self.seconds_left(key) <= 0

    def seconds_left(self, key: K) -> float:
        """Return how long to wait at most before acting; 0: nothing is open."""
        found = self._open.get(key)
        if found is None or found.is_met:
            return 0.0
        return max(0.0, TIMEOUT_SECONDS - (self._clock.monotonic_ns() - found.since_ns) / SECOND_NS)

    def forget(self, key: K) -> None:
        """Drop everything about `key`: it is gone, or another object has its name."""
        self._open.pop(key, None)
