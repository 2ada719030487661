"""Why each node does not fit, by name: what the engine hands to PostFilter plugins.

Worked out when first asked for: most pods that fit nowhere need only counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.status import Code, Status

if TYPE_CHECKING:
    from nodeward.scheduler.cache.classes import PodClasses
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.pod import PodView


Ints = NDArray[np.int64]


class Rejections(Mapping[str, Status]):
    """What PostFilter plugins are given. `promised`: rows that only a promise to another pod rules out."""

    def __init__(
        self, classes: PodClasses, pod: PodView, table: NodeTable, promised: Mapping[int, Status]
    ) -> None:
        self._classes, self._pod, self._table, self._promised = classes, pod, table, promised
        self._known: Mapping[str, Status] | None = None

    def _all(self) -> Mapping[str, Status]:
        if self._known is None:
            promised = {self._table.name_of(row): why for row, why in self._promised.items()}
            self._known = {**self._classes.explain(self._pod).rejected, **promised}
        return self._known

    def rows_with(self, code: Code) -> Ints:
        """The rows rejected with this code, without naming any: for whoever looks at all of them."""
        rows = self._classes.rejected_rows(self._pod, code)
        if not self._promised:
            return rows
        promised = [row for row, why in self._promised.items() if why.code is code]
        others = np.array([*self._promised], np.int64)
        return np.union1d(np.setdiff1d(rows, others), np.array(promised, np.int64))

    def __getitem__(self, name: str) -> Status:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
