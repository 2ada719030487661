"""Pods that nobody can place now: rejected by plugins, or gated and not allowed into the active queue.

They are kept in groups of equal profile and equal rejectors, so that an event none of these plugins cares about costs
one look at the group, not one at each of its pods; by the keys of plugins that find pods by keys (`WaitingPodIndex`),
so that an event about one of thousands of objects costs no look at pods it is not about; and by age, for the flush of
those that waited too long.

What must stay true: a pod is in exactly one group, in the heap of ages and under all its keys. A pod that changes, or
whose rejectors or gate change, is taken out before and put in after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.framework.events import WaitingPodIndex
from nodeward.scheduler.queue.heap import PodHeap
from nodeward.scheduler.queue.hints import Asked, QueueingStrategy
from nodeward.scheduler.queue.queued_pod import QueuedPod


class WaitingGroup(NamedTuple):
    """What pods of a group have in common."""

    profile: str
    rejected_by: tuple[str, ...]
    pending_for: tuple[str, ...]
    gating_plugin: str


def group_of(queued: QueuedPod) -> WaitingGroup:
    return WaitingGroup(
        queued.profile, queued.unschedulable_plugins, queued.pending_plugins, queued.gating_plugin
    )


class UnschedulablePods:
    """The unschedulable and the gated."""

    def __init__(self, indexes: Iterable[WaitingPodIndex] = ()) -> None:
        self._groups: dict[WaitingGroup, dict[str, QueuedPod]] = {}
        #: per index and key the pods, by uid
        self._by_key: Final[dict[WaitingPodIndex, dict[str, dict[str, QueuedPod]]]] = {
            each: {} for each in indexes
        }
        self._by_age = PodHeap(lambda queued: queued.waiting_since_ns)
        self._gated = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._by_age)

    @property
    def gated(self) -> int:
        return self._gated

    @property
    def unschedulable(self) -> int:
        return len(self._by_age) - self._gated

    def add(self, queued: QueuedPod) -> None:
        uid = queued.pod.uid
        if uid in self._by_age:
            raise InvariantBroken(f"pod {queued.pod.key} ({uid}) waits twice")
        self._groups.setdefault(group_of(queued), {})[uid] = queued
        self._by_age.push(queued)
        for index, by_key in self._by_key.items():
            for key in index.keys_of_pod(queued.pod):
                by_key.setdefault(key, {})[uid] = queued
        if queued.is_gated:
            self._gated += 1

    def remove(self, queued: QueuedPod) -> None:
        """Take it out; before anything its group is made of changes."""
        uid = queued.pod.uid
        if not self._by_age.remove(uid):
            raise InvariantBroken(f"pod {queued.pod.key} ({uid}) does not wait")
        key = group_of(queued)
        group = self._groups[key]
        del group[uid]
        if not group:
            del self._groups[key]
        for index, by_key in self._by_key.items():
            for name in index.keys_of_pod(queued.pod):
                if uid in by_key.get(name, ()):
                    del by_key[name][uid]
                    if not by_key[name]:
                        del by_key[name]
        if queued.is_gated:
            self._gated -= 1

    def groups(self) -> list[tuple[WaitingGroup, dict[str, QueuedPod]]]:
        """A list of its own, so that pods may be moved while going through it."""
        return list(self._groups.items())

    def helped_by(
        self, pods: dict[str, QueuedPod], asked: Asked | QueueingStrategy, old: Any, new: Any
    ) -> list[QueuedPod]:
        """The pods of a group that an event may help: those with its keys, if all who are asked have an index."""
        if isinstance(asked, QueueingStrategy):
            return list(pods.values())
        found: dict[str, QueuedPod] = {}
        for each in asked:
            keys = each.pod_index.keys_of_event(old, new) if each.pod_index is not None else None
            if each.pod_index is None or keys is None:
                return list(pods.values())
            by_key = self._by_key[each.pod_index]
            for key in keys:
                found |= by_key.get(key, {})
        return [queued for uid, queued in found.items() if uid in pods]

    def oldest(self) -> QueuedPod | None:
        return self._by_age.first()
