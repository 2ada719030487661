"""Tell administrators of taints whose value is no number although pods compare it with `Lt` or `Gt` (KEP-5471).

The API takes any value for a taint, so that `sla=high` is found out only when a numeric toleration meets it. The
TaintToleration plugin calls `report` with the nodes it rejected, whether or not the pod fits elsewhere. One line of the
log per node and value, never one per pod or attempt; and what was logged is remembered in bounded memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from nodeward.api.core_v1.references import Taint
from nodeward.rules.tolerations import compares_numbers, has_unreadable_value
from nodeward.scheduler.cache.node_taints import NODE_TAINTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.pod import PodView

LOG: Final = logging.getLogger(__name__)

#: Taint values remembered as logged. With more, those of nodes that are gone are forgotten; then no more are logged.
MOST_REMEMBERED: Final = 20_000


class UnreadableTaints:
    """What one scheduler has logged: (node, key of the taint, value)."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._logged: dict[tuple[str, str, str], None] = {}

    def __len__(self) -> int:
        return len(self._logged)

    def report(self, pod: PodView, table: NodeTable, rows: NDArray[np.int64]) -> None:
        """Log the unreadable values among the taints that keep the pod off these rows."""
        tolerations = pod.pod.spec.tolerations
        if not compares_numbers(tolerations):
            return
        taints = table.node_index(NODE_TAINTS[True])
        blocking = taints.sets.judge(tolerations).blocking
        unreadable: dict[int, list[Taint]] = {}
        for row, taint_set in zip(rows.tolist(), taints.ids[rows].tolist(), strict=True):
            found = unreadable.get(taint_set)
            if found is None:
                found = [each for each in blocking[taint_set] if has_unreadable_value(each, tolerations)]
                unreadable[taint_set] = found
            for taint in found:
                self._log(table, table.name_of(row), taint, pod)

    def _log(self, table: NodeTable, node: str, taint: Taint, pod: PodView) -> None:
        key = (node, taint.key, taint.value)
        if key in self._logged or not self._has_room(table):
            return
        self._logged[key] = None
        LOG.warning(
            'node %s: failed to parse taint value as int64: %s="%s" is no number, so pod %s, '
            "whose toleration compares numbers, does not tolerate it",
            node,
            taint.key,
            taint.value,
            pod.key,
        )

    def _has_room(self, table: NodeTable) -> bool:
        if len(self._logged) < self._most:
            return True
        self._logged = {key: None for key in self._logged if table.row_of(key[0]) is not None}
        return len(self._logged) < self._most
