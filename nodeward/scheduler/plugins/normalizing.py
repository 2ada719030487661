"""Raw scores brought to 0..100 by the largest of them, as most plugins of Kubernetes do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.plugin import MAX_SCORE


def by_largest(scores: NDArray[np.int64], *, reverse: bool = False) -> NDArray[np.int64]:
    """The largest becomes 100 (`reverse`: 0). If all are zero they stay so (`reverse`: all become 100)."""
    largest = int(scores.max(initial=0))
    if largest:
        scores = scores * MAX_SCORE // largest
    return MAX_SCORE - scores if reverse else scores
