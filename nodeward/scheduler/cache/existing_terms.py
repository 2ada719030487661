"""The affinity terms of existing pods, and on which rows the pods are that have them: an index for InterPodAffinity.

Equal terms of any number of pods are one entry. So a pod that comes is compared with a few terms, once for all pods
like it: `version` changes when a term appears or the last pod that held one is gone. Pods without terms cost nothing.

What must stay true: the sums of a term are what adding up the pods of the table would give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodeward.api.codec import encode
from nodeward.rules.pod_affinity import NO_TERMS, PodTerms, Term, understood_terms_of
from nodeward.scheduler.cache.columns import PodIndex
from nodeward.scheduler.cache.labels import sum_by_slot
from nodeward.scheduler.cache.pod_groups import HasRows
from nodeward.scheduler.framework.pod import PodView

Ints: TypeAlias = NDArray[np.int64]
Sums: TypeAlias = NDArray[np.float64]

#: Rows a term is held on before its sums become a column.
FEW_ROWS: Final = 128
#: Affinities that are remembered as terms; when there are more, all are forgotten.
_REMEMBERED: Final = 4096


class TermUse(Enum):
    """What a term does to the pods it means."""

    #: keeps them away
    REPELS = "repels"
    #: had to have them near: likes others of them, too, as much as the configuration says
    NEEDS = "needs"
    #: likes or dislikes them by its weight
    LIKES = "likes"


class ExistingTerm:
    """One term, and what the pods on each row that hold it sum up to: their number, or their weights."""

    __slots__ = ("_column", "_sums", "holders", "term", "use")

    def __init__(self, use: TermUse, term: Term) -> None:
        self.use = use
        self.term = term
        self.holders = 0
        self._sums: dict[int, int] = {}
        self._column: Ints | None = None

    def add(self, row: int, amount: int, capacity: int) -> None:
        column = self._column
        if column is not None and row < len(column):
            column[row] += amount
            return
        sums = self._sums
        sums[row] = sums.get(row, 0) + amount
        if not sums[row]:
            del sums[row]
        if len(sums) > FEW_ROWS:
            fresh = np.zeros(capacity, np.int64)
            if column is not None:
                fresh[: len(column)] = column
            fresh[list(sums)] += list(sums.values())
            self._column = fresh
            sums.clear()

    def by_slot(self, slots: Ints, size: int) -> Sums:
        """The sums per domain: `slots` says in which each row is, and there are `size`."""
        found = np.zeros(size, np.float64)
        if self._column is not None:
            # Rows that came after the column was made are among the few.
            found += sum_by_slot(slots[: len(self._column)], self._column, size)
        if self._sums:
            rows = np.fromiter(self._sums, np.int64, len(self._sums))
            amounts = np.fromiter(self._sums.values(), np.int64, len(self._sums))
            found += sum_by_slot(slots[rows], amounts, size)
        return found


class ExistingTerms:
    """The terms of all pods of one table."""

    def __init__(self, source: HasRows) -> None:
        self._source = source
        #: changes whenever the terms do (not when another pod holds one that is known)
        self.version = 0
        self._held: dict[tuple[TermUse, Term], ExistingTerm] = {}
        self._terms: dict[tuple[str, bytes], PodTerms] = {}

    def __len__(self) -> int:
        return len(self._held)

    def put_on(self, view: PodView, row: int) -> None:
        """Count the terms of a pod that came to a row."""
        if view.pod.spec.affinity is not None:
            self._count(view, row, 1, self._source.capacity)

    def taken_off(self, view: PodView, row: int) -> None:
        """Forget the terms of a pod that was counted on a row."""
        if view.pod.spec.affinity is not None:
            self._count(view, row, -1, self._source.capacity)

    def tells_apart(self, old: PodView, new: PodView) -> bool:
        """Whether two versions of a pod ask different things of other pods."""
        return old.pod.spec.affinity != new.pod.spec.affinity or old.namespace != new.namespace

    def grow(self, rows: int) -> None:
        """Nothing to do: a term's column may be shorter than the table."""

    def meaning(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> tuple[ExistingTerm, ...]:
        """The terms that mean a pod like this."""
        return tuple(
            held for held in self._held.values() if held.term.matches(namespace, labels, namespace_labels)
        )

    def terms(self, view: PodView) -> PodTerms:
        """What a pod asks of others; nothing, if that cannot be understood."""
        affinity = view.pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return NO_TERMS
        key = view.namespace, encode(affinity)
        found = self._terms.get(key)
        if found is None:
            if len(self._terms) >= _REMEMBERED:
                self._terms.clear()
            found = self._terms[key] = understood_terms_of(view.pod)
        return found

    def _count(self, view: PodView, row: int, sign: int, capacity: int) -> None:
        terms = self.terms(view)
        for term in terms.apart:
            self._add(TermUse.REPELS, term, row, sign, 1, capacity)
        for term in terms.near:
            self._add(TermUse.NEEDS, term, row, sign, 1, capacity)
        for term in terms.liked:
            self._add(TermUse.LIKES, replace(term, weight=0), row, sign, term.weight, capacity)

    def _add(self, use: TermUse, term: Term, row: int, sign: int, amount: int, capacity: int) -> None:
        held = self._held.get((use, term))
        if held is None:
            held = self._held[use, term] = ExistingTerm(use, term)
            self.version += 1
        held.holders += sign
        held.add(row, sign * amount, capacity)
        if not held.holders:
            del self._held[use, term]
            self.version += 1


EXISTING_TERMS: Final = PodIndex("held terms", ExistingTerms)
