"""What the pods of a node take: resources, host ports, and their number, counted as pods come and go and are resized.

Amounts are whole numbers: CPU in millicores, all else in units. A pod is taken off with what it was put on with, so
that nothing is lost when it changes in between; putting it on again replaces what it took. Used by `allocation` and
`node.admission`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from nodeward.api.core_v1.pod import Pod
from nodeward.base.quantity import Quantity
from nodeward.rules.host_ports import Ports, add_ports, has_conflict, host_ports, remove_ports
from nodeward.rules.pod_resources import pod_requests

_FIRST: Final = ("cpu", "memory", "ephemeral-storage")


class Shortage(NamedTuple):
    """A resource there is not enough of."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def message(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, "
            f"requested: {self.requested}, used: {self.used}, capacity: {self.capacity}"
        )


class _Taken(NamedTuple):
    amounts: tuple[tuple[str, int], ...]
    ports: tuple[tuple[str, str, int], ...]


class NodeCapacity:
    """What is in use on one node. `with_pod_level` is whether resources of pods as a whole count."""

    __slots__ = ("_ports", "_taken", "_used", "_with_pod_level")

    def __init__(self, *, with_pod_level: bool = True) -> None:
        self._with_pod_level = with_pod_level
        self._taken: dict[str, _Taken] = {}
        self._used: dict[str, int] = {}
        self._ports: Ports = {}

    @classmethod
    def of(cls, pods: Iterable[Pod], *, with_pod_level: bool = True) -> NodeCapacity:
        """What these pods take together."""
        capacity = cls(with_pod_level=with_pod_level)
        for pod in pods:
            capacity.add(pod)
        return capacity

    def __len__(self) -> int:
        return len(self._taken)

    def __contains__(self, uid: str) -> bool:
        return uid in self._taken

    def add(self, pod: Pod) -> None:
        self.remove(pod.metadata.uid)
        taken = _Taken(tuple(self._amounts(pod).items()), host_ports(pod.spec))
        self._taken[pod.metadata.uid] = taken
        for name, amount in taken.amounts:
            self._used[name] = self._used.get(name, 0) + amount
        add_ports(self._ports, taken.ports)

    def remove(self, uid: str) -> None:
        """No error if it is not there."""
        taken = self._taken.pop(uid, None)
        if taken is None:
            return
        for name, amount in taken.amounts:
            self._used[name] -= amount
        remove_ports(self._ports, taken.ports)

    def used(self, resource: str) -> int:
        return self._used.get(resource, 0)

    def shortages(self, pod: Pod, allocatable: Mapping[str, Quantity]) -> list[Shortage]:
        """What keeps a pod that is not here yet from fitting, in the order it is told.

        Resources with a domain that the node does not have belong to the cluster, and are not counted here.
        """
        found = []
        most = allocatable["pods"].value if "pods" in allocatable else 0
        if len(self._taken) + 1 > most:
            found.append(Shortage("pods", 1, len(self._taken), most))
        return found + self._short_of(self._amounts(pod), allocatable)

    def _short_of(self, wanted: Mapping[str, int], allocatable: Mapping[str, Quantity]) -> list[Shortage]:
        """The resources there is not enough of."""
        found = []
        rest = sorted(name for name in wanted if name not in _FIRST)
        for name in (*_FIRST, *rest):
            amount = wanted.get(name, 0)
            present = allocatable.get(name)
            if not amount or (present is None and _is_extended(name)):
                continue
            capacity = _whole(name, present) if present is not None else 0
            used = self.used(name)
            if amount > capacity - used:
                found.append(Shortage(name, amount, used, capacity))
        return found

    def has_ports_for(self, pod: Pod) -> bool:
        return not has_conflict(self._ports, host_ports(pod.spec))

    def _amounts(self, pod: Pod) -> dict[str, int]:
        requests = pod_requests(pod, with_pod_level=self._with_pod_level)
        found = {name: _whole(name, amount) for name, amount in requests.items()}
        return {name: amount for name, amount in found.items() if amount}


def _whole(name: str, amount: Quantity) -> int:
    return amount.milli_value if name == "cpu" else amount.value


def _is_extended(name: str) -> bool:
    """A resource outside Kubernetes' own domain."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
