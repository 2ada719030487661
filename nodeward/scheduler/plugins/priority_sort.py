"""PrioritySort: the pod with the higher priority first; of equals, the one that has waited longer."""

from __future__ import annotations

from typing import ClassVar, Protocol

from nodeward.scheduler.framework.plugin import QueueSortPlugin
from nodeward.scheduler.framework.pod import PodView


class Waiting(Protocol):
    """What the queue knows of a pod in it."""

    @property
    def pod(self) -> PodView: ...
    @property
    def timestamp(self) -> float: ...


class PrioritySort(QueueSortPlugin):
    name: ClassVar[str] = "PrioritySort"

    def less(self, one: Waiting, other: Waiting) -> bool:
        """Whether `one` goes first."""
        mine, theirs = one.pod.priority, other.pod.priority
        return mine > theirs or (mine == theirs and one.timestamp < other.timestamp)
