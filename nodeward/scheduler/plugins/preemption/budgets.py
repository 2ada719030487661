"""Disruption budgets, as preemption respects them: as far as it can.

A budget that allows no more disruptions does not protect its pods, but they are spared first, and a node where fewer
of them must go is better. In go budgets and the pods of one node; out comes which of the pods no budget is left for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.rules.selectors import LabelRequirements, SelectorError, from_label_selector
from nodeward.scheduler.framework.pod import PodView

#: Pods whose budgets are remembered; when there are more, all are forgotten.
REMEMBERED = 100_000


class Budgets:
    """All budgets of a cluster at one moment."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._allowed: list[int] = []
        self._by_namespace: dict[str, list[tuple[int, LabelRequirements, PodDisruptionBudget]]] = {}
        self._known: dict[str, tuple[PodView, tuple[int, ...]]] = {}
        for budget in budgets:
            selector = _selector(budget)
            if selector is None:
                continue
            line = len(self._allowed), selector, budget
            self._allowed.append(budget.status.disruptions_allowed)
            self._by_namespace.setdefault(budget.metadata.namespace, []).append(line)

    def __bool__(self) -> bool:
        return bool(self._allowed)

    def violated(self, pods: Sequence[PodView]) -> list[bool]:
        """Per pod whether its going, after those before it, is more than a budget allows."""
        left: dict[int, int] = {}
        found: list[bool] = []
        for pod in pods:
            is_violated = False
            for number in self._of(pod):
                left[number] = left.get(number, self._allowed[number]) - 1
                if left[number] < 0:
                    # The budgets after this one are not drawn on: one violation is as bad as two.
                    is_violated = True
                    break
            found.append(is_violated)
        return found

    def _of(self, pod: PodView) -> tuple[int, ...]:
        """The budgets that a pod's going draws on; those that already count it as gone do not."""
        if pod.namespace not in self._by_namespace or not pod.labels:
            return ()
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        found = tuple(
            number
            for number, selector, budget in self._by_namespace[pod.namespace]
            if selector.matches(pod.labels) and pod.name not in budget.status.disrupted_pods
        )
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[pod.uid] = pod, found
        return found


def _selector(budget: PodDisruptionBudget) -> LabelRequirements | None:
    """What the budget protects; None for one that selects nothing, or cannot be understood."""
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return None
    return None if selector is None or selector.is_everything else selector
