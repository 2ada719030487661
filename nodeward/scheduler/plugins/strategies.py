"""How full a node should be: the scoring strategies of NodeResourcesFit, in numbers and in columns.

A strategy turns what is used and what there is of one resource into 0..100; resources are then weighed. Both forms
count in whole numbers and agree exactly. What is used may be more than there is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.plugin import MAX_SCORE

Ints: TypeAlias = NDArray[np.int64]

LEAST: Final = "LeastAllocated"
MOST: Final = "MostAllocated"
RATIO: Final = "RequestedToCapacityRatio"

#: Shapes are written with scores from 0 to this.
_SHAPE_SCORES: Final = 10


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """`each` and `column` score one resource where there is some of it."""

    each: Callable[[int, int], int]
    column: Callable[[Ints, Ints], Ints]
    #: resources that score nothing do not weigh, and the mean is rounded instead of cut
    is_ratio: bool = False

    def mean(self, scored: Sequence[tuple[int, int]]) -> int:
        """The weighted mean of (score, weight)."""
        total = weights = 0
        for score, weight in scored:
            if score > 0 or not self.is_ratio:
                total += score * weight
                weights += weight
        if not weights:
            return 0
        return (2 * total + weights) // (2 * weights) if self.is_ratio else total // weights

    def mean_columns(self, scores: Ints, weights: Ints) -> Ints:
        """The same, with a line per resource; a weight of zero leaves a resource out."""
        if self.is_ratio:
            weights = np.where(scores > 0, weights, 0)
        total: Ints = (scores * weights).sum(axis=0)
        weight: Ints = np.maximum(weights.sum(axis=0), 1)
        means: Ints = (2 * total + weight) // (2 * weight) if self.is_ratio else total // weight
        return means


def strategy(kind: str, shape: Sequence[Mapping[str, Any]] = ()) -> ScoringStrategy:
    """The strategy of a configuration; `shape` is that of RequestedToCapacityRatio."""
    if kind == LEAST:
        return ScoringStrategy(_least, _least_column)
    if kind == MOST:
        return ScoringStrategy(_most, _most_column)
    curve = tuple(_on_curve(shape, percent) for percent in range(MAX_SCORE + 1))
    curve_column = np.array(curve, np.int64)
    return ScoringStrategy(
        lambda used, there: curve[_most(used, there)],
        lambda used, there: curve_column[_most_column(used, there)],
        is_ratio=True,
    )


def _least(used: int, there: int) -> int:
    return max(there - used, 0) * MAX_SCORE // there


def _least_column(used: Ints, there: Ints) -> Ints:
    scores: Ints = np.maximum(there - used, 0) * MAX_SCORE // there
    return scores


def _most(used: int, there: int) -> int:
    return min(used, there) * MAX_SCORE // there


def _most_column(used: Ints, there: Ints) -> Ints:
    return np.minimum(used, there) * MAX_SCORE // there


def _on_curve(shape: Sequence[Mapping[str, Any]], percent: int) -> int:
    """The score at a utilisation: straight lines between the points, level before the first and after the last."""
    points = [(int(each["utilization"]), int(each["score"]) * (MAX_SCORE // _SHAPE_SCORES)) for each in shape]
    if percent <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in itertools.pairwise(points):
        if percent <= right:
            rise = (high - low) * (percent - left)
            # Kubernetes cuts towards zero, also on the way down.
            return low + (rise // (right - left) if rise >= 0 else -(-rise // (right - left)))
    return points[-1][1]
