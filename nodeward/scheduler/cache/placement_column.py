"""What changes with every placement, in one number per row: whether a node still fits, and its score if it does.

For plugins that can answer for a single row. Their answers are the same for all pods with the same keys, so that these
share one column: a placement is worked out once, not once for every kind of pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from nodeward.scheduler.cache.kept_column import KeptColumn, KeptColumns
from nodeward.scheduler.framework.plugin import CycleState

if TYPE_CHECKING:
    from nodeward.scheduler.cache.plugin_set import Ints, PluginPart
    from nodeward.scheduler.cache.table import NodeTable

#: In place of the score of a row that does not fit.
DOES_NOT_FIT: Final = -1


def placement_column(
    columns: KeptColumns, filters: Sequence[PluginPart], scores: Sequence[PluginPart], cycle: CycleState
) -> KeptColumn | None:
    """The column of these plugins for the cycle's pod; None if one of them cannot answer for a single row."""
    parts = (*filters, *scores)
    if (
        not parts
        or not all(part.has_row_filter for part in filters)
        or not all(part.has_row_score for part in scores)
    ):
        return None
    fits = [part.plugin.fits_row for part in filters]
    weighed = [(part.plugin.score_row, part.weight) for part in scores]

    def one(table: NodeTable, row: int) -> int:
        for ask in fits:
            if not ask(cycle, table, row):
                return DOES_NOT_FIT
        total = 0
        for score, weight in weighed:
            total += weight * score(cycle, table, row)
        return total

    def many(table: NodeTable, rows: Ints) -> Ints:
        total = np.zeros(len(rows), np.int64)
        for part in scores:
            total += part.weight * part.score_rows(cycle, table, rows)
        for part in filters:
            answer = part.filter_rows(cycle, table, rows)
            if answer is not None:
                total[answer.which >= 0] = DOES_NOT_FIT
        return total

    key = tuple((part.rank, part.plugin.row_key(cycle)) for part in parts)
    return columns.get((len(filters), key), many, one)
