"""Answers about nodes one by one, as a column: for plugins that only few pods concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.plugin import RejectedRows
from nodeward.scheduler.framework.status import Status

if TYPE_CHECKING:
    from nodeward.api.core_v1.node import Node
    from nodeward.scheduler.cache.table import NodeTable


def judge_rows(
    table: NodeTable, rows: NDArray[np.int64], judge: Callable[[int, Node], Status]
) -> RejectedRows | None:
    """What `judge` says of each row and its node."""
    which = np.full(len(rows), -1, np.int64)
    reasons: dict[Status, int] = {}
    for place, row in enumerate(rows.tolist()):
        node = table.node(row)
        if node is None:
            continue
        status = judge(row, node)
        if not status.is_success:
            which[place] = reasons.setdefault(status, len(reasons))
    return RejectedRows(which, tuple(reasons)) if reasons else None
