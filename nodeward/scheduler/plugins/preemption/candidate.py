"""Candidate nodes of a preemption with their victims, and which candidate is best.

The order is Kubernetes': fewest violated budgets, then the least important most important victim, the smallest sum of
priorities, the fewest victims, the one whose most important victims started last, and then whoever came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.scheduler.cache.ranked_pods import started_ns
from nodeward.scheduler.framework.pod import PodView

#: Added to every priority of a sum, so that more victims of negative priority are not better than fewer.
LIFT: Final = 2**31


@dataclass(frozen=True, slots=True)
class Candidate:
    """One node, and who would have to go; the most important victim comes first."""

    node: str
    victims: tuple[PodView, ...]
    violations: int = 0

    @property
    def cost(self) -> tuple[int, int, int, int, int]:
        """Less is better."""
        highest = max(victim.priority for victim in self.victims)
        earliest = min(started_ns(victim) for victim in self.victims if victim.priority == highest)
        total = sum(victim.priority + LIFT for victim in self.victims)
        return self.violations, highest, total, len(self.victims), -earliest


def best(candidates: Iterable[Candidate]) -> Candidate:
    return min(candidates, key=lambda candidate: candidate.cost)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many candidates are enough."""

    percentage: int = 10
    absolute: int = 100

    def of(self, nodes: int) -> int:
        return min(max(nodes * self.percentage // 100, self.absolute), nodes)


def enough(violations: Sequence[int], wanted: int) -> int | None:
    """After how many candidates, in the order they were found, the search may end; None: not yet.

    One that violates no budget must be among them.
    """
    if len(violations) < wanted:
        return None
    first = next((number for number, count in enumerate(violations) if not count), None)
    return None if first is None else max(wanted, first + 1)
