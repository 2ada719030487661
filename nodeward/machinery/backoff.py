"""Backoff: how long to wait before trying again, longer each time, up to a cap, with jitter.

In goes the number of failures so far, out come seconds. `Curve` is the pure rule, `Backoff` counts the failures of
one thing, `KeyedBackoff` those of many things by key.

What must stay true: without jitter the waits never shrink and never pass the cap; jitter only ever adds, at most
`jitter` times the wait, so that a thousand clients that failed together do not come back together.

Used by controllers, the kubelet, work queues, reflectors and leader election.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nodeward.base.invariant import invariant
from nodeward.machinery.clock import Chance

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Curve:
    """Waits of `initial`, `initial * factor`, `initial * factor^2`, ... seconds, none longer than `cap`."""

    initial: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        invariant(0 <= self.initial <= self.cap, "a backoff starts between zero and its cap")
        invariant(self.factor >= 1 and self.jitter >= 0, "a backoff grows, and its jitter adds")

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after `failures` earlier failures (0 for the first), before jitter."""
        try:
            return min(self.initial * self.factor**failures, self.cap)
        except OverflowError:
            return self.cap

    def wait_with_luck(self, failures: int, chance: Chance) -> float:
        """Return the same with jitter, which may reach past the cap."""
        wait = self.wait(failures)
        return wait + chance.uniform(0.0, self.jitter * wait) if self.jitter else wait


#: What a controller waits before it looks at a failing object again.
RETRY_CURVE = Curve(initial=0.005, cap=1000.0)


class Backoff:
    """The failures of one thing (a connection, a leader election)."""

    __slots__ = ("_chance", "_curve", "failures")

    def __init__(self, curve: Curve, chance: Chance) -> None:
        self._curve = curve
        self._chance = chance
        self.failures = 0

    def next(self) -> float:
        """Record another failure; return the seconds to wait."""
        wait = self._curve.wait_with_luck(self.failures, self._chance)
        self.failures += 1
        return wait

    def reset(self) -> None:
        """Record a success: the next failure waits as little as the first."""
        self.failures = 0


class KeyedBackoff(Generic[K]):
    """The failures of many things. Keys that never fail take no memory."""

    __slots__ = ("_chance", "_curve", "_failures")

    def __init__(self, curve: Curve = RETRY_CURVE, chance: Chance | None = None) -> None:
        invariant(chance is not None or not curve.jitter, "jitter needs a Chance")
        self._curve = curve
        self._chance = chance
        self._failures: dict[K, int] = {}

    def next(self, key: K) -> float:
        """Record another failure of `key`; return the seconds to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if self._chance is None:
            return self._curve.wait(failures)
        return self._curve.wait_with_luck(failures, self._chance)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Drop the failures of `key`: it worked, or is gone."""
        self._failures.pop(key, None)
