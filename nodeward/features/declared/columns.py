"""Feature sets of many nodes at once: a matrix of 64-bit words, one row per node, matched in a few instructions.

For schedulers and autoscalers that keep thousands of nodes. numpy is imported when the first matrix is made, so that
whoever matches one node does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nodeward.features.declared.errors import FeatureError
from nodeward.features.declared.feature_set import FeatureSet, FeatureTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def feature_matrix(table: FeatureTable, sets: Iterable[FeatureSet]) -> NDArray[np.uint64]:
    """Make a matrix: one row per node, one column per word. Rows are written with `feature_set.as_words()`."""
    import numpy as np

    rows = [each.as_words() for each in sets]
    # Words lie together, not rows: a match reads one word of all nodes.
    matrix = np.zeros((len(rows), table.words), dtype=np.uint64, order="F")
    if rows:
        matrix[:] = np.array(rows, dtype=np.uint64)
    return matrix


def match_column(required: Sequence[int], matrix: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell for each row whether it has all bits of the `required` words (`FeatureSet.as_words`)."""
    import numpy as np

    if len(required) != matrix.shape[1]:
        raise FeatureError(f"{len(required)} words cannot be matched with rows of {matrix.shape[1]}")
    result: NDArray[np.bool_] | None = None
    for number, word in enumerate(required):
        if not word:
            continue
        wanted = np.uint64(word)
        has = (matrix[:, number] & wanted) == wanted
        if result is None:
            result = has
        else:
            result &= has
    return np.ones(matrix.shape[0], dtype=np.bool_) if result is None else result
