"""What one quota's objects of one kind use now, kept in step with the cache instead of counted anew each time.

A tally is asked for the sum and first catches up with the cache's history; only if it is too far behind does it read
everything. Pods on their way out are weighed at each question, because what they count for changes with time.

What must stay true: `charged` has an entry for every object in the cache that matches, and `total` is their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nodeward.api.codec import decoder
from nodeward.apiserver.cache import ResourceCache
from nodeward.base.quantity import Quantity
from nodeward.rules.pod_resources import Amounts, add

#: What an object counts for in the quota; nothing if the quota is not about it.
Weigh: TypeAlias = Callable[[Any], Amounts]


class Tally:
    """The objects of one kind in one namespace, as one quota weighs them."""

    def __init__(self, cache: ResourceCache, namespace: str, weigh: Weigh) -> None:
        self._cache = cache
        self._prefix = f"{namespace}/"
        self._weigh = weigh
        self._read: Callable[[bytes], Any] = decoder(cache.kind.type).decode
        self._seen = -1
        self._charged: dict[str, Amounts] = {}
        self._ending: dict[str, Any] = {}
        self._total: dict[str, int] = {}
        self._samples: Amounts = {}

    def used(self) -> Amounts:
        """The sum as of the cache's newest revision."""
        self._catch_up()
        used = {
            name: Quantity.of_nanos(nanos, self._samples[name].format) for name, nanos in self._total.items()
        }
        for obj in self._ending.values():
            add(used, self._weigh(obj))
        return used

    def _catch_up(self) -> None:
        history = self._cache.history
        newest = history[-1].revision if history else self._cache.history_start
        if self._seen < self._cache.history_start:
            self._charged, self._ending, self._total = {}, {}, {}
            for key in self._cache.keys(self._prefix):
                self._charge(key, self._cache.objects[key].data)
        else:
            changed: dict[str, None] = {}
            for change in reversed(history):
                if change.revision <= self._seen:
                    break
                if change.key.startswith(self._prefix):
                    changed[change.key] = None
            for key in changed:
                self._discharge(key)
                item = self._cache.objects.get(key)
                if item is not None:
                    self._charge(key, item.data)
        self._seen = newest

    def _charge(self, key: str, data: bytes) -> None:
        obj = self._read(data)
        if obj.metadata.deletion_timestamp is not None:
            self._ending[key] = obj
            return
        weight = self._weigh(obj)
        self._charged[key] = weight
        for name, amount in weight.items():
            self._total[name] = self._total.get(name, 0) + amount.nanos
            self._samples.setdefault(name, amount)

    def _discharge(self, key: str) -> None:
        self._ending.pop(key, None)
        for name, amount in self._charged.pop(key, {}).items():
            self._total[name] -= amount.nanos
