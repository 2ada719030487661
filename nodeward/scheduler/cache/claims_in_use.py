"""Which claims pods on nodes use, and how many of them: for claims that only one pod may use at a time.

What must stay true: after `refresh` the counts are those of the pods the table counts. Only rows that changed are
looked at again; nobody pays who does not ask.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nodeward.api.core_v1.pod import Pod

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable


def named_claims(pod: Pod) -> list[str]:
    """The claims a pod names itself, those made for it alone left out."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


class ClaimsInUse:
    """Counts by (namespace, claim) over one table."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._counts: Counter[tuple[str, str]] = Counter()
        self._by_row: dict[int, list[tuple[str, str]]] = {}
        self._version = 0

    def users(self, namespace: str, claim: str) -> int:
        self._refresh()
        return self._counts[namespace, claim]

    def _refresh(self) -> None:
        table = self._table
        version = table.changes.version
        if version == self._version:
            return
        changed = table.changes.since(self._version)
        if changed is None:
            rows = list(dict.fromkeys(row for row, _ in table.pods_by_row()))
            self._by_row.clear()
            self._counts.clear()
        else:
            rows = changed.tolist()
        self._version = version
        for row in rows:
            self._counts.subtract(self._by_row.pop(row, ()))
            used = [
                (placed.view.namespace, name)
                for placed in table.placed_on(row)
                if placed.view.pod.spec.volumes
                for name in named_claims(placed.view.pod)
            ]
            if used:
                self._by_row[row] = used
                self._counts.update(used)
