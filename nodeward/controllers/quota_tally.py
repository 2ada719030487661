"""What the objects of one kind use of one quota, kept in step with every change instead of counted anew.

What must stay true: `put` and `drop` have been called for every change since the tally was made; `used` is then the sum
over all objects that are there. What an object on its way out counts for depends on the time: it is weighed when asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nodeward.api.meta import KubeObject
from nodeward.base.quantity import Quantity
from nodeward.rules.pod_resources import Amounts, add

#: What an object counts for; nothing if the quota is not about it.
Weigh: TypeAlias = Callable[[KubeObject], Amounts]


class QuotaTally:
    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh
        self._charged: dict[str, Amounts] = {}
        self._ending: dict[str, KubeObject] = {}
        self._total: dict[str, int] = {}
        self._samples: Amounts = {}

    def __len__(self) -> int:
        return len(self._charged) + len(self._ending)

    def used(self) -> Amounts:
        used = {
            name: Quantity.of_nanos(nanos, self._samples[name].format) for name, nanos in self._total.items()
        }
        for obj in self._ending.values():
            add(used, self._weigh(obj))
        return used

    def put(self, obj: KubeObject) -> None:
        """The object is there, and so."""
        self.drop(obj)
        if obj.metadata.deletion_timestamp is not None:
            self._ending[obj.metadata.name] = obj
            return
        weight = self._weigh(obj)
        self._charged[obj.metadata.name] = weight
        for name, amount in weight.items():
            self._total[name] = self._total.get(name, 0) + amount.nanos
            self._samples.setdefault(name, amount)

    def drop(self, obj: KubeObject) -> None:
        """The object is gone."""
        self._ending.pop(obj.metadata.name, None)
        for name, amount in self._charged.pop(obj.metadata.name, {}).items():
            self._total[name] -= amount.nanos
