"""The sum of what the objects of one kind use of one quota, updated with each change instead of counted anew.

Used by the quota controller (fed by informers) and by quota admission (fed from the watch cache), so that both sum
alike. What one object uses is asked from the function the tally is given (`rules.quota.usage_in`).

What must stay true: `put` and `drop` have been called for every change since the tally was made; `used` is then the
sum over all objects that exist. What a terminating object uses depends on the time, so it is asked at each `used`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nodeward.api.meta import KubeObject
from nodeward.base.quantity import Quantity
from nodeward.rules.pod_resources import Amounts, add

#: What an object uses of the quota; nothing if the quota does not count it.
UsageOf: TypeAlias = Callable[[KubeObject], Amounts]


class QuotaTally:
    """The objects of one kind in one namespace, as one quota counts them. `key` is any name unique among them."""

    def __init__(self, usage_of: UsageOf) -> None:
        self._usage_of = usage_of
        self._charged: dict[str, Amounts] = {}
        self._terminating: dict[str, KubeObject] = {}
        self._total: dict[str, int] = {}
        self._samples: Amounts = {}

    def __len__(self) -> int:
        return len(self._charged) + len(self._terminating)

    def used(self) -> Amounts:
        """Return the sum over all objects, with what terminating objects use at this moment."""
        used = {
            name: Quantity.of_nanos(nanos, self._samples[name].format) for name, nanos in self._total.items()
        }
        for obj in self._terminating.values():
            add(used, self._usage_of(obj))
        return used

    def put(self, key: str, obj: KubeObject) -> None:
        """Record that the object exists with this state."""
        self.drop(key)
        if obj.metadata.deletion_timestamp is not None:
            self._terminating[key] = obj
            return
        usage = self._usage_of(obj)
        self._charged[key] = usage
        for name, amount in usage.items():
            self._total[name] = self._total.get(name, 0) + amount.nanos
            self._samples.setdefault(name, amount)

    def drop(self, key: str) -> None:
        """Record that the object no longer exists."""
        self._terminating.pop(key, None)
        for name, amount in self._charged.pop(key, {}).items():
            self._total[name] -= amount.nanos

    def clear(self) -> None:
        """Forget every object."""
        self._charged.clear()
        self._terminating.clear()
        self._total.clear()
